// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Branches and loops that the program itself makes.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The length of the packet is not 0, and no verifier knows. It is loaded again in each step, or
 * the second step's branch would be known from the first's. */
#define LENGTH "r2 = *(u32 *)(r1 + 0)\n\t"
STEPS(tc, branch_taken, 200, 400, 600, "", LENGTH "if r2 != 0 goto +1\n\tr0 = 7", "")
STEPS(tc, branch_not_taken, 200, 400, 600, "", LENGTH "if r2 == 0 goto +1\n\tr0 = 7", "")

/* A step is an iteration, so that the code is the same for each N. */
#define LOOP(n)                   \
	PROGRAM(tc, loop, n,      \
		"r1 = " #n "\n\t" \
		"r1 += -1\n\t"    \
		"if r1 != 0 goto -2")
LOOP(200)
LOOP(400)
LOOP(600)
