/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_RUNSTATS_H
#define BPFCOST_RUNSTATS_H

#include "errmsg.h"
#include "progs.h"
#include "stats_sample.h"

/*
 * The run time statistics of many programs: a source of samples. It does not hold the switch
 * (stats_switch.h). There are three ways to read, and all give the same numbers:
 *
 *  - by fds that are kept (BPF_OBJ_GET_INFO_BY_FD), one system call a program and sample. They hold
 *    the programs, so that what one counted until its owner let it go is not lost;
 *  - by fds that are opened for each reading, for those beyond the limit of open files;
 *  - from /proc/PID/fdinfo, for a user who may not open programs by their ids: only those that
 *    processes of this user have open. Names, load times and the order of ids are not known then.
 */
enum runstats_how { RUNSTATS_FD, RUNSTATS_ID, RUNSTATS_FDINFO };

/* A program that is looked at. */
struct runstats_prog {
	enum runstats_how how;
	int fd; /* RUNSTATS_FD */
	__u32 type;
	__u32 btf_id;
	char *name;	/* in full; "" where it is not known */
	char kname[16]; /* the kernel's, cut at 15 characters */
	/* id, tag, load_time and the last reading. */
	struct stats_row row;
	bool idle;     /* did not run between the last two readings */
	bool reported; /* that it is gone */
	bool dropped;  /* it is gone, and had nothing to report */
	bool seen;     /* RUNSTATS_FDINFO: in this walk through /proc */
};

struct runstats {
	const char *proc_root;	/* NULL: "/proc" */
	const char *sysfs_root; /* NULL: "/sys" */

	const struct prog_filter *filters; /* not owned; what belongs to one of them is looked at */
	size_t n_filters;
	bool list;    /* programs that come later can belong to them */
	bool by_name; /* one of them is a name */
	bool fdinfo;

	struct runstats_prog *v; /* by row */
	size_t n, size;
	size_t max_held, n_held; /* RUNSTATS_FD */
	__u32 listed_id;	 /* the highest id that was listed */
	__u32 last_id;
	__u64 n_seen; /* programs listed, and loaded by ourselves */
	bool missed_known;
	size_t next_probe; /* where runstats__let_go() goes on */
	struct btf *btf;   /* of the last name */
	__u32 btf_id;
};

/*
 * Finds and opens the programs that @filters name; without any, all. A filter that names what is
 * not there is bad input. Raises the soft limit of open files. runstats__close() in any case.
 */
int runstats__open(struct runstats *rs, const struct prog_filter *filters, size_t n_filters,
		   struct errmsg *err);

/*
 * Looks for programs that came since; one system call if there are none. One that could have been
 * in the last sample, @from, is added to it, marked as late. Does nothing where that would take a
 * walk through /proc.
 */
int runstats__look(struct runstats *rs, struct stats_sample *from, struct errmsg *err);

/*
 * Takes a sample. @probe: loads and unloads a program to know which ids were given out
 * (stats_sample.last_id), where that is allowed; the kernel may write that to the audit log.
 */
int runstats__read(struct runstats *rs, struct stats_sample *s, bool probe, struct errmsg *err);

/*
 * Lets a few programs go that did not run of late, and takes those again that are still there: else
 * programs that nobody but us holds would never go away. Nothing is lost by that, the kernel keeps
 * counting.
 */
int runstats__let_go(struct runstats *rs, struct errmsg *err);

/* Of the programs that were loaded since the last look and are gone, none is of interest: they were
 * our own. */
void runstats__skip_ids(struct runstats *rs);

/* The program that a row of the last two samples is of. */
const struct runstats_prog *runstats__find(const struct runstats *rs, const struct stats_row *row);

/* One line for people: how they are read. Returns @buf. */
const char *runstats__how(const struct runstats *rs, char *buf, size_t size);

void runstats__close(struct runstats *rs);

#endif
