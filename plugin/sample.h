/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_SAMPLE_H
#define BPFCOST_SAMPLE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * A sample: all raw, cumulative counters of one target function at one moment. It is plain data, so
 * that it can come from the kernel or from a file. Only windows (window.h) take differences.
 */

/* What a counter did on one CPU. Times in ns. */
struct sample_metric {
	__u64 value;
	__u64 enabled;
	__u64 running;
	__u64 self;	/* value less that of calls (struct profiler_event); 0 without calls */
	__u64 overhead; /* of measuring the calls, in value */
};

/* One CPU. See struct profiler_cpu for what the counts mean. */
struct sample_cpu {
	__u64 measured;
	__u64 switched;
	__u64 lost_pair;
	__u64 lost_read;
	__u64 full;
	__u64 with_self;
	__u64 entries; /* 0 without sampling */
	__u64 in_flight;
};

#define SAMPLE_MAX_METRICS 17
#define SAMPLE_TASK_OTHER  0xffffffff /* what found no room: not a process */

/* One process: sums over the measured runs that happened in it. */
struct sample_task {
	__u32 tgid;
	char comm[16];
	__u64 measured;
	__u64 value[SAMPLE_MAX_METRICS];
};

struct sample {
	__u64 time_ns;	       /* CLOCK_MONOTONIC */
	__u64 entry_missed;    /* recursion_misses of the entry program, all CPUs; 0 on
				* kernels that skip none (before 5.12) */
	__u64 exit_missed;     /* and of the exit program */
	unsigned sample_every; /* 0: every run is measured */
	bool multiplexed;
	bool calls;
	size_t n_cpus; /* rows: CPU ids from 0 to n_cpus - 1, also those that do not exist */
	size_t n_metrics;
	struct sample_cpu *cpu;
	struct sample_metric *metric; /* [cpu * n_metrics + metric] */
	/* On request only: runs by net value of metric 0 (histogram.h has the buckets). */
	__u64 *histogram;
	struct sample_task *tasks;
	size_t n_tasks;
};

/* Allocates the rows. -ENOMEM. */
int sample__init(struct sample *s, size_t n_cpus, size_t n_metrics);
void sample__free(struct sample *s);

#endif
