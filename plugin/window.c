// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "histogram.h"
#include "window.h"

static __u64 less(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

static void add_cpu(struct window *w, const struct sample *from, const struct sample *to,
		    size_t cpu)
{
	const struct sample_metric *a, *b;
	size_t i;

	for (i = 0; i < w->n_metrics; i++) {
		struct window_metric *m = &w->metric[i];
		double value, scale = 1;
		__u64 enabled, running;

		a = &from->metric[cpu * w->n_metrics + i];
		b = &to->metric[cpu * w->n_metrics + i];
		value = b->value - a->value;
		enabled = b->enabled - a->enabled;
		running = b->running - a->running;
		m->enabled += enabled;
		m->running += running;
		if (to->multiplexed && running < enabled) {
			m->estimate = true;
			if (running)
				scale = (double)enabled / running;
		}
		m->value += value * scale;
		m->net -= (b->overhead - a->overhead) * scale;
		m->self += (double)(b->self - a->self) * scale;
	}
}

static int diff_histogram(struct window *w, const struct sample *from, const struct sample *to)
{
	size_t i;

	w->histogram = calloc(HISTOGRAM_BUCKETS, sizeof(*w->histogram));
	if (!w->histogram)
		return -ENOMEM;
	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		w->histogram[i] = to->histogram[i] - (from->histogram ? from->histogram[i] : 0);
	return 0;
}

static const struct sample_task *find_task(const struct sample *s, __u32 tgid)
{
	size_t i;

	for (i = 0; i < s->n_tasks; i++)
		if (s->tasks[i].tgid == tgid)
			return &s->tasks[i];
	return NULL;
}

static int compare_tasks(const void *a, const void *b)
{
	const struct window_task *x = a, *y = b;

	return (x->net[0] < y->net[0]) - (x->net[0] > y->net[0]);
}

static int diff_tasks(struct window *w, const struct sample *from, const struct sample *to)
{
	static const struct sample_task none;
	size_t i, k;

	w->tasks = calloc(to->n_tasks ? to->n_tasks : 1, sizeof(*w->tasks));
	if (!w->tasks)
		return -ENOMEM;
	for (i = 0; i < to->n_tasks; i++) {
		const struct sample_task *b = &to->tasks[i], *a = find_task(from, b->tgid);
		struct window_task *t = &w->tasks[w->n_tasks];

		if (!a)
			a = &none;
		if (b->measured == a->measured)
			continue;
		t->tgid = b->tgid;
		memcpy(t->comm, b->comm, sizeof(t->comm));
		t->measured = b->measured - a->measured;
		for (k = 0; k < w->n_metrics; k++) {
			t->value[k] = b->value[k] - a->value[k];
			t->net[k] = t->value[k] - w->metric[k].floor * t->measured;
		}
		w->n_tasks++;
	}
	qsort(w->tasks, w->n_tasks, sizeof(*w->tasks), compare_tasks);
	return 0;
}

int window__init(struct window *w, const struct sample *from, const struct sample *to,
		 const double *floor)
{
	__u64 pair = 0, full = 0, entries = 0, in_flight = 0, entry_missed;
	size_t i;

	memset(w, 0, sizeof(*w));
	if (from->n_cpus != to->n_cpus || from->n_metrics != to->n_metrics)
		return -EINVAL;
	w->metric = calloc(to->n_metrics, sizeof(*w->metric));
	if (!w->metric)
		return -ENOMEM;
	w->n_metrics = to->n_metrics;
	w->time_ns = to->time_ns - from->time_ns;

	for (i = 0; i < to->n_cpus; i++) {
		const struct sample_cpu *a = &from->cpu[i], *b = &to->cpu[i];

		w->measured += b->measured - a->measured;
		w->switched += b->switched - a->switched;
		w->lost_read += b->lost_read - a->lost_read;
		w->with_self += b->with_self - a->with_self;
		pair += b->lost_pair - a->lost_pair;
		full += b->full - a->full;
		entries += b->entries - a->entries;
		in_flight += b->in_flight - a->in_flight;
		add_cpu(w, from, to, i);
	}

	w->calls = to->calls;
	w->lost_exit = to->exit_missed - from->exit_missed;
	entry_missed = to->entry_missed - from->entry_missed;
	if (to->sample_every) {
		/* Counted at entry: an exit alone does not tell a run that was left out from one
		 * that lost its entry. */
		w->sampled = true;
		w->lost_deep = full;
		w->lost_entry = entry_missed;
		w->run_cnt = less(entries, in_flight) + entry_missed;
		/* Whether the run of a skipped exit was to be measured is not known; it is in
		 * entries, and so it is skipped or still holds its slot. */
		w->lost_exit = 0;
		w->lost = w->lost_deep + w->lost_entry + w->lost_read;
		w->skipped = less(w->run_cnt, w->measured + w->switched + w->lost);
		w->run_cnt = w->measured + w->switched + w->lost + w->skipped;
	} else {
		/* Counted at exit. Runs that found no slot at entry have an exit without a pair as
		 * well; one that is still in flight has not, yet. */
		w->lost_deep = full < pair ? full : pair;
		w->lost_entry = pair - w->lost_deep;
		w->lost = pair + w->lost_exit + w->lost_read;
		w->run_cnt = w->measured + w->switched + w->lost;
	}

	for (i = 0; i < w->n_metrics; i++) {
		struct window_metric *m = &w->metric[i];

		m->floor = floor ? floor[i] : 0;
		/* net holds what measuring calls cost, so far. */
		m->net += m->value - m->floor * w->measured;
		m->self -= m->floor * w->with_self;
		if (w->sampled && w->measured && w->measured < w->run_cnt) {
			double scale = (double)w->run_cnt / w->measured;

			m->value *= scale;
			m->net *= scale;
			m->estimate = true;
		}
	}
	if (to->histogram && diff_histogram(w, from, to))
		goto no_memory;
	if (to->tasks && diff_tasks(w, from, to))
		goto no_memory;
	return 0;
no_memory:
	window__free(w);
	return -ENOMEM;
}

void window__free(struct window *w)
{
	if (!w)
		return;
	free(w->metric);
	free(w->histogram);
	free(w->tasks);
	memset(w, 0, sizeof(*w));
}
