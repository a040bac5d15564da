/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_SESSION_H
#define BPFCOST_SESSION_H

#include "counters.h"
#include "ctx.h"
#include "floor.h"
#include "kernel_types.h"
#include "metrics.h"
#include "profiler.h"
#include "profiler_state.h"

/*
 * What one measurement needs once, however many programs it looks at: the metrics, their counters,
 * the map that hands them to BPF, and the floors.
 */
#define SESSION_MAX_METRICS PROFILER_MAX_EVENTS

struct session {
	struct ctx *ctx;
	struct metric metric[SESSION_MAX_METRICS];
	size_t n_metrics;
	/* The same in the order of results: bpftool's table, others as they came, the clock. */
	const struct metric *order[SESSION_MAX_METRICS];
	struct profiler_opts opts;
	struct counters *counters; /* NULL without events */
	struct kernel_types types;
	struct floor floor[FLOOR_MAX_ARGS + 1]; /* by number of arguments, measured when needed */
	double *added[FLOOR_MAX_ARGS + 1];
};

void session__init(struct session *s, struct ctx *ctx);

/* Adds the metric that @word names; one that is there already is not added again. */
int session__add_metric(struct session *s, const char *word, struct errmsg *err);

/*
 * Opens counters and map. Without metrics: cycles and instructions where the machine counts them,
 * else ns, with a note. s->opts.sample_every and the like are set by the caller before.
 */
int session__open(struct session *s, struct errmsg *err);

/* The floor for functions with @args arguments. Measured at the first call. */
int session__floor(struct session *s, unsigned args, const struct floor **floor,
		   struct errmsg *err);

/* The same for floor__added(); the array has a value for each metric. Only with opts.calls. */
int session__added(struct session *s, unsigned args, const double **added, struct errmsg *err);

/* Follows CPUs that come and go. */
int session__refresh(struct session *s, struct errmsg *err);

void session__close(struct session *s);

#endif
