/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_PROGS_H
#define BPFCOST_PROGS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "errmsg.h"

/* A function of a program: the main function (index 0) or a subprogram. */
struct prog_func {
	char *name;    /* in full, from BTF */
	unsigned args; /* number of arguments */
};

/* A loaded program, held by an fd. */
struct prog {
	int fd;
	__u32 id;
	__u32 type; /* enum bpf_prog_type */
	__u8 tag[8];
	char kname[16]; /* the kernel's name, cut at 15 characters */
	char *name;	/* the name in full: of the main function in BTF, else kname */
	bool jited;
	__u32 btf_id;	 /* 0: the program has no BTF */
	__u64 load_time; /* ns since boot */
	size_t n_funcs;	 /* 0 without BTF */
	struct prog_func *funcs;
};

struct progs {
	struct prog *v;
	size_t n;
};

/* How the user names programs: PROG := { id ID | tag TAG | name NAME | pinned FILE } | all */
enum prog_handle { PROG_ID, PROG_TAG, PROG_NAME, PROG_PINNED, PROG_ALL };

/* One PROG, as the user wrote it. */
struct prog_filter {
	enum prog_handle handle;
	__u32 id;
	__u8 tag[8];
	const char *word; /* the name, or the file; not owned */
};

/* Takes one PROG off the words: *@argc and *@argv move on. Words match by prefix, as in bpftool.
 * Looks at no program. 0, or -EINVAL with @err. */
int prog_filter__parse(struct prog_filter *f, int *argc, char ***argv, struct errmsg *err);

/* Opens the program that is pinned as f->word. The fd, or a negative errno with @err. */
int prog_filter__open_pinned(const struct prog_filter *f, struct errmsg *err);

/* No program is like @f: bad input, said in @err. */
int prog_filter__no_match(const struct prog_filter *f, struct errmsg *err);

/* Takes one PROG off the words: *@argc and *@argv move on. Adds every program that matches to
 * @progs. Words match by prefix, as in bpftool. Returns the number of programs found (0 is
 * possible for `all` only), or a negative errno with @err. */
int progs__parse(struct progs *progs, int *argc, char ***argv, struct errmsg *err);

/* True if @word begins a PROG (in full: `i` is also the beginning of `instructions`). */
bool progs__is_handle(const char *word);

/*
 * Loads a program of @type that returns 0 and does nothing else. Returns its fd, above 2, or a
 * negative errno. Before 5.11 what BPF allocates counts as locked memory, and what a program that
 * is gone had counts until some time later (bpf_prog_charge_memlock() in kernel/bpf/syscall.c);
 * so where EPERM can mean that the limit is reached, it is tried for a moment longer.
 */
int prog__load_empty(__u32 type, const char *name);

/* The fd of the program with this id; -ENOENT: there is none (any more). */
int prog__fd_by_id(__u32 id, struct errmsg *err);
/* Opens the program with this id. -ENOENT: there is none (any more). */
int prog__open_id(struct prog *p, __u32 id, struct errmsg *err);
/* Takes an fd over, also when it fails. */
int prog__open_fd(struct prog *p, int fd, struct errmsg *err);
void prog__close(struct prog *p);

/* Calls of @fn with each id, in order, until it returns other than 0, which is returned. */
int progs__for_each_id(int (*fn)(__u32 id, void *data), void *data);

void progs__close(struct progs *progs);

/* "xdp", "sched_cls", …, or "type 99". Not owned, or in @buf. */
const char *prog__type_name(__u32 type, char *buf, size_t size);

/* recursion_misses of the program behind @fd: how often the kernel skipped it because it was
 * already running on the CPU. Kernels before 5.12 do not count them: *@known is false. */
int prog__recursion_misses(int fd, __u64 *misses, bool *known);

#endif
