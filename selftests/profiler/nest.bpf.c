// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program for tc that runs again inside itself: it sends what it sees to the device at whose
 * egress it is. The innermost run takes `extra` times 100 instructions more. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u32 ifindex; /* of the device */
__u32 deeper;  /* runs that there shall be inside the next one */
__u32 extra;   /* 0 or 1 */
__u64 runs;

SEC("tc")
int nest(struct __sk_buff *skb)
{
	runs++;
	if (deeper) {
		deeper--;
		bpf_clone_redirect(skb, ifindex, 0);
		return TC_ACT_SHOT;
	}
	/* With and without, the same but for these. */
	asm volatile(
		"if %[extra] == 0 goto +100\n\t.rept 100\n\tr0 = 7\n\t.endr" ::[extra] "r"(extra)
		: "r0");
	return TC_ACT_SHOT;
}
