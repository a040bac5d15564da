// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stats_window.h"

/* Loaded after the sample was taken? The load time is from before the verifier's work, so that an
 * id that was not given out yet tells more. */
static bool came_after(const struct stats_row *row, const struct stats_sample *from)
{
	return (row->load_time && row->load_time > from->boot_ns) ||
	       (from->last_id && row->id > from->last_id);
}

static void subtract(struct stats_window_row *r)
{
	const struct stats_counters *a = &r->first.counters, *b = &r->last.counters;

	if (b->run_time_ns < a->run_time_ns || b->run_cnt < a->run_cnt ||
	    b->recursion_misses < a->recursion_misses) {
		r->marks |= STATS_BACK;
		return;
	}
	r->counters.run_time_ns = b->run_time_ns - a->run_time_ns;
	r->counters.run_cnt = b->run_cnt - a->run_cnt;
	r->counters.recursion_misses = b->recursion_misses - a->recursion_misses;
}

static void divide(struct stats_window_row *r, const struct stats_window *w,
		   const struct stats_floor *floor)
{
	const struct stats_counters *c = &r->counters;

	if (!c->run_cnt != !c->run_time_ns)
		r->marks |= STATS_TORN;
	if (r->time_ns) {
		r->runs_per_s = c->run_cnt * 1e9 / r->time_ns;
		r->cpus = (double)c->run_time_ns / r->time_ns;
	}
	if (r->cpus > w->online_cpus)
		r->marks |= STATS_LONG;
	if (!c->run_cnt)
		return;
	r->ns_per_run = (double)c->run_time_ns / c->run_cnt;
	if (!floor->known)
		return;
	r->net_per_run = r->ns_per_run - floor->value;
	r->net_is_noise = r->ns_per_run <= floor->high;
}

static void add(struct stats_window *w, const struct stats_row *first, const struct stats_row *last,
		unsigned marks, const struct stats_floor *floor)
{
	struct stats_window_row *r = &w->v[w->n++];

	if (first)
		r->first = *first;
	r->last = *last;
	r->marks = marks;
	/* Those that are read one after the other each have a window of their own; what came or
	 * went is looked at over all of it. */
	r->time_ns = w->time_ns;
	if (first && !last->gone && last->time_ns > first->time_ns)
		r->time_ns = last->time_ns - first->time_ns;
	if (last->gone)
		r->marks |= STATS_GONE;
	if (first && first->late)
		r->marks |= STATS_LATE;
	subtract(r);
	divide(r, w, floor);
	w->n_ran += r->counters.run_cnt != 0;
	w->run_cnt += r->counters.run_cnt;
	w->run_time_ns += r->counters.run_time_ns;
	w->cpus += r->cpus;
}

/* Ids that were given out meanwhile, less those that were looked at. */
static __u64 count_unseen(const struct stats_sample *from, const struct stats_sample *to)
{
	__u64 given, seen = to->n_seen - from->n_seen;

	if (!from->last_id || to->last_id < from->last_id)
		return 0;
	given = to->last_id - from->last_id;
	return given > seen ? given - seen : 0;
}

int stats_window__init(struct stats_window *w, const struct stats_sample *from,
		       const struct stats_sample *to, const struct stats_floor *floor)
{
	size_t i, k = 0;

	memset(w, 0, sizeof(*w));
	w->v = calloc(to->n + 1, sizeof(*w->v));
	if (!w->v)
		return -ENOMEM;
	w->time_ns = to->time_ns - from->time_ns;
	w->online_cpus = to->online_cpus ? to->online_cpus : 1;
	w->cpus_changed = from->online_cpus != to->online_cpus;
	w->missed_known = from->missed_known && to->missed_known;
	w->switch_was_off = from->switch_was_off || to->switch_was_off;
	w->unseen = count_unseen(from, to);
	for (i = 0; i < to->n; i++) {
		const struct stats_row *last = &to->v[i], *first = NULL;

		while (k < from->n && stats_row__compare(&from->v[k], last) < 0)
			k++;
		if (k < from->n && !stats_row__compare(&from->v[k], last))
			first = &from->v[k];
		if (first)
			add(w, first, last, 0, floor);
		else if (came_after(last, from))
			add(w, NULL, last, STATS_NEW, floor);
		else
			add(w, last, last, STATS_LATE, floor);
	}
	return 0;
}

void stats_window__free(struct stats_window *w)
{
	if (!w)
		return;
	free(w->v);
	memset(w, 0, sizeof(*w));
}
