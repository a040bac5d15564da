// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Straight-line programs: N instructions more than `return 0`, in BPF and in the images that the
 * JITs of x86-64 and arm64 make of it.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* asm, for the compiler would fold the additions into one. */
#define STRAIGHT(n)                                                       \
	SEC("socket")                                                     \
	int straight##n(struct __sk_buff *skb)                            \
	{                                                                 \
		asm volatile(".rept " #n "\n\tr0 = 7\n\t.endr" ::: "r0"); \
		return 0;                                                 \
	}

STRAIGHT(0)
STRAIGHT(1)
STRAIGHT(10)
STRAIGHT(100)
STRAIGHT(1000)
