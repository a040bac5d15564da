// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Atomic operations on the stack. Those that fetch are newer (5.12).
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * clang 14's assembler does not know those that fetch, so that they are written as numbers: from
 * the right the code (BPF_STX | BPF_DW | BPF_ATOMIC), r1 and r10, the offset -8, and the operation.
 */
#define ATOMIC(operation) ".8byte " #operation "fff81adb"

#define ZERO "r0 = 0\n\tr1 = 0\n\t*(u64 *)(r10 - 8) = r0"
STEPS(tc, atomic_add, 100, 200, 300, ZERO, "lock *(u64 *)(r10 - 8) += r1", "")
STEPS(tc, atomic_fetch_add, 100, 200, 300, ZERO, ATOMIC(0x00000001), "")
STEPS(tc, atomic_xchg, 100, 200, 300, ZERO, ATOMIC(0x000000e1), "")
STEPS(tc, atomic_cmpxchg, 100, 200, 300, ZERO, ATOMIC(0x000000f1), "")
