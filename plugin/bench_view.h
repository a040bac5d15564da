/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_BENCH_VIEW_H
#define BPFCOST_BENCH_VIEW_H

#include "bench.h"
#include "machine.h"

/* What this version writes; prog compare reads no other. */
#define BENCH_FORMAT "bpfcost-bench-1"

/* The confidence of intervals, and below which p a difference is one. */
#define BENCH_CONFIDENCE 0.95

/* What people read. */
void bench_view__plain(const struct ctx *ctx, const struct bench *b, const struct machine *m);

/* Exactly one JSON document, with every measurement: what prog compare reads. -ENOMEM. */
int bench_view__json(const struct ctx *ctx, const struct bench *b, const struct machine *m);

/*
 * Go's benchmark format (https://go.dev/design/14313-benchmark-format), a line a measurement: what
 * benchstat reads.
 */
void bench_view__go(const struct ctx *ctx, const struct bench *b, const struct machine *m);

#endif
