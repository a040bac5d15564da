// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of subprograms: many of one that is empty, and chains of them up to 6 deep (8 frames is
 * what the verifier allows).
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

FUNCTION_STATIC int static_1(void)
{
	asm volatile("r0 = 0\n\texit");
}

FUNCTION_GLOBAL int global_1(void)
{
	asm volatile("r0 = 0\n\texit");
}

STEPS(tc, call_static, 50, 100, 150, "", "call static_1", "")
STEPS(tc, call_global, 50, 100, 150, "", "call global_1", "")

#define LEVEL(kind, KIND, n, next)                                \
	FUNCTION_##KIND int kind##_##n(void)                      \
	{                                                         \
		asm volatile("call " #kind "_" #next "\n\texit"); \
	}
#define LEVELS(kind, KIND)      \
	LEVEL(kind, KIND, 2, 1) \
	LEVEL(kind, KIND, 3, 2) \
	LEVEL(kind, KIND, 4, 3) \
	LEVEL(kind, KIND, 5, 4) \
	LEVEL(kind, KIND, 6, 5)
LEVELS(static, STATIC)
LEVELS(global, GLOBAL)

/* FAMILY_N: N frames below the program's own. */
#define DEEP(kind, n) PROGRAM(tc, deep_##kind, n, "call " #kind "_" #n)
DEEP(static, 2)
DEEP(static, 4)
DEEP(static, 6)
DEEP(global, 2)
DEEP(global, 4)
DEEP(global, 6)
