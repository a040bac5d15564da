// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Straight-line code: each BPF instruction of a step is run once. ALU and moves, loads and stores
 * to the stack, to the context and to the packet.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

STEPS(tc, alu, 500, 1000, 1500, "r0 = 1", "r0 += r0", "")
STEPS(tc, alu32, 500, 1000, 1500, "r0 = 1", "w0 += w0", "")
STEPS(tc, mov, 500, 1000, 1500, "", "r0 = r1", "")
STEPS(tc, mov_imm, 500, 1000, 1500, "", "r0 = 7", "")

STEPS(tc, stack_store, 500, 1000, 1500, "r0 = 1", "*(u64 *)(r10 - 8) = r0", "")
STEPS(tc, stack_load, 500, 1000, 1500, "r0 = 1\n\t*(u64 *)(r10 - 8) = r0", "r0 = *(u64 *)(r10 - 8)",
      "")

/* len and mark of struct __sk_buff, data of struct xdp_md: one field of the kernel's structure. */
STEPS(tc, ctx_load, 500, 1000, 1500, "", "r0 = *(u32 *)(r1 + 0)", "")
STEPS(tc, ctx_store, 500, 1000, 1500, "r0 = 1", "*(u32 *)(r1 + 8) = r0", "")
STEPS(xdp, xdp_load, 500, 1000, 1500, "", "r0 = *(u32 *)(r1 + 0)", "")

/* data and data_end; 14 bytes must be there. */
#define PACKET                       \
	"r2 = *(u32 *)(r1 + 76)\n\t" \
	"r3 = *(u32 *)(r1 + 80)\n\t" \
	"r4 = r2\n\t"                \
	"r4 += 14\n\t"               \
	"if r4 <= r3 goto +2\n\t"    \
	"r0 = 0\n\t"                 \
	"exit\n\t"                   \
	"r0 = 1"
STEPS(tc, packet_load, 500, 1000, 1500, PACKET, "r0 = *(u32 *)(r2 + 4)", "")
STEPS(tc, packet_store, 500, 1000, 1500, PACKET, "*(u32 *)(r2 + 4) = r0", "")
