// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program that works in a callback of a timer, and one that has the same map and no timer. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CLOCK_MONOTONIC 1

struct value {
	__u64 fired;
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct value);
} timers SEC(".maps");

static int fire(void *map, __u32 *key, struct value *v)
{
	__sync_fetch_and_add(&v->fired, 1);
	bpf_timer_start(&v->timer, 1000000, 0);
	return 0;
}

SEC("tc")
int arms_timer(struct __sk_buff *ctx)
{
	__u32 key = 0;
	struct value *v = bpf_map_lookup_elem(&timers, &key);

	if (!v)
		return 0;
	bpf_timer_init(&v->timer, &timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&v->timer, fire);
	bpf_timer_start(&v->timer, 1000000, 0);
	return 0;
}

SEC("tc")
int no_timer(struct __sk_buff *ctx)
{
	return 0;
}
