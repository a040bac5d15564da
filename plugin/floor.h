/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_FLOOR_H
#define BPFCOST_FLOOR_H

#include "errmsg.h"
#include "profiler.h"

/*
 * The floor: what the profiler, with the same metrics on this machine, reads for a run of an empty
 * function (`return 0`). The trampoline restores the function's arguments between the two readings,
 * so that the floor depends on their number.
 */
struct floor {
	size_t n_metrics;
	double *value; /* a run, in the metric's unit: the median of the batches */
	double *low;   /* the spread: 10th and 90th percentile of the batches */
	double *high;
};

#define FLOOR_MAX_ARGS 5 /* what a BPF function can have */

/* Measures it by BPF_PROG_TEST_RUN of a program of our own. */
int floor__measure(struct floor *f, const struct profiler_opts *opts, unsigned args,
		   struct errmsg *err);
/*
 * What measuring a call of a function with @args arguments costs its caller, by metric, in @added
 * (opts->n_metrics of them): an empty function is called with and without being measured.
 * @opts->calls is set.
 */
int floor__added(double *added, const struct profiler_opts *opts, unsigned args,
		 struct errmsg *err);

/*
 * The floor of the kernel's statistics: run_time_ns / run_cnt of an empty program, whose fd is @fd,
 * while they are on. One metric, in ns.
 */
int floor__statistics(struct floor *f, int fd, struct errmsg *err);
/* The same with an empty program of our own. */
int floor__measure_statistics(struct floor *f, struct errmsg *err);

/* -ENOMEM. */
int floor__copy(struct floor *to, const struct floor *from);
void floor__free(struct floor *f);

#endif
