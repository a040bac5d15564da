// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads every event of the CPU that it runs on, as the profiler's programs do. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define MAX_METRICS 16

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__uint(max_entries, 1);
} events SEC(".maps");

__u32 n_metrics;
__u32 cpu;
__s64 err[MAX_METRICS];
struct bpf_perf_event_value values[MAX_METRICS];

SEC("raw_tp/sys_enter")
int read_events(void *ctx)
{
	struct bpf_perf_event_value v;
	__u32 i;

	cpu = bpf_get_smp_processor_id();
	for (i = 0; i < MAX_METRICS; i++) {
		if (i >= n_metrics)
			break;
		err[i] = bpf_perf_event_read_value(&events, cpu * n_metrics + i, &v, sizeof(v));
		values[i] = v;
	}
	return 0;
}
