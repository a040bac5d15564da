/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_COMPARE_H
#define BPFCOST_COMPARE_H

#include "bench_file.h"
#include "statistics.h"

/* Below this p, two samples differ: one in twenty pairs of equal ones does, too. */
#define COMPARE_ALPHA 0.05
/* Below this p, a series has changed; it is lower as many places are looked at. */
#define COMPARE_CHANGE_P 0.001

/* One side of a comparison of one metric. Values are per run. */
struct compare_side {
	const struct bench_file_metric *metric;
	double net;			     /* the median; gross without a floor */
	struct statistics_interval interval; /* of net */
};

struct compare_metric {
	struct compare_side old, new;
	struct statistics_test test; /* of net */
	bool significant;	     /* p is below COMPARE_ALPHA, and of a time not 0.00 % */
	bool enough;		     /* so many measurements can show a difference at all */
	bool has_percent;
	double percent; /* of the old net; of gross where net is within the floor's spread */
	bool of_gross;
	bool slower; /* by more than the threshold, with significance */
};

struct compare_prog {
	const struct bench_file_prog *old, *new;
	struct compare_metric *v;
	size_t n;
};

struct compare {
	struct bench_file old, new;
	bool force;
	bool has_threshold;
	double threshold; /* percent */
	/* Reasons that they cannot be compared, if @force did not: lines, each owned. */
	char **difference;
	size_t n_differences;
	bool other_machine;	/* or kernel, or bpfcost: some fact is another one */
	struct compare_prog *v; /* programs on both sides */
	size_t n;
	/* and on one only, or not measured there */
	const struct bench_file_prog **only_old, **only_new;
	size_t n_only_old, n_only_new;
	size_t n_slower;
};

/*
 * Compares the two files, which have been read. Bad input is what differs in more than the
 * measurements (@force: it is only listed), and files with no program in common.
 */
int compare__run(struct compare *c, struct errmsg *err);
/* Closes the files as well. */
void compare__close(struct compare *c);

/* A metric of a program over many files. */
struct history_series {
	const struct bench_file_prog *prog;
	const struct bench_file_metric *metric; /* in the first file that has it */
	size_t n;				/* files that have it */
	size_t *file;				/* which */
	double *value;				/* median, gross, a run */
	double floor;				/* the median of the files' */
	struct statistics_change *change;
	size_t n_changes;
	/* The newest of all files differs from those since the last change. */
	bool has_newest;
	struct statistics_change newest;
};

struct history {
	struct bench_file *file;
	size_t n_files;
	bool force;
	/* What is not the same as in the file before: lines, each owned. */
	char **difference;
	size_t n_differences;
	struct history_series *v;
	size_t n;
};

/* Takes the files, which have been read and are in order, apart into series, and finds where these
 * change. Errors as for compare__run(). */
int history__run(struct history *h, struct errmsg *err);
void history__close(struct history *h);

/* By how many percent a series changed; false if it was 0 before. */
bool history__percent(const struct history_series *s, const struct statistics_change *c,
		      double *percent);

#endif
