/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_BENCH_FILE_H
#define BPFCOST_BENCH_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "errmsg.h"

struct json_object;

/* What `bpfcost -j prog bench` has written, read back. Texts belong to the document. */

struct bench_file_metric {
	const char *name, *unit;
	bool has_floor;
	double floor, low, high; /* a run */
	bool estimate, shared;
	size_t n;
	double *sorted; /* gross, a run */
	double median;
};

struct bench_file_prog {
	const char *object; /* "": it was loaded already */
	const char *name;
	const char *error; /* why it was not measured, or NULL */
	bool reliable;
	size_t nth; /* of those with the same name and object, from 0 */
	struct bench_file_metric *metric;
	size_t n_metrics;
};

/* What must be the same for a comparison to mean something: a key and a value each. */
struct bench_file_fact {
	const char *key;
	char *value; /* owned */
};

#define BENCH_FILE_FACTS 7

struct bench_file {
	const char *path; /* not owned */
	struct json_object *doc;
	struct bench_file_fact fact[BENCH_FILE_FACTS];
	struct bench_file_prog *prog;
	size_t n_progs;
};

/*
 * Reads a file. Bad input is what cannot be read, is cut off, is no JSON, was not written by
 * `prog bench` (of this format), has a number that is none, or a time or a count of cycles or
 * instructions whose median is 0: no run takes none. On an error there is nothing to close.
 */
int bench_file__read(struct bench_file *f, const char *path, struct errmsg *err);

/*
 * The same, where @path may be a directory as well: all its files *.json count as one, with all
 * their measurements. Bad input is also what they differ in otherwise: programs, metrics, units,
 * facts.
 */
int bench_file__read_side(struct bench_file *f, const char *path, struct errmsg *err);

/* The files *.json of a directory, in the order of their names, in which 9 comes before 10: paths,
 * to be freed, one by one and all. Bad input is a directory without any. */
int bench_file__list(const char *dir, char ***paths, size_t *n, struct errmsg *err);
void bench_file__free_list(char **paths, size_t n);

/* The program with this name and object (NULL: any), the @nth of them; or NULL. */
const struct bench_file_prog *bench_file__find(const struct bench_file *f, const char *object,
					       const char *name, size_t nth);
const struct bench_file_metric *bench_file__metric(const struct bench_file_prog *p,
						   const char *name);

void bench_file__close(struct bench_file *f);

#endif
