/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_BPFTOOL_H
#define BPFCOST_BPFTOOL_H

#include <stdbool.h>

#include "ctx.h"

/*
 * The real bpftool: what $BPFTOOL names, by path or by a name in $PATH, or the first in $PATH,
 * /usr/local/sbin, /usr/sbin and /sbin. Never this program, under whatever name.
 */
bool bpftool__has(void);

/* Becomes bpftool, with the arguments as they are; argv[0] is "bpftool", which its own messages
 * begin with. Returns only if that fails: the exit status, with ctx->err. */
int bpftool__exec(const struct ctx *ctx, int argc, char **argv);

#endif
