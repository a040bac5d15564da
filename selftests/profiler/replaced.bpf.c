// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The target of guarded.c. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 runs;

SEC("freplace/hook")
int target(int x)
{
	runs++;
	return 0;
}
