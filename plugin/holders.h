/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_HOLDERS_H
#define BPFCOST_HOLDERS_H

#include <stddef.h>

#include "errmsg.h"
#include "process.h"

/*
 * Who holds the switch of the statistics by stats fds, as far as /proc shows it. Fds that are in no
 * process (in flight over a socket, in the queue of io_uring) and those of processes outside of our
 * pid namespace are not in /proc.
 *
 * Since when a process has its fd the kernel does not know: an anonymous inode has no times of its
 * own, and those of the link /proc/PID/fd/N are of the moment when somebody first looked at it. A
 * process cannot have it for longer than it runs, so that started_ns is the earliest time; what it
 * refers to can be older, if it was inherited or passed.
 */

struct holder {
	struct process process;
	unsigned fds;
};

struct holders {
	struct holder *v; /* by pid */
	size_t n;
	unsigned fds; /* of all of them */
	int files;    /* how many open files they are (dup, fork and passing share one): what
				    the kernel counts; -1: not known, since kcmp(2) was refused */
	struct process_walk seen; /* how much of the machine was looked at */
};

/* Returns 0 or a negative errno with a message; holders__close() in any case. */
int holders__read(struct holders *h, const char *proc_root, struct errmsg *err);
void holders__close(struct holders *h);

#endif
