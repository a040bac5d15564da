// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tail calls: a chain of as many as kernels allow, which is 33. A word of the socket buffer that
 * belongs to the program (cb[0], at 48) says how many are left.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} stages SEC(".maps");

/* The context of the next program is in r6. */
#define NEXT                    \
	"r1 = r6\n\t"           \
	"r2 = %[stages] ll\n\t" \
	"r3 = 0\n\t"            \
	"call %[tail_call]\n\t"

/* A chain that was cut short returns 1. */
#define CHAIN(name, begin)                                                                      \
	SEC("tc")                                                                               \
	int name(struct __sk_buff *ctx)                                                         \
	{                                                                                       \
		register void *r1 asm("r1") = ctx;                                              \
                                                                                                \
		asm volatile("r6 = r1\n\t" begin NEXT                                           \
			     : "+r"(r1)                                                         \
			     : HELPER(tail_call), ADDR(stages)                                  \
			     : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "memory"); \
		return 1;                                                                       \
	}

#define FIRST(n) CHAIN(tail_call_##n, "r0 = " #n "\n\t*(u32 *)(r6 + 48) = r0\n\t")
FIRST(11)
FIRST(22)
FIRST(33)

/* One more than the limit: its last call does not happen. */
CHAIN(tail_call_beyond, "r0 = 34\n\t*(u32 *)(r6 + 48) = r0\n\t")

/* The program that the map's entry is. */
CHAIN(stage, "r0 = *(u32 *)(r6 + 48)\n\t"
	     "r0 += -1\n\t"
	     "*(u32 *)(r6 + 48) = r0\n\t"
	     "if r0 != 0 goto +2\n\t"
	     "r0 = 0\n\t"
	     "exit\n\t")
