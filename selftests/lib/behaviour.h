/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_BEHAVIOUR_H
#define SELFTESTS_BEHAVIOUR_H

/*
 * What differs from kernel to kernel, as data. A test names the behaviours that it needs, never a
 * version: distributions backport, and configurations leave out. Each behaviour is probed, and the
 * probe never asks the statistics themselves what it is that they should count, or a broken kernel
 * would be taken for an old one.
 */

#include <stdbool.h>
#include <stddef.h>

/* Bits, so that a test can need several. */
enum behaviour {
	BH_RECURSION_MISSES = 1 << 0,
	BH_SLEEPABLE_COUNTED = 1 << 1,
	BH_SYSCALL_PROG = 1 << 2,
	BH_USERFAULTFD = 1 << 3,
	BH_PIDFD_GETFD = 1 << 4,
	BH_USER_NS = 1 << 5,
	BH_FENTRY_KERNEL = 1 << 6,
	BH_FENTRY_BPF = 1 << 7,
	BH_FMOD_RET = 1 << 8,
	BH_FSESSION = 1 << 9,
	BH_SLEEPABLE_FENTRY = 1 << 10,
	BH_LSM = 1 << 11,
	BH_STRUCT_OPS_RUN = 1 << 12,
	BH_ITER = 1 << 13,
	BH_TIMER = 1 << 14,
	BH_WORKQUEUE = 1 << 15,
	BH_TRACEPOINT = 1 << 16,
	BH_KPROBE = 1 << 17,
	BH_UPROBE = 1 << 18,
	BH_KPROBE_MULTI = 1 << 19,
	BH_NET_NS = 1 << 20,
	BH_UNPRIVILEGED_INFO = 1 << 21,
	BH_XDP_LIVE_FRAMES = 1 << 22,
	BH_NETFILTER = 1 << 23,
	BH_SLEEPABLE_UPROBE = 1 << 24,
	BH_FREPLACE = 1 << 25,
};

/* Types of programs that the headers of an older libc lack. */
#define BPF_PROG_TYPE_NETFILTER_ 32
#define BPF_NETFILTER_		 45

struct behaviour_info {
	enum behaviour bit;
	const char *name;
	const char *since;    /* the first release that has it */
	const char *what;     /* what is different from there on */
	const char *probe_by; /* how we find out */
	/* 0: this kernel has it; else a negative errno of what was refused. */
	int (*probe)(void);
};

/* Ends with an entry without a name. */
extern const struct behaviour_info behaviours[];

/* What was found so far: a probe that attaches takes a second under emulation. Starts as zeros. */
struct behaviour_found {
	unsigned int probed; /* of enum behaviour */
	int rc[32];	     /* by the number of the bit: what the probe returned */
};

/* Looks for all of @needs, each of which is probed once for @found. Returns true if all are there,
 * else false, with what is missing, since when it exists, and what the probe was told, in @why. */
bool behaviour__have(struct behaviour_found *found, unsigned int needs, char *why, size_t size);

#endif
