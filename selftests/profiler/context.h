/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_CONTEXT_H
#define SELFTESTS_CONTEXT_H

/* What context.bpf.c writes down. */
struct record {
	__u64 ctx;
	__u32 tid;
	__u32 is_exit;
};

#define MAX_RECORDS 128

#endif
