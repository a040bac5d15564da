// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sleepable programs: reads of user memory that is there, by a program of type syscall (5.14).
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The context is the address. */
#define COPY(size)                                                                   \
	STEPS(syscall, copy_from_user_##size, 50, 100, 150, "r6 = *(u64 *)(r1 + 0)", \
	      "r1 = r10\n\tr1 += -64\n\tr2 = " #size "\n\tr3 = r6\n\t"               \
	      "call %[copy_from_user]",                                              \
	      "", HELPER(copy_from_user))
COPY(8)
COPY(64)
