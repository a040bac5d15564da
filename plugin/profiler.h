/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_PROFILER_H
#define BPFCOST_PROFILER_H

#include "errmsg.h"
#include "progs.h"
#include "sample.h"

struct counters;

/* What all targets of one measurement have in common. */
struct profiler_opts {
	size_t n_cpus;	  /* highest possible CPU id + 1 */
	size_t n_metrics; /* events first, then the clock */
	size_t n_events;
	int events_fd; /* perf event array, key = CPU * n_events + event; -1 without events */
	bool multiplexed;
	unsigned sample_every; /* 0: every run */
	bool histogram;	       /* keep the distribution of metric 0, less histogram_floor */
	__u32 histogram_floor; /* a run's floor of metric 0 */
	bool tasks;	       /* keep sums per process */
	/* All functions of a program are targets: what is a function's own, and what it called. */
	bool calls;
	int calls_fd;			 /* the map of calls under way, one for all targets */
	const double *added;		 /* by metric: what measuring a call costs its caller */
	const double *floor;		 /* and what of that is in the readings of the call */
	const char *types;		 /* kernel_types__open(); NULL: the kernel's own BTF */
	const struct counters *counters; /* for the events' times; NULL without events */
};

/* The entry and exit programs around one function of one program. */
struct profiler;

/*
 * Loads the programs for function @func (index into @prog->funcs) of @prog. Nothing is attached
 * yet. @out is set only on success. Errors name the program and what can be done.
 */
int profiler__open(struct profiler **out, const struct profiler_opts *opts, const struct prog *prog,
		   size_t func, struct errmsg *err);

/* Exit first, then entry: a run that has begun before is never half measured. */
int profiler__attach(struct profiler *p, struct errmsg *err);

/*
 * Detaches the entry program; with profiler__settle() after it, every run that has begun under it
 * has ended (sleeping ones aside), so that a sample taken then holds only whole runs.
 */
void profiler__detach_entry(struct profiler *p);

/* Waits until the runs that are under way on any CPU have ended, by an RCU grace period
 * (kernel/sched/membarrier.c, MEMBARRIER_CMD_GLOBAL). Sleepable programs may take longer. */
void profiler__settle(void);

/* Reads all counters into @s, which sample__init() has made for the same options. */
int profiler__read(struct profiler *p, struct sample *s);

/* NULL-safe; detaches what is attached. */
void profiler__close(struct profiler *p);

#endif
