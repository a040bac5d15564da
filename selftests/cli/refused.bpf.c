// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program that the verifier refuses: what a map has may be nothing. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} numbers SEC(".maps");

SEC("socket")
int fine(struct __sk_buff *ctx)
{
	return 0;
}

SEC("socket")
int refused(struct __sk_buff *ctx)
{
	__u32 i, sum = 0, *v;

	for (i = 0; i < 100; i++)
		sum += i * ctx->len;
	v = bpf_map_lookup_elem(&numbers, &i);
	return *v + sum;
}
