// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs of targets.bpf.c, of which alu100 became one instruction longer. */
#define ONE_MORE "r0 += 1;"
#include "targets.bpf.c"
