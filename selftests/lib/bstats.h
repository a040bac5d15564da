/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_BSTATS_H
#define SELFTESTS_BSTATS_H

/*
 * The kernel's BPF statistics, as user space meets them. Every function returns a negative errno
 * when it fails, and prints nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>

#define BSTATS_SYSCTL "/proc/sys/kernel/bpf_stats_enabled"

/* What BPF_OBJ_GET_INFO_BY_FD, or fdinfo, says of one program. */
struct bstats {
	__u64 run_time_ns;
	__u64 run_cnt;
	__u64 recursion_misses;
	bool has_recursion_misses; /* 5.12 and later */
};

/* strerror() for an errno of either sign that also knows the kernel's ENOTSUPP (524). */
const char *bstats_strerror(int err);

/* bpf(2) with an attribute of any size: for errors that libbpf's wrappers cannot provoke. */
int bstats_bpf(int cmd, void *attr, unsigned int size);

/* BPF_ENABLE_STATS with BPF_STATS_RUN_TIME: an fd that holds the switch. */
int bstats_open(void);

/* The sysctl: one open, one read or write, one close. The value that reads back is 0 or 1. */
int bstats_sysctl_read(void);
int bstats_sysctl_write(const char *text, size_t len);
int bstats_sysctl_set(int value);

/* The statistics of a program, by info and by fdinfo. */
int bstats_info(int prog_fd, struct bstats *s);
int bstats_fdinfo(int prog_fd, struct bstats *s);

/* A socket filter of one instruction that is run by nobody but us. */
int bstats_observer(void);

/* Loads @code; @type and the rest as in bpf_prog_load(). The log of a refused program is in @log if
 * that is not NULL (@log_size bytes). */
struct bstats_load {
	unsigned int type;
	unsigned int attach_type;
	unsigned int attach_btf_id;
	unsigned int attach_prog_fd;
	unsigned int flags;
	const char *name;
	char *log;
	unsigned int log_size;
};
int bstats_load(const struct bstats_load *l, const struct bpf_insn *code, size_t count);

/* The same with type information, which programs with callbacks, programs that are traced and
 * programs that are replaced need. @funcs are the functions in @code: each takes a pointer to
 * @ctx_type (a structure's name; NULL: void) or, without @takes_ctx, nothing that is used, and
 * returns an int. */
struct bstats_func {
	const char *name;
	unsigned int insn_off;
	bool global;
	bool takes_ctx;
};
int bstats_load_btf(const struct bstats_load *l, const char *ctx_type,
		    const struct bstats_func *funcs, unsigned int func_count,
		    const struct bpf_insn *code, size_t count);

/* A map of one entry; @size bytes. Returns its fd. */
int bstats_array(unsigned int size);
/* Its value, as 64-bit words. */
int bstats_array_get(int map_fd, __u64 *words, size_t count);
int bstats_array_set(int map_fd, const __u64 *words, size_t count);

/* Runs a program @repeat times by BPF_PROG_TEST_RUN, with a packet where the type wants one.
 * Returns 0, or a negative errno. */
int bstats_run(int prog_fd, unsigned int repeat);

/* Is the switch on? Runs the observer once and looks whether its run_cnt moved: 1, 0, or a negative
 * errno. Nothing that the kernel says about the switch is trusted. */
int bstats_is_on(int observer_fd);

/* Processes other than @except (0: none) that hold stats fds, as "pid (comm) x fds, ...", into
 * @buf. Returns their number. Holders in other pid namespaces, and fds in flight, cannot be
 * seen. */
int bstats_holders(int except, char *buf, size_t size);

/* Two tests that own the switch at once would see each other's fds: takes a lock, for which it waits
 * a minute, and which is gone with its fd, or the process. The fd, or a negative errno. */
int bstats_lock(void);

/* How many stats fds a process has; 0 if it is gone or may not be looked at. */
int bstats_fds_of(int pid);

/* The number of a type or function in the kernel's BTF, the value of an enumerator, the index of a
 * structure's member. */
int bstats_btf_id(const char *name, int kind);
int bstats_btf_enum(const char *enumerator);
int bstats_btf_member(const char *structure, const char *member);

#endif
