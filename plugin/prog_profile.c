// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * prog profile PROG... [func FUNC] [duration SECONDS] [interval SECONDS] [sample N] [METRIC...]
 *              [-- COMMAND...]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "caps.h"
#include "child.h"
#include "ctx.h"
#include "parse.h"
#include "profiler.h"
#include "progs.h"
#include "session.h"
#include "targets.h"
#include "view.h"
#include "wait.h"
#include "window.h"

struct profile {
	struct ctx *ctx;

	/* What was asked for. */
	struct progs progs;
	bool many;	/* several PROGs, or `all`: a row a program */
	bool all;	/* programs that come later are profiled as well */
	char **handles; /* the words that name the programs */
	int n_handles;	/* words */
	__u64 duration_ns, interval_ns;

	/* What it takes. */
	struct session session;
	struct targets targets;
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

	if (!strcmp(word, "histogram")) {
		p->session.opts.histogram = true;
		--*argc, ++*argv;
		return 1;
	}
	if (!duration && strcmp(word, "interval") && strcmp(word, "sample") &&
	    strcmp(word, "func") && strcmp(word, "by"))
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
	} else if (!strcmp(word, "by")) {
		if (strcmp(value, "task"))
			return errmsg__usage(p->ctx->err, "expected 'by task', got: 'by %s'",
					     value);
		p->session.opts.tasks = true;
	} else {
		p->targets.func = value;
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
	p->handles = p->ctx->argv;
	p->n_handles = p->ctx->argc - argc;
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
	if (p->targets.func && !strcmp(p->targets.func, "all")) {
		if (p->session.opts.sample_every)
			return errmsg__usage(p->ctx->err,
					     "'func all' needs every run, and 'sample' leaves runs "
					     "out: use one of them");
		/* Neither knows what measuring the calls in a run cost. */
		if (p->session.opts.histogram || p->session.opts.tasks)
			return errmsg__usage(
				p->ctx->err,
				"'func all' does not go with 'histogram' or 'by task'; "
				"name one function: func FUNC");
		p->session.opts.calls = true;
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

/* The profiler's own programs are nothing to profile. */
static bool is_own(const struct prog *prog)
{
	return !strncmp(prog->name, "bpfcost_", 8);
}

/* One program that cannot be profiled is an error; of many it is a row that says why. */
static int open_targets(struct profile *p)
{
	size_t i;
	int rc;

	p->targets.session = &p->session;
	p->targets.many = p->many || p->session.opts.calls;
	for (i = 0; i < p->progs.n; i++) {
		if (wait__interrupted(&p->wait))
			return 0;
		if (p->all && is_own(&p->progs.v[i]))
			continue;
		rc = targets__add(&p->targets, &p->progs.v[i], p->ctx->err);
		if (rc)
			return rc;
	}
	if (targets__count(&p->targets) || p->interval_ns)
		return 0;
	if (!p->targets.n)
		return errmsg__fail(p->ctx->err, -ENOENT, "no BPF programs are loaded here");
	return errmsg__fail(p->ctx->err, -ENOENT,
			    "none of %zu programs can be profiled; the first: %s", p->targets.n,
			    p->targets.v[0]->why.text);
}

/* Programs that came since, by the words that named the first ones. */
static int add_new(struct profile *p)
{
	struct progs found = {};
	struct errmsg ignored;
	char **argv = p->handles;
	int argc = p->n_handles, rc = 0;
	size_t i;

	while (argc) {
		/* One that is gone for now may be back the next time. */
		memset(&ignored, 0, sizeof(ignored));
		progs__parse(&found, &argc, &argv, &ignored);
	}
	for (i = 0; i < found.n && !rc; i++) {
		struct prog *prog = &found.v[i];

		if (!targets__find(&p->targets, prog->id, prog->load_time) && !is_own(prog))
			rc = targets__add(&p->targets, prog, p->ctx->err);
	}
	progs__close(&found);
	return rc;
}

/*
 * With unprivileged_bpf_disabled, kernels before 5.19 want CAP_BPF for every use of bpf(2), reading
 * a program's info included (kernel/bpf/syscall.c, commit c8644cd0efe7). Tried out by a process
 * that has nothing to lose.
 */
static bool reading_needs_cap_bpf(const struct profile *p)
{
	bool known;
	__u64 misses;
	int status = 1;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(caps__keep_only(NULL, 0) ||
		      prog__recursion_misses(p->targets.v[0]->prog.fd, &misses, &known));
	return pid < 0 || waitpid(pid, &status, 0) < 0 || status;
}

/* Where CPUs come online, runs on them can be counted only after their events are open; programs
 * that come later have yet to be attached to. */
static int drop_privileges(struct profile *p)
{
	bool later = p->many && p->interval_ns;
	cap_value_t keep[4];
	char buf[128];
	size_t n = 0;
	int rc;

	if (later || p->session.opts.n_events)
		keep[n++] = CAP_PERFMON;
	if (later || (p->targets.n && reading_needs_cap_bpf(p)))
		keep[n++] = CAP_BPF;
	if (later)
		keep[n++] = CAP_SYS_ADMIN;
	/* Signals are handed on to a command, also if it became somebody else. */
	if (p->child.pid)
		keep[n++] = CAP_KILL;
	rc = caps__keep_only(keep, n);
	if (rc)
		return errmsg__fail(p->ctx->err, rc, "cannot drop privileges: %s",
				    errmsg__errno(rc, buf, sizeof(buf)));
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
		.n_rows = p->targets.n,
		.one = !p->targets.many,
		.interval = p->interval_ns != 0,
	};
	struct timespec now;
	struct row *rows;
	size_t i;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	report.time_ns = now.tv_sec * 1000000000ULL + now.tv_nsec;
	rows = calloc(p->targets.n ? p->targets.n : 1, sizeof(*rows));
	if (!rows)
		return errmsg__fail(p->ctx->err, -ENOMEM, "out of memory");
	for (i = 0; i < p->targets.n; i++) {
		struct target *t = p->targets.v[i];

		rows[i].prog = &t->prog;
		rows[i].func = t->prog.n_funcs ? t->prog.funcs[t->func].name : t->prog.name;
		rows[i].why = t->why.text;
		if (!t->profiler)
			continue;
		rows[i].window = &t->window;
		rows[i].floor = t->floor;
	}
	qsort(rows, p->targets.n, sizeof(*rows), compare_rows);
	report.rows = rows;
	if (p->ctx->json)
		rc = view__json(p->ctx, &report);
	else
		view__plain(p->ctx, &report);
	free(rows);
	return rc ? errmsg__fail(p->ctx->err, rc, "out of memory") : 0;
}

static int measure(struct profile *p)
{
	int rc, event;

	/* Runs that began before the entry program was there end without a pair: they are not in
	 * the window, because it begins after them. */
	profiler__settle();
	rc = targets__read(&p->targets, p->ctx->err);
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
			rc = targets__read(&p->targets, p->ctx->err) ?: show(p);
			if (!rc && p->many)
				rc = targets__drop_gone(&p->targets, p->ctx->err) ?: add_new(p);
			if (rc)
				return rc;
			/* What nobody can read any more is not worth slowing programs down for. */
			if (fflush(p->ctx->out) || ferror(p->ctx->out))
				break;
		}
	}
	targets__stop(&p->targets);
	return targets__read(&p->targets, p->ctx->err) ?: show(p);
}

static void close_profile(struct profile *p)
{
	targets__close(&p->targets);
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
