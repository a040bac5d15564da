// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "cpus.h"
#include "session.h"

void session__init(struct session *s, struct ctx *ctx)
{
	memset(s, 0, sizeof(*s));
	s->ctx = ctx;
	s->opts.events_fd = -1;
	s->opts.calls_fd = -1;
	s->types.fd = -1;
}

int session__add_metric(struct session *s, const char *word, struct errmsg *err)
{
	struct metric *m;
	size_t i;
	int rc;

	if (s->n_metrics == SESSION_MAX_METRICS)
		return errmsg__usage(err, "at most %d metrics at once; '%s' is one more",
				     SESSION_MAX_METRICS, word);
	m = &s->metric[s->n_metrics];
	memset(m, 0, sizeof(*m));
	rc = metrics__parse(word, s->ctx->sysfs_root, m, err);
	if (rc)
		return rc;
	for (i = 0; i < s->n_metrics; i++) {
		if (!strcmp(s->metric[i].name, m->name)) {
			metrics__free(m);
			return 0;
		}
	}
	s->n_metrics++;
	return 0;
}

static int compare_metrics(const void *a, const void *b)
{
	static const char *const table[] = {"cycles",	  "instructions", "l1d_loads",
					    "llc_misses", "itlb_misses",  "dtlb_misses"};
	const struct metric *const *m[2] = {a, b};
	size_t rank[2], i, k;

	for (k = 0; k < 2; k++) {
		rank[k] = (*m[k])->clock ? 100 : 50;
		for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
			if (!strcmp((*m[k])->name, table[i]))
				rank[k] = i;
	}
	if (rank[0] != rank[1])
		return rank[0] < rank[1] ? -1 : 1;
	return *m[0] < *m[1] ? -1 : *m[0] > *m[1];
}

static void sort_metrics(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_metrics; i++)
		s->order[i] = &s->metric[i];
	qsort(s->order, s->n_metrics, sizeof(s->order[0]), compare_metrics);
	s->opts.n_metrics = s->n_metrics;
	for (s->opts.n_events = 0; s->opts.n_events < s->n_metrics; s->opts.n_events++)
		if (s->order[s->opts.n_events]->clock)
			break;
}

static void drop_metrics(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_metrics; i++)
		metrics__free(&s->metric[i]);
	s->n_metrics = 0;
}

static int open_counters(struct session *s, struct errmsg *err)
{
	int rc;

	sort_metrics(s);
	if (!s->opts.n_events)
		return 0;
	rc = counters__open(&s->counters, s->order, s->opts.n_events, s->ctx->sysfs_root, err);
	if (rc)
		return rc;
	s->opts.counters = s->counters;
	s->opts.multiplexed = counters__multiplexed(s->counters);
	return 0;
}

static int choose_counters(struct session *s, struct errmsg *err)
{
	struct errmsg why = {};
	int rc;

	rc = session__add_metric(s, "cycles", err) ?: session__add_metric(s, "instructions", err);
	if (rc || !open_counters(s, &why))
		return rc;
	note(s->ctx, "%s", why.text);
	note(s->ctx, "measuring ns");
	drop_metrics(s);
	return session__add_metric(s, "ns", err) ?: open_counters(s, err);
}

static int open_map(struct session *s, struct errmsg *err)
{
	char buf[128];
	int rc;

	if (!s->opts.n_events)
		return 0;
	s->opts.events_fd = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "bpfcost_events",
					   sizeof(__u32), sizeof(__u32),
					   counters__n_keys(s->counters), NULL);
	if (s->opts.events_fd < 0) {
		rc = -errno;
		errmsg__errno(rc, buf, sizeof(buf));
		if (rc == -EPERM)
			return errmsg__fail(err, rc,
					    "cannot create a map: %s; it needs CAP_BPF, for "
					    "example: sudo",
					    buf);
		return errmsg__fail(err, rc, "cannot create a map: %s", buf);
	}
	rc = counters__install(s->counters, s->opts.events_fd);
	if (rc)
		return errmsg__fail(err, rc, "cannot hand the counters to BPF: %s",
				    errmsg__errno(rc, buf, sizeof(buf)));
	return 0;
}

