// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs for prog bench: of several types, with a map, and such that tell how they were run. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* How the programs first and second were run. */
struct trace {
	__u64 runs;
	__u64 turns; /* how often it was the other one's turn */
	__u64 cpus;  /* a bit each */
	__u64 last;
};

/* A map that would be pinned, if it were not for prog bench. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} bpfcost_trace SEC(".maps");

static __always_inline int trace(__u64 me)
{
	__u32 zero = 0;
	struct trace *t = bpf_map_lookup_elem(&bpfcost_trace, &zero);

	if (!t)
		return -1;
	t->runs++;
	t->cpus |= 1ULL << (bpf_get_smp_processor_id() & 63);
	if (t->last != me)
		t->turns++;
	t->last = me;
	return 0;
}

SEC("socket")
int first(struct __sk_buff *ctx)
{
	return trace(1);
}

SEC("socket")
int second(struct __sk_buff *ctx)
{
	return trace(2);
}

#define TELL(what)                                                            \
	SEC("socket")                                                         \
	int tell_##what(struct __sk_buff *ctx)                                \
	{                                                                     \
		__u32 zero = 0;                                               \
		struct trace *t = bpf_map_lookup_elem(&bpfcost_trace, &zero); \
                                                                              \
		return t ? t->what : -1;                                      \
	}

TELL(runs)
TELL(turns)
TELL(cpus)

SEC("tc")
int mark(struct __sk_buff *ctx)
{
	return ctx->mark;
}

SEC("xdp")
int size(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data;
}

SEC("raw_tp")
int first_argument(struct bpf_raw_tracepoint_args *ctx)
{
	return ctx->args[0];
}
