// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Open-coded iterators (6.4): a step is bpf_iter_num_next() and what the loop makes of it.
 */
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* As the kernel has it since 6.4; older headers have not. */
struct bpf_iter_num___cost {
	__u64 opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_num_new(struct bpf_iter_num___cost *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num___cost *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num___cost *it) __ksym;

#define ITERATE(n)                              \
	SEC("tc")                               \
	int iter_num_##n(struct __sk_buff *ctx) \
	{                                       \
		struct bpf_iter_num___cost it;  \
                                                \
		bpf_iter_num_new(&it, 0, n);    \
		while (bpf_iter_num_next(&it))  \
			;                       \
		bpf_iter_num_destroy(&it);      \
		return 0;                       \
	}
ITERATE(50)
ITERATE(100)
ITERATE(150)
