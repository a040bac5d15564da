/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_BLIND_H
#define BPFCOST_BLIND_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "runstats.h"

/*
 * Where the run time statistics are blind, so that a program's zero says nothing: the kernel counts
 * a run where it enters a program, and neither a program that another one jumps to, nor what a
 * program has asked to be called later.
 *
 * What is told here is what can be told from the outside: that a program is in a prog array, not
 * that it is called; that it uses a map with a timer, not that it starts it.
 */
enum blind_kind {
	BLIND_TAIL_CALL = 1 << 0, /* in a prog array */
	BLIND_EXTENSION = 1 << 1, /* replaces a function of another program (freplace) */
	BLIND_REPLACED = 1 << 2,  /* another program replaces a function of this one */
	BLIND_CALLBACK = 1 << 3,  /* uses a map with a bpf_timer, bpf_wq or bpf_task_work */
};

struct blind_prog {
	__u32 prog_id;
	unsigned kinds;	       /* enum blind_kind */
	__u32 array_id;	       /* BLIND_TAIL_CALL: a prog array that it is in */
	__u32 target_id;       /* BLIND_EXTENSION: the other program; 0: not known */
	__u32 replacement_id;  /* BLIND_REPLACED */
	__u32 callback_map_id; /* BLIND_CALLBACK */
	const char *callback;  /* the struct in it */
};

/* Zeroed at first. */
struct blind {
	struct blind_prog *v; /* by prog_id */
	size_t n, size;
	int refused; /* 0, or why not all maps and links could be looked at: a negative errno */

	/* What is known, so that only what is new is looked at. */
	struct blind_map *maps; /* prog arrays, and maps with timers */
	size_t n_maps, size_maps;
	struct blind_link *links;
	size_t n_links, size_links;
	struct blind_user *users; /* programs that use maps with timers */
	size_t n_users, size_users;
	__u32 last_map, last_link, last_prog;
	struct btf *btf; /* of the last map */
	__u32 btf_id;
};

/* Looks anew. What may not be looked at is not known, which is in @refused, and no error.
 * -ENOMEM. */
int blind__look(struct blind *b, const struct runstats *rs);

/* NULL: nothing is known against its numbers. */
const struct blind_prog *blind__of(const struct blind *b, __u32 prog_id);

/* The reason for one kind, for people. Returns @buf. */
const char *blind__reason(const struct blind_prog *p, enum blind_kind kind, char *buf, size_t size);
/* Its name in JSON. */
const char *blind__name(enum blind_kind kind);

void blind__close(struct blind *b);

#endif
