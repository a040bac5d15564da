// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ring buffer: a step is a record of 8 bytes, and nobody is woken. The test makes room again.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

/* The address takes as many instructions as it takes: before the steps. */
#define MAP "r6 = %[ring] ll"

/* BPF_RB_NO_WAKEUP is 1. */
#define RESERVE                       \
	"r1 = r6\n\t"                 \
	"r2 = 8\n\t"                  \
	"r3 = 0\n\t"                  \
	"call %[ringbuf_reserve]\n\t" \
	"if r0 != 0 goto +2\n\t"      \
	"r0 = 1\n\t"                  \
	"exit\n\t"                    \
	"r1 = r0\n\t"                 \
	"r2 = 1\n\t"                  \
	"call %[ringbuf_discard]"
STEPS(tc, ringbuf_reserve, 50, 100, 150, MAP, RESERVE, "", HELPER(ringbuf_reserve),
      HELPER(ringbuf_discard), ADDR(ring))

#define OUTPUT         \
	"r1 = r6\n\t"  \
	"r2 = r10\n\t" \
	"r2 += -8\n\t" \
	"r3 = 8\n\t"   \
	"r4 = 1\n\t"   \
	"call %[ringbuf_output]"
STEPS(tc, ringbuf_output, 50, 100, 150, MAP "\n\tr0 = 1\n\t*(u64 *)(r10 - 8) = r0", OUTPUT, "",
      HELPER(ringbuf_output), ADDR(ring))
