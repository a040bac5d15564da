// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * calibrate: what measuring costs on this machine. For each method the floor (what it reads for an
 * empty program, per run) and the added cost (by how much a run becomes slower).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <json-c/json.h>

#include "cost.h"
#include "ctx.h"
#include "empty.skel.h"
#include "json.h"
#include "session.h"
#include "stats_switch.h"
#include "wait.h"

static const struct method {
	const char *name;
	const char *metrics[2];
	unsigned sample;
	bool statistics;
} methods[] = {
	{.name = "kernel statistics", .statistics = true},
	{.name = "ns", .metrics = {"ns"}},
	{.name = "cycles", .metrics = {"cycles"}},
	{.name = "instructions", .metrics = {"instructions"}},
	{.name = "cycles instructions", .metrics = {"cycles", "instructions"}},
	{.name = "cycles instructions, sample 64",
	 .metrics = {"cycles", "instructions"},
	 .sample = 64},
	{.name = "ns, sample 64", .metrics = {"ns"}, .sample = 64},
};

#define N_METHODS (sizeof(methods) / sizeof(methods[0]))

struct result {
	struct floor floor;		 /* n_metrics 0: not measured */
	const char *metric[2], *unit[2]; /* of the floors */
	struct cost without, with;
	struct errmsg why; /* why it could not be measured */
};

static int measure_statistics(struct result *r, const struct cost_meter *meter,
			      const struct ctx *ctx, int fd)
{
	struct stats_switch sw = {.proc_root = ctx->proc_root};
	const char *end;
	int rc;

	rc = stats_switch__open(&sw, &r->why);
	if (rc)
		return rc;
	if (sw.how != STATS_SWITCH_FD)
		note(ctx, "the switch of the statistics is %s", stats_switch__how(&sw));
	rc = cost__measure(&r->with, meter, fd, 1, &r->why)
		     ?: floor__statistics(&r->floor, fd, &r->why);
	r->metric[0] = "run_time_ns";
	r->unit[0] = "ns";
	end = stats_switch__close(&sw);
	if (end)
		note(ctx, "%s", end);
	return rc;
}

static int measure_profiling(struct result *r, const struct method *m,
			     const struct cost_meter *meter, struct ctx *ctx, int fd)
{
	const struct floor *floor;
	struct prog prog = {.fd = -1};
	struct profiler *p = NULL;
	struct session session;
	size_t i;
	int rc, own;

	session__init(&session, ctx);
	session.opts.sample_every = m->sample;
	for (i = 0; i < 2 && m->metrics[i]; i++) {
		rc = session__add_metric(&session, m->metrics[i], &r->why);
		if (rc)
			goto cleanup;
		r->metric[i] = m->metrics[i];
		r->unit[i] = session.metric[i].unit;
	}
	rc = session__open(&session, &r->why) ?: session__floor(&session, 1, &floor, &r->why);
	if (rc)
		goto cleanup;
	own = dup(fd);
	if (own < 0) {
		rc = errmsg__fail(&r->why, -errno, "cannot duplicate an fd: %s", strerror(errno));
		goto cleanup;
	}
	rc = prog__open_fd(&prog, own, &r->why) ?:
	     profiler__open(&p, &session.opts, &prog, 0, &r->why) ?:
	     profiler__attach(p, &r->why) ?:
	     cost__measure(&r->with, meter, fd, m->sample ? m->sample : 1, &r->why) ?:
	     floor__copy(&r->floor, floor);
cleanup:
	profiler__close(p);
	prog__close(&prog);
	/* Its counters are gone before the next method needs some. */
	session__close(&session);
	return rc;
}

static void print_added(FILE *out, bool has, double v, const char *unit)
{
	if (has)
		fprintf(out, " %10.2f %-12s", v, unit);
	else
		fprintf(out, " %10s %-12s", "-", "");
}

static void show_plain(const struct ctx *ctx, const struct result *results)
{
	FILE *out = ctx->out;
	size_t i, k;

	fprintf(out, "What measuring costs here, a run of an empty program:\n\n");
	fprintf(out, "%-32s %-23s %-23s %-23s %s\n", "method", " added time", " added instructions",
		" added cycles", " floor (p10..p90)");
	for (i = 0; i < N_METHODS; i++) {
		const struct result *r = &results[i];

		fprintf(out, "%-32s", methods[i].name);
		if (!r->floor.n_metrics) {
			fprintf(out, "  not measured: %s\n", r->why.text);
			continue;
		}
		print_added(out, true, r->with.ns - r->without.ns, "ns");
		print_added(out, r->with.has_instructions,
			    r->with.instructions - r->without.instructions, "instructions");
		print_added(out, r->with.has_cycles, r->with.cycles - r->without.cycles, "cycles");
		for (k = 0; k < r->floor.n_metrics; k++)
			fprintf(out, "%s %.2f (%.2f..%.2f) %s", k ? "," : " ", r->floor.value[k],
				r->floor.low[k], r->floor.high[k], r->unit[k]);
		fputc('\n', out);
	}
	if (results[0].floor.n_metrics)
		fprintf(out,
			"\nSwitching the kernel's statistics on costs every run of every program "
			"%.2f ns.\n",
			results[0].with.ns - results[0].without.ns);
}