int session__open(struct session *s, struct errmsg *err)
{
	struct cpus possible = {};
	char buf[128];
	int rc;

	rc = cpus__read(&possible, s->ctx->sysfs_root, "possible");
	if (rc)
		return errmsg__fail(err, rc, "cannot read the possible CPUs from %s: %s",
				    s->ctx->sysfs_root, errmsg__errno(rc, buf, sizeof(buf)));
	s->opts.n_cpus = cpus__max(&possible) + 1;
	cpus__free(&possible);
	rc = s->n_metrics ? open_counters(s, err) : choose_counters(s, err);
	rc = rc ?: open_map(s, err);
	if (!rc)
		s->opts.types = kernel_types__open(&s->types);
	if (rc || !s->opts.calls)
		return rc;
	s->opts.calls_fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "bpfcost_calls", sizeof(__u32),
					  sizeof(struct profiler_calls), 1, NULL);
	if (s->opts.calls_fd < 0)
		return errmsg__fail(err, -errno, "cannot create a map: %s",
				    errmsg__errno(errno, buf, sizeof(buf)));
	return 0;
}

int session__floor(struct session *s, unsigned args, const struct floor **floor, struct errmsg *err)
{
	int rc = 0;

	if (args > FLOOR_MAX_ARGS)
		args = FLOOR_MAX_ARGS;
	if (!s->floor[args].n_metrics)
		rc = floor__measure(&s->floor[args], &s->opts, args, err);
	*floor = &s->floor[args];
	return rc;
}

/* Runs on a CPU without events are counted as lost; here is which CPU, and why. */
static void note_lost_cpus(const struct session *s)
{
	char buf[128];
	int cpu, why;
	size_t i;

	cpus__for_each(cpu, counters__online(s->counters))
	{
		for (i = 0; i < s->opts.n_events; i++) {
			why = counters__why_not(s->counters, cpu, i);
			if (why != -EACCES && why != -EPERM)
				continue;
			note(s->ctx,
			     "CPU %d came online and its events cannot be opened: %s; runs on it "
			     "are lost (with kernel.perf_event_paranoid=2 or less they are not)",
			     cpu, errmsg__errno(why, buf, sizeof(buf)));
			break;
		}
	}
}

int session__added(struct session *s, unsigned args, const double **added, struct errmsg *err)
{
	int rc;

	if (args > FLOOR_MAX_ARGS)
		args = FLOOR_MAX_ARGS;
	if (!s->added[args]) {
		s->added[args] = calloc(s->n_metrics, sizeof(double));
		if (!s->added[args])
			return errmsg__fail(err, -ENOMEM, "out of memory");
		rc = floor__added(s->added[args], &s->opts, args, err);
		if (rc) {
			free(s->added[args]);
			s->added[args] = NULL;
			return rc;
		}
	}
	*added = s->added[args];
	return 0;
}

int session__refresh(struct session *s, struct errmsg *err)
{
	char buf[128];
	int rc;

	if (!s->counters)
		return 0;
	rc = counters__refresh(s->counters, s->opts.events_fd);
	if (rc < 0)
		return errmsg__fail(err, rc, "cannot follow CPUs that come and go: %s",
				    errmsg__errno(rc, buf, sizeof(buf)));
	if (rc)
		note_lost_cpus(s);
	return 0;
}

void session__close(struct session *s)
{
	size_t i;

	for (i = 0; i <= FLOOR_MAX_ARGS; i++)
		floor__free(&s->floor[i]);
	for (i = 0; i <= FLOOR_MAX_ARGS; i++) {
		free(s->added[i]);
		s->added[i] = NULL;
	}
	if (s->opts.calls_fd >= 0)
		close(s->opts.calls_fd);
	s->opts.calls_fd = -1;
	if (s->opts.events_fd >= 0)
		close(s->opts.events_fd);
	s->opts.events_fd = -1;
	kernel_types__close(&s->types);
	s->opts.types = NULL;
	counters__close(s->counters);
	s->counters = NULL;
	drop_metrics(s);
}
