// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which processes have a program, or a link to one, open: an iterator over all open files.
 *
 * What kind of file it is tell its operations, whose addresses /proc/kallsyms may hide, or may not
 * have. But the one who asks has a program and a link open, the iterator's own. So it is run twice:
 * the first time it learns from these two files what the operations are.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "owners_record.h"

/* What is used of the kernel's structures. */
#define KERNEL __attribute__((preserve_access_index))

struct bpf_prog_aux {
	__u32 id;
} KERNEL;

struct bpf_prog {
	struct bpf_prog_aux *aux;
} KERNEL;

struct bpf_link {
	struct bpf_prog *prog;
} KERNEL;

struct file {
	const void *f_op;
	void *private_data;
} KERNEL;

struct task_struct {
	int tgid;
	struct task_struct *group_leader;
	char comm[16];
} KERNEL;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
} KERNEL;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Who asks, and what it knows its fds to be. */
int self_tgid = 0;
int self_prog_fd = 0;
int self_link_fd = 0;
/* Learned the first time; then it is set to false. */
bool learn = true;
__u64 prog_ops = 0;
__u64 link_ops = 0;

SEC("iter/task_file")
int bpfcost_owners(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct owners_record record = {};
	struct bpf_prog *prog;
	__u64 ops;

	/* Both are NULL after the last file. */
	if (!task || !file)
		return 0;
	ops = (__u64)file->f_op;
	if (learn) {
		if (task->tgid == self_tgid && (int)ctx->fd == self_prog_fd)
			prog_ops = ops;
		if (task->tgid == self_tgid && (int)ctx->fd == self_link_fd)
			link_ops = ops;
		return 0;
	}
	if (ops == prog_ops) {
		prog = file->private_data;
	} else if (ops == link_ops) {
		prog = BPF_CORE_READ((struct bpf_link *)file->private_data, prog);
		record.is_link = 1;
	} else {
		return 0;
	}
	/* A link of struct_ops has no program. */
	if (!prog)
		return 0;
	record.prog_id = BPF_CORE_READ(prog, aux, id);
	record.tgid = task->tgid;
	record.fd = ctx->fd;
	BPF_CORE_READ_STR_INTO(&record.comm, task, group_leader, comm);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
