// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "targets.h"

/* So many idle programs are let go at a time. */
#define PROBES 4

static int no_function(const struct prog *prog, const char *func, struct errmsg *err)
{
	char text[1500] = "";
	size_t i, len = 0;

	for (i = 0; i < prog->n_funcs && len < sizeof(text) - 100; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%.64s", i ? ", " : "",
				prog->funcs[i].name);
	return errmsg__usage(err, "prog %u (%s) has no function '%s'; it has: %s", prog->id,
			     prog->name, func, len ? text : "none with a name (no BTF)");
}

static int open_target(struct targets *ts, struct target *t, struct errmsg *err)
{
	struct session *s = ts->session;
	struct profiler_opts opts = s->opts;
	unsigned args = t->func ? t->prog.funcs[t->func].args : 1;
	int rc;

	/* The histogram needs the floor before its program is loaded. Else, the program goes first:
	 * what is wrong with it is better news than what is wrong with the floor. */
	if (opts.histogram) {
		rc = session__floor(s, args, &t->floor, err);
		if (rc)
			return rc;
		opts.histogram_floor = t->floor->value[0];
	}
	if (opts.calls) {
		rc = session__floor(s, args, &t->floor, err);
		if (!rc)
			rc = session__added(s, args, &opts.added, err);
		if (rc)
			return rc;
		opts.floor = t->floor->value;
	}
	rc = profiler__open(&t->profiler, &opts, &t->prog, t->func, err)
		     ?: session__floor(s, args, &t->floor, err);
	if (rc)
		return rc;
	rc = sample__init(&t->last, opts.n_cpus, opts.n_metrics)
		     ?: sample__init(&t->now, opts.n_cpus, opts.n_metrics);
	if (rc)
		return errmsg__fail(err, rc, "out of memory");
	return profiler__attach(t->profiler, err);
}

static void close_target(struct target *t)
{
	profiler__close(t->profiler);
	t->profiler = NULL;
	sample__free(&t->last);
	sample__free(&t->now);
	window__free(&t->window);
}

static struct target *append(struct targets *ts)
{
	struct target **v, *t;

	v = realloc(ts->v, (ts->n + 1) * sizeof(struct target *));
	if (!v)
		return NULL;
	ts->v = v;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->prog.fd = -1;
	v[ts->n++] = t;
	return t;
}

static int add_one(struct targets *ts, struct prog *prog, size_t func, struct errmsg *err)
{
	struct target *t = append(ts);
	int rc;

	if (!t) {
		prog__close(prog);
		return errmsg__fail(err, -ENOMEM, "out of memory");
	}
	t->prog = *prog;
	memset(prog, 0, sizeof(*prog));
	prog->fd = -1;
	t->func = func;
	t->seen = true;
	rc = open_target(ts, t, ts->many ? &t->why : err);
	if (!rc)
		/* What ran before the entry program was there is not in the first window. */
		rc = profiler__read(t->profiler, &t->now);
	if (!rc)
		return 0;
	if (!ts->many)
		return errmsg__fail(err, rc, "prog %u: cannot read the counters", t->prog.id);
	close_target(t);
	return 0;
}

/* A row for each function; each holds the program by an fd of its own. */
static int add_all(struct targets *ts, struct prog *prog, struct errmsg *err)
{
	size_t i, n = prog->n_funcs ? prog->n_funcs : 1;
	int rc = 0;

	for (i = 0; !rc && i < n; i++) {
		struct prog again = {.fd = -1};
		int fd = dup(prog->fd);

		if (fd < 0)
			rc = errmsg__fail(err, -errno, "cannot duplicate an fd: %s",
					  strerror(errno));
		else
			rc = prog__open_fd(&again, fd, err) ?: add_one(ts, &again, i, err);
	}
	prog__close(prog);
	return rc;
}

