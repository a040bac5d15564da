// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "histogram.h"

__u64 histogram__from(size_t bucket)
{
	size_t octave = bucket / PROFILER_HIST_SUB, sub = bucket % PROFILER_HIST_SUB;

	if (!octave)
		return sub;
	return (__u64)(PROFILER_HIST_SUB + sub) << (octave - 1);
}

__u64 histogram__to(size_t bucket)
{
	size_t octave = bucket / PROFILER_HIST_SUB;

	if (!octave)
		return bucket;
	return histogram__from(bucket) + (((__u64)1 << (octave - 1)) - 1);
}

__u64 histogram__percentile(const __u64 *buckets, double part)
{
	__u64 total = 0, seen = 0;
	size_t i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		total += buckets[i];
	for (i = 0; total && i < HISTOGRAM_BUCKETS; i++) {
		seen += buckets[i];
		if (buckets[i] && seen >= part * total)
			return histogram__to(i);
	}
	return 0;
}
