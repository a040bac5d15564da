/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_OWNERS_H
#define BPFCOST_OWNERS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "errmsg.h"
#include "process.h"

/*
 * Who a program belongs to: the processes that have it, or a link to it, open. Pinned files, other
 * programs and attachments without a link hold programs too, and are no processes.
 */

enum owners_how {
	OWNERS_ITER,   /* a BPF iterator over all open files (5.8); sees all processes */
	OWNERS_FDINFO, /* /proc/PID/fdinfo: what /proc shows */
};

struct owner {
	__u32 prog_id;
	unsigned prog_fds, link_fds;   /* how many it has open */
	const struct process *process; /* comm is set at least */
};

struct owners {
	struct owner *v; /* by prog_id, then by pid */
	size_t n;
	struct process *processes; /* each once */
	size_t n_processes;
	enum owners_how how;
	/* OWNERS_FDINFO: what it could not see, as in struct process_walk. */
	bool incomplete;
	unsigned unseen;
};

/* Finds the owners of the programs @ids, without ourselves: by the iterator if this kernel, and our
 * rights, allow it, else by /proc. Returns 0 or a negative errno with a message; owners__close() in
 * any case. */
int owners__read(struct owners *o, const char *proc_root, const __u32 *ids, size_t n_ids,
		 struct errmsg *err);

/* The same by one of the two ways only. */
int owners__read_by(struct owners *o, enum owners_how how, const char *proc_root, const __u32 *ids,
		    size_t n_ids, struct errmsg *err);

/* The owners of one program: an array of *@n, or NULL. */
const struct owner *owners__of(const struct owners *o, __u32 prog_id, size_t *n);

void owners__close(struct owners *o);

#endif
