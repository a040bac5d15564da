// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs that count their runs by themselves. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#include "counted.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct count on_cpu[MAX_CPUS];

/* Atomic, for an interrupt may come between the load and the store. */
static __always_inline int count(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	if (cpu < MAX_CPUS)
		__sync_fetch_and_add(&on_cpu[cpu].runs, 1);
	return 0;
}

SEC("socket")
int counted(struct __sk_buff *skb)
{
	return count();
}

/* At several places at once: in tasks, and in interrupts that meet it there. */
SEC("raw_tp")
int counted_anywhere(void *ctx)
{
	return count();
}
