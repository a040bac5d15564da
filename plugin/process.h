/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_PROCESS_H
#define BPFCOST_PROCESS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A process, as /proc shows it. The names are bytes as they came: see text.h before printing. */
struct process {
	pid_t pid;
	char comm[64];
	bool has_fds;	  /* false: a kernel thread, or a zombie */
	bool first_ended; /* its first thread, while others go on */
	unsigned threads; /* 0: not known */
	__u64 started_ns; /* CLOCK_REALTIME; 0: not known. The kernel keeps it in ticks of 10 ms. */
	char *cgroup;	  /* its path below the root of the hierarchy; NULL: not known */
	/* The container that the cgroup belongs to, the innermost of several; NULL: none. */
	const char
		*runtime; /* "docker", "podman", ...; NULL: the name of the cgroup tells only id */
	char *container;  /* its id, or its name where that is what the runtime uses */
};

/* Reads /proc/PID/stat: all but the cgroup and the container. Returns 0 or a negative errno:
 * -ENOENT or -ESRCH when the process is gone, or hidden. */
int process__read_stat(struct process *p, const char *proc_root, pid_t pid);

/* The cgroup and the container. They are not known if the process is gone meanwhile, which is no
 * error. Returns 0 or -ENOMEM. */
int process__read_cgroup(struct process *p, const char *proc_root);

void process__free(struct process *p);

/*
 * The container that a cgroup path belongs to, by the names that runtimes give to cgroups: docker,
 * podman, CRI-O, containerd, LXC, systemd-nspawn, and pods of Kubernetes. Its id into @id.
 * *@runtime is NULL where only an id can be seen. False if it is none; the monitor of a container
 * is not in it.
 */
bool process__container(const char *cgroup, const char **runtime, char *id, size_t size);

/* Are we in a pid namespace other than that which the machine booted with, or is that not known? */
bool process__is_nested(const char *proc_root);

/* Walks through the open fds of all processes that /proc shows. */
struct process_walk {
	const char *proc_root;
	/* Called for each fd, with what the link says ("anon_inode:bpf-stats"; cut at 63 bytes) and the
	 * thread in whose table it is, which is @pid but where threads do not share a table. Fds of
	 * one process come one after the other. Returns 0, or what ends the walk. */
	int (*fd)(void *data, pid_t pid, pid_t tid, int fd, const char *target);
	void *data;

	/* Afterwards: what was not seen. */
	unsigned unseen;      /* processes that are there, but whose fds may not be looked at */
	bool hidden;	      /* /proc hides processes altogether (hidepid) */
	bool nested;	      /* we are in a pid namespace: those outside of it are not in /proc */
	unsigned threads;     /* of all processes that were there */
	unsigned all_threads; /* of the machine, hidden ones included; 0: not known */
	bool same_pids;	      /* the pids in proc_root are those that system calls take */
};

/* Returns 0, what @fd returned, or a negative errno if /proc cannot be read. */
int process__walk(struct process_walk *w);

/* Was anything not seen, or could not be? */
bool process__walk_incomplete(const struct process_walk *w);

#endif
