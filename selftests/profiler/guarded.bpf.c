// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes the kernel skip the profiler's programs. `again` is at what they call to read a counter,
 * and fires a tracepoint; `inner` is there and calls the target, while the profiler's entry or exit
 * program is running on the CPU already.
 *
 * The kernel does not run one program of this type inside itself, so that the target is another
 * one, in the place of hook() in two of them (replaced.bpf.c).
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u32 pid;  /* of the process whose runs are disturbed; 0: none */
__u32 busy; /* 1: `again` is under way */
__u64 fired;

__noinline int hook(int x)
{
	asm volatile("" : "+r"(x));
	return x;
}

SEC("raw_tp/bpf_trace_printk")
int outer(void *ctx)
{
	return hook(1);
}

SEC("raw_tp/bpf_trace_printk")
int inner(void *ctx)
{
	if (busy)
		hook(2);
	return 0;
}

SEC("kprobe")
int again(void *ctx)
{
	if (busy || bpf_get_current_pid_tgid() >> 32 != pid)
		return 0;
	busy = 1;
	fired++;
	bpf_printk("again");
	busy = 0;
	return 0;
}
