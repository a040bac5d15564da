// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program that the kernel cannot run by itself, one that it can, and one of type syscall. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Processes that run a command. */
SEC("tp/sched/sched_process_exec")
int on_exec(void *ctx)
{
	return 0;
}

SEC("socket")
int nothing(struct __sk_buff *ctx)
{
	return 0;
}

/* Loaded only where a test asks for it: 5.14 and later have the type. */
SEC("?syscall")
int number(__u64 *ctx)
{
	return *ctx;
}
