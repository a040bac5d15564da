// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Task storage (5.11; for more than LSM programs 5.12): the current task's, which is there.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} storage SEC(".maps");

/* The map's address is loaded before the steps (see map.bpf.c). The first of all runs makes it (BPF_LOCAL_STORAGE_GET_F_CREATE is 1). */
#define BEFORE                             \
	"call %[get_current_task_btf]\n\t" \
	"r6 = r0\n\t"                      \
	"r7 = %[storage] ll\n\t"           \
	"r1 = r7\n\t"                      \
	"r2 = r6\n\t"                      \
	"r3 = 0\n\t"                       \
	"r4 = 1\n\t"                       \
	"call %[task_storage_get]"
#define GET           \
	"r1 = r7\n\t" \
	"r2 = r6\n\t" \
	"r3 = 0\n\t"  \
	"r4 = 0\n\t"  \
	"call %[task_storage_get]"
STEPS(raw_tp, task_storage_get, 50, 100, 150, BEFORE, GET, "", HELPER(get_current_task_btf),
      HELPER(task_storage_get), ADDR(storage))
