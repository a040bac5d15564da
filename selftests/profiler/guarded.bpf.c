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
/* Where on the stack the target runs, so that its runs have context addresses of their own. */
__u32 depth;

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

#define DEEPER(n)                              \
	static __noinline int deeper_##n(void) \
	{                                      \
		volatile char pad[40 * n];     \
                                               \
		pad[0] = 0;                    \
		return hook(2) + pad[0];       \
	}
DEEPER(1)
DEEPER(2)
DEEPER(3)
DEEPER(4)
DEEPER(5)
DEEPER(6)
DEEPER(7)
DEEPER(8)
DEEPER(9)
DEEPER(10)

SEC("raw_tp/bpf_trace_printk")
int inner(void *ctx)
{
	if (!busy)
		return 0;
	switch (depth) {
	case 1:
		return deeper_1();
	case 2:
		return deeper_2();
	case 3:
		return deeper_3();
	case 4:
		return deeper_4();
	case 5:
		return deeper_5();
	case 6:
		return deeper_6();
	case 7:
		return deeper_7();
	case 8:
		return deeper_8();
	case 9:
		return deeper_9();
	case 10:
		return deeper_10();
	}
	return hook(2);
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
