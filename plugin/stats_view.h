/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_STATS_VIEW_H
#define BPFCOST_STATS_VIEW_H

#include "blind.h"
#include "ctx.h"
#include "floor.h"
#include "owners.h"
#include "runstats.h"
#include "stats_switch.h"
#include "stats_window.h"

/* What the views of the run time statistics show. Nothing is owned. */
struct stats_view_row {
	struct runstats_prog prog; /* as it was; the name is the source's, until its next sample */
	const struct stats_window_row *window;
	const struct blind_prog *blind; /* or NULL */
	const struct owner *owners;
	size_t n_owners;
};

enum stats_sort {
	STATS_SORT_CPU,
	STATS_SORT_RUNS,
	STATS_SORT_GROSS,
	STATS_SORT_NET,
	STATS_SORT_MISSED,
	STATS_SORT_ID,
	STATS_SORTS,
};

struct stats_report {
	const struct stats_window *window;
	struct stats_view_row *rows;
	size_t n_rows;
	int blind_refused;	   /* 0, or why it is not known of all whether they are counted */
	const struct floor *floor; /* NULL: not known */
	const struct stats_switch *sw;
	const struct owners *owners; /* NULL: not asked for */
	pid_t self;		     /* no owner, though it has them open */
	bool all;		     /* every program, none is left out */
	bool own;		     /* those that our own processes have open */
	bool interval;		     /* one of many: JSON gets a line each, with the time */
	__u64 time_ns;		     /* CLOCK_REALTIME at the end of the window */
	enum stats_sort sort;
	unsigned columns; /* of the screen: those of the table for which there is no room are left
			   * out; 0: it has no end */
	bool colour;
};

/* The most first; those that are equal by CPU share, then by id. */
void stats_report__sort(struct stats_report *r);
/* The word for what a report is sorted by. */
const char *stats_sort__name(enum stats_sort sort);

/* People: a table, and what is to be said of it. To @out, which need not be ctx->out. */
void stats_view__plain(FILE *out, const struct stats_report *r);
/* The same with what must not be cut off first: a screen has an end. */
void stats_view__screen(FILE *out, const struct stats_report *r);
/* The keys that there are on a screen. */
void stats_view__keys(FILE *out, const struct stats_report *r);

/* Programs: one JSON document, and one a line with interval. -ENOMEM. */
int stats_view__json(const struct ctx *ctx, const struct stats_report *r);

/* The marks (enum stats_mark) one by one: the name in JSON, and what it means, for people. NULL
 * behind the last. */
const char *stats_mark__name(unsigned i, unsigned *mark, const char **meaning);

#endif
