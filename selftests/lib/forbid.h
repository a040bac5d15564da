/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_FORBID_H
#define SELFTESTS_FORBID_H

/*
 * A kernel that does not know a command of bpf(2), or that forbids it, for a process that runs on
 * one that does: the system call ends with an errno before the kernel has seen it (seccomp(2)).
 */

/* From now on, in this process and those that it starts, bpf(@cmd) fails with @err, an errno; with
 * 0 it ends the process by SIGSYS. Cannot be taken back. Returns 0 or a negative errno. */
int forbid_bpf(int cmd, int err);

#endif
