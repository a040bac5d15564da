// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Spin locks: a step takes one that nobody holds, and releases it.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct locked {
	struct bpf_spin_lock lock;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct locked);
} locks SEC(".maps");

#define BEFORE                        \
	"r1 = 0\n\t"                  \
	"*(u32 *)(r10 - 4) = r1\n\t"  \
	"r1 = %[locks] ll\n\t"        \
	"r2 = r10\n\t"                \
	"r2 += -4\n\t"                \
	"call %[map_lookup_elem]\n\t" \
	"if r0 != 0 goto +2\n\t"      \
	"r0 = 1\n\t"                  \
	"exit\n\t"                    \
	"r6 = r0"
#define PAIR                    \
	"r1 = r6\n\t"           \
	"call %[spin_lock]\n\t" \
	"r1 = r6\n\t"           \
	"call %[spin_unlock]"
STEPS(tc, spin_lock, 50, 100, 150, BEFORE, PAIR, "", HELPER(map_lookup_elem), HELPER(spin_lock),
      HELPER(spin_unlock), ADDR(locks))