int targets__add(struct targets *ts, struct prog *prog, struct errmsg *err)
{
	size_t i;
	int rc;

	if (!ts->func)
		return add_one(ts, prog, 0, err);
	if (!strcmp(ts->func, "all"))
		return add_all(ts, prog, err);
	for (i = 0; i < prog->n_funcs; i++)
		if (!strcmp(prog->funcs[i].name, ts->func))
			return add_one(ts, prog, i, err);
	if (ts->many) {
		struct target *t = append(ts);

		if (t) {
			t->prog = *prog;
			memset(prog, 0, sizeof(*prog));
			prog->fd = -1;
			t->seen = true;
			no_function(&t->prog, ts->func, &t->why);
			return 0;
		}
	}
	rc = no_function(prog, ts->func, err);
	prog__close(prog);
	return rc;
}

size_t targets__count(const struct targets *ts)
{
	size_t i, n = 0;

	for (i = 0; i < ts->n; i++)
		n += ts->v[i]->profiler != NULL;
	return n;
}

bool targets__find(struct targets *ts, __u32 id, __u64 load_time)
{
	bool found = false;
	size_t i;

	for (i = 0; i < ts->n; i++) {
		struct target *t = ts->v[i];

		if (t->prog.id == id && t->prog.load_time == load_time)
			found = t->seen = true;
	}
	return found;
}

static void drop(struct targets *ts, size_t i)
{
	struct target *t = ts->v[i];

	close_target(t);
	prog__close(&t->prog);
	free(t);
	memmove(&ts->v[i], &ts->v[i + 1], (ts->n - i - 1) * sizeof(ts->v[0]));
	ts->n--;
}

int targets__drop_gone(struct targets *ts, struct errmsg *err)
{
	size_t i = 0, probes = 0, left = ts->n;

	/* The functions of a program would have to be let go together. */
	if (ts->func && !strcmp(ts->func, "all"))
		return 0;

	/* Those that come back go to the end, so that the next call looks at others. */
	while (i < ts->n && left--) {
		struct target *t = ts->v[i];
		struct prog again;
		__u64 load_time = t->prog.load_time;
		__u32 id = t->prog.id;
		struct errmsg why = {};
		int rc;

		if (t->profiler && (!t->idle || probes == PROBES)) {
			i++;
			continue;
		}
		probes += t->profiler != NULL;
		drop(ts, i);
		rc = prog__open_id(&again, id, &why);
		if (rc == -ENOENT)
			continue;
		if (rc)
			return errmsg__fail(err, rc, "%s", why.text);
		if (again.load_time != load_time) { /* the id is used again */
			prog__close(&again);
			continue;
		}
		rc = targets__add(ts, &again, err);
		if (rc)
			return rc;
	}
	return 0;
}

int targets__read(struct targets *ts, struct errmsg *err)
{
	char buf[128];
	size_t i;
	int rc;

	for (i = 0; i < ts->n; i++) {
		struct target *t = ts->v[i];
		struct sample tmp = t->last;

		if (!t->profiler)
			continue;
		t->last = t->now;
		t->now = tmp;
		rc = profiler__read(t->profiler, &t->now);
		if (rc)
			return errmsg__fail(err, rc, "prog %u: cannot read the counters: %s",
					    t->prog.id, errmsg__errno(rc, buf, sizeof(buf)));
		window__free(&t->window);
		rc = window__init(&t->window, &t->last, &t->now, t->floor->value);
		if (rc)
			return errmsg__fail(err, rc, "out of memory");
		t->idle = !t->window.run_cnt;
	}
	return 0;
}

void targets__stop(struct targets *ts)
{
	size_t i;

	for (i = 0; i < ts->n; i++)
		if (ts->v[i]->profiler)
			profiler__detach_entry(ts->v[i]->profiler);
	profiler__settle();
}

void targets__close(struct targets *ts)
{
	while (ts->n)
		drop(ts, ts->n - 1);
	free(ts->v);
	ts->v = NULL;
}
