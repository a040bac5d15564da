// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * prog profile PROG... [func FUNC] [duration SECONDS] [interval SECONDS] [sample N] [METRIC...]
 *              [-- COMMAND...]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "caps.h"
#include "child.h"
#include "ctx.h"
#include "parse.h"
#include "profiler.h"
#include "progs.h"
#include "session.h"
#include "view.h"
#include "wait.h"
#include "window.h"

/* One function of one program. */
struct target {
	size_t prog; /* index into struct profile's progs */
	size_t func;
	struct profiler *profiler; /* NULL: it cannot be profiled */
	const struct floor *floor;
	struct sample last, now;
	struct window window;
	struct errmsg why;
};

struct profile {
	struct ctx *ctx;

	/* What was asked for. */
	struct progs progs;
	bool many; /* several PROGs, or `all`: a row a program */
	bool all;  /* programs that come later are profiled as well */
	const char *func;
	__u64 duration_ns, interval_ns;

	/* What it takes. */
	struct session session;
	struct target *targets;
	size_t n_targets;
	struct wait wait;
	struct child child;
};

static int parse_seconds(struct profile *p, const char *what, const char *word, __u64 *ns)
{
	if (parse__seconds(word, ns))
		return errmsg__usage(p->ctx->err,
				     "%s: '%s' is not a number of seconds above 0 (1, or 0.25)",
				     what, word);
	return 0;
}

/* A word with a value: returns 1 if it was one, 0 if not, or a negative errno. */
static int parse_keyword(struct profile *p, int *argc, char ***argv)
{
	const char *word = (*argv)[0], *value = *argc > 1 ? (*argv)[1] : NULL;
	unsigned long long n;
	int rc = 0;

	/* bpftool takes a beginning of `duration` where more than two words are left. */
	bool duration = !strcmp(word, "duration") ||
			(*argc > 2 && parse__is_prefix(word, "duration"));

	if (!duration && strcmp(word, "interval") && strcmp(word, "sample") && strcmp(word, "func"))
		return 0;
	if (!value)
		return errmsg__usage(p->ctx->err, "'%s' needs a value", word);
	if (duration) {
		rc = parse_seconds(p, "duration", value, &p->duration_ns);
	} else if (!strcmp(word, "interval")) {
		rc = parse_seconds(p, "interval", value, &p->interval_ns);
	} else if (!strcmp(word, "sample")) {
		if (parse__number(value, 1, 1000000000, &n))
			return errmsg__usage(p->ctx->err,
					     "sample: '%s' is not a number from 1 to 1000000000",
					     value);
		p->session.opts.sample_every = n > 1 ? n : 0;
	} else {
		p->func = value;
	}
	*argc -= 2;
	*argv += 2;
	return rc ? rc : 1;
}

static int parse(struct profile *p)
{
	int argc = p->ctx->argc, rc;
	char **argv = p->ctx->argv;
	const char *handle;
	size_t handles = 0;

	do {
		handle = argc ? argv[0] : "";
		if (!strcmp(handle, "all"))
			p->many = p->all = true;
		rc = progs__parse(&p->progs, &argc, &argv, p->ctx->err);
		if (rc < 0)
			return rc;
		handles++;
	} while (argc && progs__is_handle(argv[0]));
	if (handles > 1)
		p->many = true;
	while (argc) {
		rc = parse_keyword(p, &argc, &argv);
		if (rc < 0)
			return rc;
		if (rc)
			continue;
		rc = session__add_metric(&p->session, argv[0], p->ctx->err);
		if (rc)
			return rc;
		argc--, argv++;
	}
	if (p->ctx->command && !p->ctx->command[0])
		return errmsg__usage(p->ctx->err, "'--' needs a command behind it");
	return 0;
}

/* bpftool refuses a name that several programs have; so do we, and show which there are. */
static int check_ambiguous(struct profile *p)
{
	char text[1500] = "", type[32];
	size_t i, len = 0;

	if (p->many || p->progs.n < 2)
		return 0;
	for (i = 0; i < p->progs.n && len < sizeof(text) - 100; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%u (%s %s)", i ? ", " : "",
				p->progs.v[i].id,
				prog__type_name(p->progs.v[i].type, type, sizeof(type)),
				p->progs.v[i].name);
	return errmsg__usage(p->ctx->err,
			     "several programs match this handle: %s%s; name one by id", text,
			     i < p->progs.n ? ", ..." : "");
}

