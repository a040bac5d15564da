// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Loops that the kernel makes: bpf_loop() (5.17). A step is an iteration, with an empty callback.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static int nothing(__u32 i, void *data)
{
	return 0;
}

#define LOOP(n)                                            \
	SEC("tc")                                          \
	int bpf_loop_##n(struct __sk_buff *ctx)            \
	{                                                  \
		return bpf_loop(n, nothing, NULL, 0) != n; \
	}
LOOP(50)
LOOP(100)
LOOP(150)
