// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a program is replaced by (freplace). */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("freplace")
int replacement(struct __sk_buff *ctx)
{
	return 0;
}
