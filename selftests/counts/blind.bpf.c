// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program that is only reached by tail call, the one that calls it, and one that is neither. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int callee(struct __sk_buff *ctx)
{
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__uint(key_size, 4);
	__array(values, int(void *));
} jumps SEC(".maps") = {
	.values = {[5] = (void *)&callee},
};

SEC("tc")
int caller(struct __sk_buff *ctx)
{
	bpf_tail_call(ctx, &jumps, 5);
	return 1;
}

SEC("tc")
int neither(struct __sk_buff *ctx)
{
	return 0;
}
