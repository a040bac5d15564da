/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_STATS_SAMPLE_H
#define BPFCOST_STATS_SAMPLE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * A sample of the run time statistics: what the kernel has counted for each program at one moment.
 * It is plain data, so that it can come from the kernel or from a file. Only windows
 * (stats_window.h) take differences.
 */

/* As the kernel keeps them: cumulative since the program was loaded, never reset. */
struct stats_counters {
	__u64 run_time_ns;
	__u64 run_cnt;
	__u64 recursion_misses;
};

struct stats_row {
	/* Which program: ids are used again, but not with the same load time. */
	__u32 id;
	__u8 tag[8];
	__u64 load_time; /* ns since boot, CLOCK_BOOTTIME; 0: not known */

	__u64 time_ns; /* when it was read, CLOCK_MONOTONIC */
	struct stats_counters counters;
	bool late; /* it was there before, but could be read only now */
	bool gone; /* unloaded: the counters are those of its last reading, at time_ns */
};

struct stats_sample {
	__u64 time_ns; /* when it began, CLOCK_MONOTONIC */
	__u64 boot_ns; /* the same, CLOCK_BOOTTIME: to compare with load times */
	/* Ids are given out in ascending order, so that a program with a higher one came later; 0:
	 * not known. Not so where they begin anew, after 2^31 programs. */
	__u32 last_id;
	__u64 n_seen; /* programs that were looked at so far, of those with an id up to last_id */
	unsigned online_cpus;
	bool missed_known;   /* the kernel counts recursion_misses (5.12) */
	bool switch_was_off; /* at the end of the sample: what ran before may not be counted */
	size_t n, size;
	struct stats_row *v; /* by id, and by load time where an id was used again */
};

/* A row to fill in, zeroed, or NULL without memory. It is valid until the next one is added. */
struct stats_row *stats_sample__add(struct stats_sample *s);
/* To be called once all rows are there. */
void stats_sample__sort(struct stats_sample *s);
/* Leaves a sample without rows, and keeps their memory for the next ones. */
void stats_sample__reset(struct stats_sample *s);
void stats_sample__free(struct stats_sample *s);

/* The order of rows; 0: the same program. */
int stats_row__compare(const struct stats_row *a, const struct stats_row *b);

#endif
