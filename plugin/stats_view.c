// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdlib.h>

#include "stats_view.h"

static const struct {
	unsigned mark;
	const char *name, *meaning;
} marks[] = {
	{STATS_NEW, "new", "loaded in the window: all of its runs are counted"},
	{STATS_LATE, "late", "could not be read at the beginning: counted from its first reading"},
	{STATS_GONE, "gone", "unloaded: runs after its last reading are not counted"},
	{STATS_BACK, "back", "its counters went back, which they never do: not used"},
	{STATS_TORN, "torn", "runs without time, or time without runs: read while it ran"},
	{STATS_LONG, "long",
	 "more time than the CPUs had: runs that began before the window, or that slept"},
};

const char *stats_mark__name(unsigned i, unsigned *mark, const char **meaning)
{
	if (i >= sizeof(marks) / sizeof(marks[0]))
		return NULL;
	*mark = marks[i].mark;
	*meaning = marks[i].meaning;
	return marks[i].name;
}

const char *stats_sort__name(enum stats_sort sort)
{
	static const char *const names[STATS_SORTS] = {
		[STATS_SORT_CPU] = "%CPU",	[STATS_SORT_RUNS] = "runs",
		[STATS_SORT_GROSS] = "ns/run",	[STATS_SORT_NET] = "net",
		[STATS_SORT_MISSED] = "missed", [STATS_SORT_ID] = "id",
	};

	return names[sort];
}

static double key(const struct stats_window_row *w, enum stats_sort sort)
{
	switch (sort) {
	case STATS_SORT_RUNS:
		return w->counters.run_cnt;
	case STATS_SORT_GROSS:
		return w->ns_per_run;
	case STATS_SORT_NET:
		return w->net_per_run;
	case STATS_SORT_MISSED:
		return w->counters.recursion_misses;
	case STATS_SORT_ID:
		return -(double)w->last.id;
	default:
		return w->cpus;
	}
}

static int compare(const void *a, const void *b, void *data)
{
	const struct stats_view_row *x = a, *y = b;
	const enum stats_sort *sort = data;
	double p = key(x->window, *sort), q = key(y->window, *sort);

	if (p == q) {
		p = x->window->cpus;
		q = y->window->cpus;
	}
	if (p != q)
		return p < q ? 1 : -1;
	return stats_row__compare(&x->window->last, &y->window->last);
}

void stats_report__sort(struct stats_report *r)
{
	if (r->n_rows)
		qsort_r(r->rows, r->n_rows, sizeof(*r->rows), compare, &r->sort);
}
