/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_STATS_WINDOW_H
#define BPFCOST_STATS_WINDOW_H

#include "stats_sample.h"

/*
 * A window: the difference of two samples of the run time statistics. This is the one place where
 * they are subtracted and divided, and where the floor is taken off.
 */

/* What a number must not be read without. */
enum stats_mark {
	STATS_NEW = 1 << 0,  /* loaded in the window: all of its runs are in it */
	STATS_LATE = 1 << 1, /* was there before, but is counted from its first reading only */
	STATS_GONE = 1 << 2, /* unloaded: runs after its last reading are missing */
	STATS_BACK = 1 << 3, /* its counters went back: there is no difference */
	STATS_TORN = 1 << 4, /* runs without time or time without runs: read while it ran */
	STATS_LONG =
		1 << 5, /* more time than the CPUs had: runs that began before, or that slept */
};

struct stats_window_row {
	struct stats_row first; /* only its counters, 0, if it is counted from zero */
	struct stats_row last;
	__u64 time_ns; /* what the rates are of */
	/* Differences; 0 with STATS_BACK. */
	struct stats_counters counters;
	/* Of these, 0 without runs: */
	double ns_per_run; /* gross */
	double net_per_run;
	bool net_is_noise; /* gross is within the spread of the floor: net is about 0 */
	double runs_per_s;
	double cpus; /* share: 1 is all of one CPU */
	unsigned marks;
};

struct stats_floor {
	bool known;
	double value, low, high; /* ns a run: median, 10th and 90th percentile */
};

struct stats_window {
	__u64 time_ns;
	unsigned online_cpus; /* at its end, at least 1 */
	bool cpus_changed;    /* there were others at its beginning */
	bool missed_known;
	bool switch_was_off;
	__u64 run_cnt, run_time_ns; /* sums */
	double cpus;
	size_t n_ran;
	__u64 unseen; /* programs that were loaded and unloaded between two looks, at least */
	size_t n;
	struct stats_window_row *v; /* in the order of @to */
};

/*
 * Fills @w from two samples, @from before @to. A program that
 * is only in @to is counted from zero if it was loaded after @from, else from where it is first
 * seen, which is nothing. One that is only in @from has run no more: else the source would have
 * said that it is gone. -ENOMEM.
 */
int stats_window__init(struct stats_window *w, const struct stats_sample *from,
		       const struct stats_sample *to, const struct stats_floor *floor);
void stats_window__free(struct stats_window *w);

#endif