static int put_method(struct json_object *array, const struct method *m, const struct result *r)
{
	struct json_object *obj = json_object_new_object(), *floors;
	size_t k;
	int rc;

	rc = json__append(array, obj);
	if (rc)
		return rc;
	rc = json__put(obj, "method", json_object_new_string(m->name));
	if (rc || !r->floor.n_metrics)
		return rc ?: json__put(obj, "error", json_object_new_string(r->why.text));
	rc = json__put(obj, "added_ns", json__number(r->with.ns - r->without.ns));
	if (!rc && r->with.has_instructions)
		rc = json__put(obj, "added_instructions",
			       json__number(r->with.instructions - r->without.instructions));
	if (!rc && r->with.has_cycles)
		rc = json__put(obj, "added_cycles",
			       json__number(r->with.cycles - r->without.cycles));
	floors = json_object_new_array();
	rc = rc ?: json__put(obj, "floor", floors);
	for (k = 0; !rc && k < r->floor.n_metrics; k++) {
		struct json_object *f = json_object_new_object();

		rc = json__append(floors, f) ?:
			json__put(f, "metric", json_object_new_string(r->metric[k])) ?:
			json__put(f, "floor", json__number(r->floor.value[k])) ?:
			json__put(f, "floor_p10", json__number(r->floor.low[k])) ?:
			json__put(f, "floor_p90", json__number(r->floor.high[k]));
	}
	return rc;
}

static int show_json(const struct ctx *ctx, const struct result *results)
{
	struct json_object *array = json_object_new_array();
	size_t i;
	int rc = array ? 0 : -ENOMEM;

	for (i = 0; !rc && i < N_METHODS; i++)
		rc = put_method(array, &methods[i], &results[i]);
	if (!rc)
		rc = json__print(ctx, array, false);
	json_object_put(array);
	return rc ? errmsg__fail(ctx->err, rc, "out of memory") : 0;
}

int cmd_calibrate(struct ctx *ctx)
{
	struct result *results = calloc(N_METHODS, sizeof(*results));
	struct cost_meter meter = {-1, -1};
	struct empty_bpf *skel = NULL;
	char buf[128];
	size_t i;
	size_t measured = 0;
	struct wait wait;
	int fd, rc;

	/* Whoever interrupts it gets what is there, as with prog profile. */
	rc = wait__open(&wait);
	if (rc) {
		errmsg__fail(ctx->err, rc, "cannot wait for signals: %s",
			     errmsg__errno(rc, buf, sizeof(buf)));
		free(results);
		return ctx->err->status;
	}
	if (!results) {
		rc = errmsg__fail(ctx->err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	if (ctx->argc || ctx->command) {
		rc = errmsg__usage(ctx->err, "calibrate takes no arguments, got: '%s'",
				   ctx->argc ? ctx->argv[0] : "--");
		goto cleanup;
	}
	skel = empty_bpf__open_and_load();
	if (!skel) {
		rc = -errno;
		errmsg__fail(ctx->err, rc, "cannot load the empty program: %s%s",
			     errmsg__errno(rc, buf, sizeof(buf)),
			     rc == -EPERM ? "; it needs CAP_BPF and CAP_PERFMON, for example: sudo"
					  : "");
		goto cleanup;
	}
	fd = bpf_program__fd(skel->progs.empty);
	cost_meter__open(&meter);
	for (i = 0; i < N_METHODS; i++) {
		struct result *r = &results[i];

		if (wait__interrupted(&wait)) {
			errmsg__fail(&r->why, -EINTR, "interrupted");
			continue;
		}
		/* Just before, so that a drift of the clock speed hits both alike. */
		rc = cost__measure(&r->without, &meter, fd,
				   methods[i].sample ? methods[i].sample : 1, ctx->err);
		if (rc)
			goto cleanup;
		rc = methods[i].statistics ? measure_statistics(r, &meter, ctx, fd)
					   : measure_profiling(r, &methods[i], &meter, ctx, fd);
		if (rc)
			floor__free(&r->floor);
		measured += !rc;
	}
	if (!measured && !wait__interrupted(&wait)) {
		rc = errmsg__fail(ctx->err, -EIO, "nothing can be measured; the first method: %s",
				  results[0].why.text);
		goto cleanup;
	}
	if (ctx->json) {
		rc = show_json(ctx, results);
	} else {
		rc = 0;
		show_plain(ctx, results);
	}
cleanup:
	wait__close(&wait);
	cost_meter__close(&meter);
	empty_bpf__destroy(skel);
	for (i = 0; results && i < N_METHODS; i++)
		floor__free(&results[i].floor);
	free(results);
	return rc ? (int)ctx->err->status : EXIT_DONE;
}
