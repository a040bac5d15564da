// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs to profile: straight-line programs of a known number of instructions more than an empty
 * one, and one with subprograms.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ADD1 "r0 += 1;"
#define ADD9 ADD1 ADD1 ADD1 ADD1 ADD1 ADD1 ADD1 ADD1 ADD1
#define ADD10 ADD9 ADD1
#define ADD90 ADD10 ADD10 ADD10 ADD10 ADD10 ADD10 ADD10 ADD10 ADD10
#define ADD100 ADD90 ADD10
#define ADD900 ADD100 ADD100 ADD100 ADD100 ADD100 ADD100 ADD100 ADD100 ADD100

/* slower.bpf.c is this file with one instruction more in alu100. */
#ifndef ONE_MORE
#define ONE_MORE ""
#endif

/* Exactly N instructions more than `return 0`: the compiler keeps the asm as it is, and adds what
 * it adds to an empty program. One instruction each in the JIT's image too, on x86-64 and arm64. */
#define STRAIGHT_LINE(n, body)                                                                     \
	SEC("socket")                                                                              \
	int alu##n(struct __sk_buff *ctx)                                                          \
	{                                                                                          \
		asm volatile(body "" ::: "r0");                                                    \
		return 0;                                                                          \
	}

STRAIGHT_LINE(0, "")
STRAIGHT_LINE(1, "r0 = 7;")
STRAIGHT_LINE(10, "r0 = 7;" ADD9)
STRAIGHT_LINE(100, "r0 = 7;" ADD9 ADD90 ONE_MORE)
STRAIGHT_LINE(1000, "r0 = 7;" ADD9 ADD90 ADD900)

/* A name that the kernel cuts at 15 characters: the same up to there as the next one's. */
SEC("socket")
int a_name_longer_than_the_kernel_keeps(struct __sk_buff *ctx)
{
	return 0;
}

SEC("socket")
int a_name_longer_than_bpftool_takes(struct __sk_buff *ctx)
{
	return 0;
}

__noinline int sub_global(int a, int b)
{
	asm volatile("" ::"r"(a), "r"(b));
	return a + b;
}

static __noinline int sub_static(int a)
{
	asm volatile("" ::"r"(a));
	return a + 1;
}

SEC("socket")
int with_subprograms(struct __sk_buff *ctx)
{
	return sub_global(ctx->len, 1) + sub_static(ctx->len) + sub_global(ctx->len, 2);
}
