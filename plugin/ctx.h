/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_CTX_H
#define BPFCOST_CTX_H

#include <stdbool.h>
#include <stdio.h>

#include "errmsg.h"

/* What main() knows and every command gets: no command has state of its own outside of its
 * functions. */
struct ctx {
	bool json;
	bool pretty;
	bool debug;
	FILE *out;		/* results, and nothing else */
	FILE *msg;		/* notes for people: stderr */
	const char *sysfs_root; /* "/sys" */
	const char *proc_root;	/* "/proc" */
	/* The words after the command, up to "--", and those after it (NULL: there was no "--"). */
	int argc;
	char **argv;
	char **command;
	struct errmsg *err;
};

/* A command. Returns the exit status; when it failed, ctx->err says why, and main() shows it. */
typedef int (*command_fn)(struct ctx *ctx);

int cmd_prog_profile(struct ctx *ctx);
int cmd_prog_stats(struct ctx *ctx);
int cmd_prog_bench(struct ctx *ctx);
int cmd_prog_compare(struct ctx *ctx);
int cmd_metric_list(struct ctx *ctx);
int cmd_stats_show(struct ctx *ctx);
int cmd_stats_enable(struct ctx *ctx);
int cmd_calibrate(struct ctx *ctx);

/* A line for people, on stderr. */
void note(const struct ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, only with --debug. */
void debug(const struct ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
