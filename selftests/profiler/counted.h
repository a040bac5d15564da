/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_COUNTED_H
#define SELFTESTS_COUNTED_H

#define MAX_CPUS 64

/* A cache line a CPU. */
struct count {
	__u64 runs;
	__u64 unused[7];
};

#endif
