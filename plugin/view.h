/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_VIEW_H
#define BPFCOST_VIEW_H

#include "ctx.h"
#include "floor.h"
#include "metrics.h"
#include "progs.h"
#include "window.h"

/* What a view shows: one row is one function of one program over one window. Nothing is owned. */
struct row {
	const struct prog *prog;
	const char *func;
	const struct window *window; /* NULL: it could not be profiled */
	const struct floor *floor;
	const char *why; /* why it could not */
};

struct report {
	const struct metric *const *metrics;
	size_t n_metrics;
	const struct row *rows;
	size_t n_rows;
	bool one;      /* bpftool's shape: a single program was asked for */
	bool interval; /* one of many: JSON gets a line each, with the time */
	__u64 time_ns; /* CLOCK_REALTIME at the end of the window */
};

/* People. One program: what bpftool prints, then our part; several: a table. */
void view__plain(const struct ctx *ctx, const struct report *report);

/* Programs. Exactly one JSON document, and one a line with interval. Returns -ENOMEM. */
int view__json(const struct ctx *ctx, const struct report *report);

/* Prints {"error": "..."} or "Error: ...". */
void view__error(const struct ctx *ctx, const struct errmsg *err);

#endif
