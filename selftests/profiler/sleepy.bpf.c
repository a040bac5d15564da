// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program that sleeps as long as the page that it reads is not there. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct args {
	__u64 page;
};

__u64 runs;

SEC("syscall")
int sleepy(struct args *args)
{
	char byte = 0;

	__sync_fetch_and_add(&runs, 1);
	bpf_copy_from_user(&byte, sizeof(byte), (void *)args->page);
	return 0;
}
