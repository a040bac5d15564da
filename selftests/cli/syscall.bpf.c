// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program that a system call runs, once: 5.14 and later have the type. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("syscall")
int number(__u64 *ctx)
{
	int value = *ctx;

	/* The kernel hands it back: the next run must not see this. */
	*ctx = 7;
	return value;
}
