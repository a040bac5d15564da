/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_STATS_SWITCH_H
#define BPFCOST_STATS_SWITCH_H

#include <signal.h>
#include <stdbool.h>

#include "errmsg.h"

/*
 * The kernel's switch of the run time statistics (bpf_stats_enabled_key). It is on while the sysctl
 * kernel.bpf_stats_enabled is 1 or anybody holds a stats fd.
 */

#define STATS_SWITCH_SYSCTL_NAME "kernel.bpf_stats_enabled"
/* What an administrator types to let go of the sysctl. */
#define STATS_SWITCH_OFF "sysctl " STATS_SWITCH_SYSCTL_NAME "=0"

enum stats_switch_how {
	STATS_SWITCH_FD,      /* an fd of BPF_ENABLE_STATS (5.8): let go when the process ends */
	STATS_SWITCH_SYSCTL,  /* the sysctl, where the kernel has no such fd */
	STATS_SWITCH_FOREIGN, /* somebody else holds it, and we may not: it can end at any time */
};

/* All zero before stats_switch__open(), but for @proc_root. */
struct stats_switch {
	const char *proc_root; /* where to find the sysctl; NULL: "/proc" */
	bool held;	       /* open, in one of the three ways */
	enum stats_switch_how how;
	int fd;	  /* STATS_SWITCH_FD: the stats fd, close-on-exec, above 2 */
	bool set; /* STATS_SWITCH_SYSCTL: the sysctl was 0, and was set by us (or by a bpfcost that
		     is still running): whoever of us is the last sets it back */
	int lock; /* then: the open sysctl, with our locks */
	sigset_t blocked; /* then: signals that we blocked, see below */
};

/*
 * Holds the switch on until stats_switch__close(). With STATS_SWITCH_FD that is also the end of the
 * process, however it comes. With STATS_SWITCH_SYSCTL and @set, letting go takes CAP_SYS_ADMIN, and
 * a process that is killed leaves the sysctl at 1, which its user wants to know
 * (stats_switch__how()); each signal that would end us and can be blocked is blocked, and so comes
 * when the sysctl has been set back. Whoever waits for signals wants to know of those in @blocked.
 * STATS_SWITCH_FOREIGN holds nothing.
 *
 * Returns 0 or a negative errno with a message: -EPERM without the right to do so, and it is off.
 */
int stats_switch__open(struct stats_switch *s, struct errmsg *err);

/* One line for people, without a full stop: how it is held, and what follows from that. */
const char *stats_switch__how(const struct stats_switch *s);

/*
 * Lets go. The sysctl is set back only if we set it and it still is what we set. Returns what there
 * is to say of that, a line, or NULL. @s may be NULL or not open.
 */
const char *stats_switch__close(struct stats_switch *s);

/*
 * Is the switch on right now? Runs a program that nobody else knows once, and looks whether the
 * kernel counted that. This holds nothing. Needs CAP_BPF, or CAP_SYS_ADMIN.
 */
int stats_switch__observe(bool *on, struct errmsg *err);

/* What the sysctl says, 0 or 1, in *@value. It does not tell of those who hold fds. Returns 0 or a
 * negative errno: -ENOENT where there is none (no /proc, kernels before 5.1). */
int stats_switch__sysctl(const char *proc_root, int *value);

/* Is a bpfcost running for which the sysctl was set to 1? */
bool stats_switch__sysctl_is_ours(const char *proc_root);

#endif