static int find_func(const struct profile *p, const struct prog *prog, size_t *func,
		     struct errmsg *err)
{
	char text[1500] = "";
	size_t i, len = 0;

	*func = 0;
	if (!p->func)
		return 0;
	for (i = 0; i < prog->n_funcs; i++) {
		if (!strcmp(prog->funcs[i].name, p->func)) {
			*func = i;
			return 0;
		}
		if (len < sizeof(text) - 100)
			len += snprintf(text + len, sizeof(text) - len, "%s%.64s", i ? ", " : "",
					prog->funcs[i].name);
	}
	return errmsg__usage(err, "prog %u (%s) has no function '%s'; it has: %s", prog->id,
			     prog->name, p->func, len ? text : "none with a name (no BTF)");
}

static int open_target(struct profile *p, struct target *t, struct errmsg *err)
{
	const struct prog *prog = &p->progs.v[t->prog];
	int rc;

	rc = find_func(p, prog, &t->func, err);
	if (rc)
		return rc;
	rc = profiler__open(&t->profiler, &p->session.opts, prog, t->func, err);
	if (rc)
		return rc;
	rc = session__floor(&p->session, t->func ? prog->funcs[t->func].args : 1, &t->floor, err);
	if (rc)
		return rc;
	rc = sample__init(&t->last, p->session.opts.n_cpus, p->session.opts.n_metrics)
		     ?: sample__init(&t->now, p->session.opts.n_cpus, p->session.opts.n_metrics);
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

/* One program that cannot be profiled is an error; of many it is a row that says why. */
static int open_targets(struct profile *p)
{
	size_t i, open = 0;
	int rc;

	p->targets = calloc(p->progs.n ? p->progs.n : 1, sizeof(*p->targets));
	if (!p->targets)
		return errmsg__fail(p->ctx->err, -ENOMEM, "out of memory");
	for (i = 0; i < p->progs.n; i++) {
		struct target *t = &p->targets[i];

		t->prog = i;
		p->n_targets = i + 1;
		if (wait__interrupted(&p->wait))
			return 0;
		rc = open_target(p, t, p->many ? &t->why : p->ctx->err);
		if (!rc) {
			open++;
			continue;
		}
		if (!p->many)
			return rc;
		close_target(t);
	}
	if (!open)
		return errmsg__fail(p->ctx->err, -ENOENT,
				    "none of %zu programs can be profiled%s%s", p->progs.n,
				    p->progs.n ? "; the first: " : "",
				    p->progs.n ? p->targets[0].why.text : "");
	return 0;
}

/* Where CPUs come online, runs on them can be counted only after their events are open. */
static int drop_privileges(struct profile *p)
{
	const cap_value_t keep[] = {CAP_PERFMON};
	char buf[128];
	int rc;

	rc = caps__keep_only(keep, p->session.opts.n_events ? 1 : 0);
	if (rc)
		return errmsg__fail(p->ctx->err, rc, "cannot drop privileges: %s",
				    errmsg__errno(rc, buf, sizeof(buf)));
	return 0;
}

static int read_targets(struct profile *p)
{
	char buf[128];
	size_t i;
	int rc;

	for (i = 0; i < p->n_targets; i++) {
		struct target *t = &p->targets[i];
		struct sample tmp = t->last;

		if (!t->profiler)
			continue;
		t->last = t->now;
		t->now = tmp;
		rc = profiler__read(t->profiler, &t->now);
		if (rc)
			return errmsg__fail(p->ctx->err, rc,
					    "prog %u: cannot read the counters: %s",
					    p->progs.v[t->prog].id,
					    errmsg__errno(rc, buf, sizeof(buf)));
	}
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (!x->window || !y->window)
		return !x->window - !y->window;
	if (x->window->metric[0].net != y->window->metric[0].net)
		return x->window->metric[0].net < y->window->metric[0].net ? 1 : -1;
	return x->prog->id < y->prog->id ? -1 : x->prog->id > y->prog->id;
}

/* Windows from the last samples, and a view of them. */
static int show(struct profile *p)
{
	struct report report = {
		.metrics = p->session.order,
		.n_metrics = p->session.n_metrics,
		.n_rows = p->n_targets,
		.one = !p->many,
		.interval = p->interval_ns != 0,
	};
	struct timespec now;
	struct row *rows;
	size_t i;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	report.time_ns = now.tv_sec * 1000000000ULL + now.tv_nsec;
	rows = calloc(p->n_targets ? p->n_targets : 1, sizeof(*rows));
	if (!rows)
		return errmsg__fail(p->ctx->err, -ENOMEM, "out of memory");
	for (i = 0; i < p->n_targets; i++) {
		struct target *t = &p->targets[i];
		const struct prog *prog = &p->progs.v[t->prog];

		rows[i].prog = prog;
		rows[i].func = prog->n_funcs ? prog->funcs[t->func].name : prog->name;
		rows[i].why = t->why.text;
		if (!t->profiler)
			continue;
		window__free(&t->window);
		rc = window__init(&t->window, &t->last, &t->now, t->floor->value);
		if (rc)
			goto cleanup;
		rows[i].window = &t->window;
		rows[i].floor = t->floor;
	}
	qsort(rows, p->n_targets, sizeof(*rows), compare_rows);
	report.rows = rows;
	if (p->ctx->json)
		rc = view__json(p->ctx, &report);
	else
		view__plain(p->ctx, &report);
cleanup:
	free(rows);
	return rc ? errmsg__fail(p->ctx->err, rc, "out of memory") : 0;
}

static void detach_entries(struct profile *p)
{
	size_t i;

	for (i = 0; i < p->n_targets; i++)
		if (p->targets[i].profiler)
			profiler__detach_entry(p->targets[i].profiler);
	profiler__settle();
}

static int measure(struct profile *p)
{
	int rc, event;

	/* Runs that began before the entry program was there end without a pair: they are not in
	 * the window, because it begins after them. */
	profiler__settle();
	rc = read_targets(p);
	if (rc)
		return rc;
	wait__start(&p->wait, p->duration_ns, p->interval_ns, &p->child);
	if (p->child.pid) {
		rc = child__go(&p->child);
		if (rc)
			return errmsg__fail(p->ctx->err, rc, "cannot start the command");
	}
	for (;;) {
		event = wait__next(&p->wait);
		if (event < 0)
			return errmsg__fail(p->ctx->err, event, "cannot wait");
		rc = session__refresh(&p->session, p->ctx->err);
		if (rc)
			return rc;
		if (event == WAIT_END)
			break;
		if (event == WAIT_INTERVAL) {
			rc = read_targets(p) ?: show(p);
			if (rc)
				return rc;
		}
	}
	detach_entries(p);
	return read_targets(p) ?: show(p);
}

static void close_profile(struct profile *p)
{
	size_t i;

	for (i = 0; i < p->n_targets; i++)
		close_target(&p->targets[i]);
	free(p->targets);
	session__close(&p->session);
	progs__close(&p->progs);
	wait__close(&p->wait);
}

int cmd_prog_profile(struct ctx *ctx)
{
	struct profile p = {.ctx = ctx, .wait.signal_fd = -1};
	char buf[128];
	int rc;

	session__init(&p.session, ctx);
	rc = wait__open(&p.wait);
	if (rc) {
		errmsg__fail(ctx->err, rc, "cannot wait for signals: %s",
			     errmsg__errno(rc, buf, sizeof(buf)));
		goto cleanup;
	}
	rc = parse(&p) ?: check_ambiguous(&p);
	if (rc)
		goto cleanup;

	/* Before limits are raised and privileges dropped: the command gets the caller's. */
	if (ctx->command) {
		rc = child__open(&p.child, ctx->command, ctx->json);
		if (rc) {
			errmsg__fail(ctx->err, rc, "cannot fork: %s",
				     errmsg__errno(rc, buf, sizeof(buf)));
			goto cleanup;
		}
	}
	rc = session__open(&p.session, ctx->err) ?: open_targets(&p) ?: drop_privileges(&p);
	if (rc)
		goto cleanup;
	rc = measure(&p);
cleanup:
	close_profile(&p);
	if (p.child.pid) {
		bool started = p.child.go < 0;

		if (started)
			child__wait(&p.child);
		child__close(&p.child);
		if (started && !rc)
			return p.child.status;
	}
	return rc ? (int)ctx->err->status : EXIT_DONE;
}
