// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes down the context address of each entry and exit of a function. Runs on one CPU only. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#include "context.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct record records[MAX_RECORDS];
__u32 n_records;

static __always_inline int write_down(void *ctx, __u32 is_exit)
{
	__u32 i = n_records;

	if (i >= MAX_RECORDS)
		return 0;
	n_records = i + 1;
	records[i].ctx = (__u64)ctx;
	records[i].tid = bpf_get_current_pid_tgid();
	records[i].is_exit = is_exit;
	return 0;
}

SEC("fentry/target")
int context_entry(void *ctx)
{
	return write_down(ctx, 0);
}

SEC("fexit/target")
int context_exit(void *ctx)
{
	return write_down(ctx, 1);
}
