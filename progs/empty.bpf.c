// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Empty functions: what the profiler reads for a run of them is the floor. Socket filters need no
 * more privilege than loading itself, and BPF_PROG_TEST_RUN runs them.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("socket")
int empty(struct __sk_buff *ctx)
{
	return 0;
}

/* One function for each number of arguments a BPF function can have. Not static, so that the
 * compiler neither inlines them nor drops arguments; the empty asm keeps the calls. */
__noinline int empty_args0(void)
{
	asm volatile("");
	return 0;
}

__noinline int empty_args1(int a)
{
	asm volatile("" ::"r"(a));
	return 0;
}

__noinline int empty_args2(int a, int b)
{
	asm volatile("" ::"r"(a), "r"(b));
	return 0;
}

__noinline int empty_args3(int a, int b, int c)
{
	asm volatile("" ::"r"(a), "r"(b), "r"(c));
	return 0;
}

__noinline int empty_args4(int a, int b, int c, int d)
{
	asm volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d));
	return 0;
}

__noinline int empty_args5(int a, int b, int c, int d, int e)
{
	asm volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e));
	return 0;
}

SEC("socket")
int empty_callers(struct __sk_buff *ctx)
{
	return empty_args0() + empty_args1(1) + empty_args2(1, 2) + empty_args3(1, 2, 3) +
	       empty_args4(1, 2, 3, 4) + empty_args5(1, 2, 3, 4, 5);
}
