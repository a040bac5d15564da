/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_COUNTED_H
#define SELFTESTS_COUNTED_H

#define MAX_CPUS 64

/* A cache line a CPU. */
struct count {
	__u64 runs;
	__u64 unused[7];
};

/* What the program has counted itself, of MAX_CPUS. */
static inline __u64 counted_runs(const struct count *on_cpu)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < MAX_CPUS; i++)
		sum += on_cpu[i].runs;
	return sum;
}

#endif
