/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_WINDOW_H
#define BPFCOST_WINDOW_H

#include "sample.h"

/*
 * A window: the difference of two samples, summed over the CPUs. This is the one place where
 * counters are subtracted and scaled, and where the floor is taken off.
 */

struct window_metric {
	double value;  /* gross, over the measured runs; scaled where it is an estimate */
	double floor;  /* a run */
	double net;    /* value - floor * runs in value - what measuring calls in it cost */
	double self;   /* net less that of the calls in it; only with calls */
	__u64 enabled; /* ns, all CPUs */
	__u64 running; /* ns, all CPUs */
	bool estimate; /* scaled: multiplexed, or sampled */
};

/* A process: gross and net of the measured runs in it. */
struct window_task {
	__u32 tgid; /* SAMPLE_TASK_OTHER: what found no room */
	char comm[16];
	__u64 measured;
	double value[SAMPLE_MAX_METRICS];
	double net[SAMPLE_MAX_METRICS];
};

struct window {
	__u64 time_ns; /* how long */
	/* measured + switched + lost + skipped = run_cnt */
	__u64 run_cnt;
	__u64 measured;
	__u64 switched;
	__u64 skipped;
	__u64 lost;
	/* lost, by reason: */
	__u64 lost_entry; /* the kernel skipped the entry program, or the run began before it */
	__u64 lost_exit;  /* the kernel skipped the exit program */
	__u64 lost_deep;  /* more runs in flight on one CPU than there are slots */
	__u64 lost_read;  /* a counter could not be read */
	bool sampled;
	bool calls;
	__u64 with_self; /* measured runs that are in self */
	size_t n_metrics;
	struct window_metric *metric;
	/* On request only: */
	__u64 *histogram;	   /* measured runs by net value of metric 0 (histogram.h) */
	struct window_task *tasks; /* those with runs in the window, the dearest first */
	size_t n_tasks;
};

/*
 * Fills @w from two samples of one target, @from before @to. @floor: a run's floor for each metric,
 * or NULL (0). Scaling of multiplexed events: for each CPU, value * enabled / running, as perf does
 * (tools/perf/util/counts.c); a CPU whose event never ran in the window contributes nothing and
 * makes the window an estimate. -ENOMEM, or -EINVAL if the samples do not match.
 */
int window__init(struct window *w, const struct sample *from, const struct sample *to,
		 const double *floor);
void window__free(struct window *w);

#endif
