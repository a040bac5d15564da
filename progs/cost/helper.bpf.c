// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Helpers, by themselves: those that verifiers or JITs inline today or will one day, and those that
 * they do not.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define HELPERS(type, name) \
	STEPS(type, name, 50, 100, 150, "", "call %[" #name "]", "", HELPER(name))

HELPERS(tc, get_smp_processor_id)
HELPERS(tc, get_numa_node_id)
HELPERS(tc, jiffies64)
HELPERS(tc, ktime_get_ns)
HELPERS(tc, get_prandom_u32)
HELPERS(raw_tp, get_current_task)
HELPERS(raw_tp, get_current_pid_tgid)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64[128]);
} buffer SEC(".maps");

/* From the second half of a map's value to the first. */
#define BUFFER                        \
	"r1 = 0\n\t"                  \
	"*(u32 *)(r10 - 4) = r1\n\t"  \
	"r1 = %[buffer] ll\n\t"       \
	"r2 = r10\n\t"                \
	"r2 += -4\n\t"                \
	"call %[map_lookup_elem]\n\t" \
	"if r0 != 0 goto +1\n\t"      \
	"exit\n\t"                    \
	"r6 = r0\n\t"                 \
	"r7 = r0\n\t"                 \
	"r7 += 512"
#define PROBE_READ(size, n1, n2, n3)                                                   \
	STEPS(raw_tp, probe_read_kernel_##size, n1, n2, n3, BUFFER,                    \
	      "r1 = r6\n\tr2 = " #size "\n\tr3 = r7\n\tcall %[probe_read_kernel]", "", \
	      HELPER(map_lookup_elem), HELPER(probe_read_kernel), ADDR(buffer))
PROBE_READ(8, 50, 100, 150)
PROBE_READ(64, 50, 100, 150)
PROBE_READ(512, 10, 20, 30)
