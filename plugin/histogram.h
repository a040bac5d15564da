/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_HISTOGRAM_H
#define BPFCOST_HISTOGRAM_H

#include <linux/types.h>
#include <stddef.h>

#include "profiler_state.h"

/*
 * Buckets of the distribution that progs/profiler.bpf.c counts: below 8 one for each value, above 8
 * equal parts of each power of two.
 */
#define HISTOGRAM_BUCKETS PROFILER_HIST_BUCKETS

/* Lowest and highest value of a bucket. */
__u64 histogram__from(size_t bucket);
__u64 histogram__to(size_t bucket);

/* The highest value of the bucket in which the given part (0 to 1) of all runs is reached: at most
 * an eighth above the true percentile. 0 without runs. */
__u64 histogram__percentile(const __u64 *buckets, double part);

#endif
