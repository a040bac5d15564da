// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program that the kernel cannot run by itself, and one that it can. */
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
