// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * prog stats [PROG...] [duration SECONDS] [interval SECONDS] [by owner] [-- COMMAND...]
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "blind.h"
#include "caps.h"
#include "child.h"
#include "ctx.h"
#include "parse.h"
#include "runstats.h"
#include "screen.h"
#include "stats_switch.h"
#include "stats_view.h"
#include "stats_window.h"
#include "wait.h"

/* Looking for new programs is one system call: often, so that few come and go unseen. */
#define LOOK_NS 50000000ULL

struct stats {
	struct ctx *ctx;

	/* What was asked for. */
	struct prog_filter *filters;
	size_t n_filters;
	__u64 duration_ns, interval_ns;
	bool by_owner;

	/* What it takes. */
	struct runstats source;
	struct stats_switch sw;
	struct errmsg refusal; /* why it may not be held; that it is on is not known then */
	bool sysctl_was_on;
	struct floor floor; /* n_metrics 0: not known */
	struct stats_sample sample[2], *last, *now;
	struct stats_window window; /* the last one, and what is shown of it */
	struct stats_report report;
	struct owners owners;
	struct blind blind;
	struct wait wait;
	struct child child;
	struct screen screen;
	bool waits; /* has said that nothing was counted so far */
	bool watch; /* what there is to show is drawn on the screen, while we have it */

	unsigned samples; /* taken so far, for -d */
};

static int parse_prog(struct stats *s, int *argc, char ***argv)
{
	struct prog_filter *v;

	v = realloc(s->filters, (s->n_filters + 1) * sizeof(*v));
	if (!v)
		return errmsg__fail(s->ctx->err, -ENOMEM, "out of memory");
	s->filters = v;
	return prog_filter__parse(&v[s->n_filters++], argc, argv, s->ctx->err);
}

static int parse_seconds(struct stats *s, const char *what, const char *word, __u64 *ns)
{
	if (*ns)
		return errmsg__usage(s->ctx->err, "'%s' is there twice", what);
	if (parse__seconds(word, ns))
		return errmsg__usage(s->ctx->err,
				     "%s: '%s' is not a number of seconds above 0 (1, or 0.25)",
				     what, word);
	return 0;
}

/* The beginning of a word will do; `i` is id, as everywhere. */
static bool is_handle(const char *word)
{
	return parse__is_prefix(word, "id") || parse__is_prefix(word, "tag") ||
	       parse__is_prefix(word, "name") || parse__is_prefix(word, "pinned") ||
	       parse__is_prefix(word, "all");
}

/* A word with a value. */
static int parse_keyword(struct stats *s, const char *word, const char *value)
{
	bool duration = parse__is_prefix(word, "duration");
	bool interval = parse__is_prefix(word, "interval");

	if (!duration && !interval && !parse__is_prefix(word, "by"))
		return errmsg__usage(s->ctx->err,
				     "expected 'id', 'tag', 'name', 'pinned', 'all', "
				     "'duration', 'interval' or 'by', got: '%s'",
				     word);
	if (!value)
		return errmsg__usage(s->ctx->err, "'%s' needs a value", word);
	if (duration)
		return parse_seconds(s, "duration", value, &s->duration_ns);
	if (interval)
		return parse_seconds(s, "interval", value, &s->interval_ns);
	if (!parse__is_prefix(value, "owner"))
		return errmsg__usage(s->ctx->err, "expected 'by owner', got: 'by %s'", value);
	s->by_owner = true;
	return 0;
}

static int parse(struct stats *s)
{
	int argc = s->ctx->argc, rc = 0;
	char **argv = s->ctx->argv;

	while (argc && !rc) {
		if (is_handle(argv[0])) {
			rc = parse_prog(s, &argc, &argv);
			continue;
		}
		rc = parse_keyword(s, argv[0], argc > 1 ? argv[1] : NULL);
		argc -= 2;
		argv += 2;
	}
	if (!rc && s->ctx->command && !s->ctx->command[0])
		return errmsg__usage(s->ctx->err, "'--' needs a command behind it");
	return rc;
}

static __u64 cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Can it have been switched off under us? Only an fd of our own is safe from that. */
static bool is_off(const struct stats *s)
{
	int value = 0;
	bool on;

	if (s->sw.how == STATS_SWITCH_FD)
		return false;
	if (!stats_switch__observe(&on, NULL))
		return !on;
	/* Of those who hold it by an fd nothing is known here. */
	return s->sysctl_was_on && !stats_switch__sysctl(s->sw.proc_root, &value) && !value;
}

/*
 * Holds the switch. Who may neither do that nor see whether somebody else does, sees it in the end:
 * if a program was counted, it was on.
 */
static int hold_switch(struct stats *s)
{
	int value = 0, rc;
	bool on;

	rc = stats_switch__open(&s->sw, &s->refusal);
	if (rc == -EPERM && stats_switch__observe(&on, NULL)) {
		s->sw.held = true;
		s->sw.how = STATS_SWITCH_FOREIGN;
		rc = 0;
	} else if (!rc) {
		memset(&s->refusal, 0, sizeof(s->refusal));
	}
	if (rc)
		return errmsg__fail(s->ctx->err, rc, "%s", s->refusal.text);
	rc = s->sw.set ? wait__also(&s->wait, &s->sw.blocked) : 0;
	if (rc)
		return errmsg__fail(s->ctx->err, rc, "cannot wait for signals");
	s->sysctl_was_on = !stats_switch__sysctl(s->sw.proc_root, &value) && value;
	if (s->sw.how == STATS_SWITCH_FD)
		debug(s->ctx, "the switch of the statistics is %s", stats_switch__how(&s->sw));
	else if (s->refusal.status)
		note(s->ctx, "whether the statistics are on is not known; to hold them on needs "
			     "CAP_SYS_ADMIN, for example: sudo");
	else
		note(s->ctx, "the switch of the statistics is %s", stats_switch__how(&s->sw));
	return 0;
}

static int take_sample(struct stats *s, bool probe)
{
	struct stats_sample *tmp = s->last;
	__u64 cpu, wall;
	char buf[256];
	int rc;

	s->last = s->now;
	s->now = tmp;
	wall = wait__now_ns();
	cpu = cpu_ns();
	rc = runstats__read(&s->source, s->now, probe, s->ctx->err);
	if (rc)
		return rc;
	cpu = cpu_ns() - cpu;
	wall = wait__now_ns() - wall;
	s->now->switch_was_off = is_off(s);
	/* What looks is a program, and it was not somebody else's that nobody saw. */
	if (s->sw.how != STATS_SWITCH_FD)
		runstats__skip_ids(&s->source);
	debug(s->ctx, "sample %u: %.3f ms of CPU in %.3f ms; %s", ++s->samples, cpu / 1e6,
	      wall / 1e6, runstats__how(&s->source, buf, sizeof(buf)));
	return 0;
}

/* Asked for, so that it is a fault if it cannot be found out. */
static int read_owners(struct stats *s)
{
	struct stats_report *r = &s->report;
	__u32 *ids = calloc(r->n_rows ? r->n_rows : 1, sizeof(*ids));
	size_t i;
	int rc;

	if (!ids)
		return errmsg__fail(s->ctx->err, -ENOMEM, "out of memory");
	for (i = 0; i < r->n_rows; i++)
		ids[i] = r->rows[i].prog.row.id;
	rc = owners__read(&s->owners, s->source.proc_root, ids, r->n_rows, s->ctx->err);
	for (i = 0; !rc && i < r->n_rows; i++)
		r->rows[i].owners = owners__of(&s->owners, ids[i], &r->rows[i].n_owners);
	if (!rc)
		debug(s->ctx, "owners are read by %s",
		      s->owners.how == OWNERS_ITER ? "a BPF iterator" : "/proc/PID/fdinfo");
	r->owners = &s->owners;
	r->self = getpid();
	/* The iterator is a program, and it was not somebody else's that nobody saw. */
	runstats__skip_ids(&s->source);
	free(ids);
	return rc;
}

static void close_report(struct stats *s)
{
	owners__close(&s->owners);
	memset(&s->owners, 0, sizeof(s->owners));
	free(s->report.rows);
	s->report.rows = NULL;
	s->report.n_rows = 0;
	stats_window__free(&s->window);
}

static bool is_all(const struct stats *s)
{
	size_t i;

	for (i = 0; i < s->n_filters; i++)
		if (s->filters[i].handle == PROG_ALL)
			return true;
	return !s->n_filters;
}

/* A window from the last two samples, and all that is to be said of it. */
static int make_report(struct stats *s)
{
	const struct floor *f = &s->floor;
	struct stats_report *r = &s->report;
	struct stats_floor floor = {};
	struct timespec now;
	size_t i;
	int rc;

	close_report(s);
	clock_gettime(CLOCK_REALTIME, &now);
	r->time_ns = now.tv_sec * 1000000000ULL + now.tv_nsec;
	r->window = &s->window;
	r->sw = &s->sw;
	r->all = is_all(s) && !s->source.fdinfo;
	r->own = is_all(s) && s->source.fdinfo;
	r->interval = s->interval_ns != 0;
	if (f->n_metrics) {
		r->floor = f;
		floor = (struct stats_floor){true, f->value[0], f->low[0], f->high[0]};
	}
	rc = stats_window__init(&s->window, s->last, s->now, &floor)
		     ?: blind__look(&s->blind, &s->source);
	if (!rc)
		r->rows = calloc(s->window.n ? s->window.n : 1, sizeof(*r->rows));
	if (rc || !r->rows)
		return errmsg__fail(s->ctx->err, -ENOMEM, "out of memory");
	r->blind_refused = s->blind.refused;
	for (i = 0; i < s->window.n; i++) {
		struct stats_view_row *row = &r->rows[r->n_rows];
		const struct runstats_prog *p = runstats__find(&s->source, &s->window.v[i].last);

		if (!p)
			continue;
		row->window = &s->window.v[i];
		row->prog = *p;
		row->blind = blind__of(&s->blind, p->row.id);
		r->n_rows++;
	}
	return s->by_owner ? read_owners(s) : 0;
}

/* Can be done again for the same report, sorted otherwise. */
static int draw(struct stats *s)
{
	char *text = NULL;
	size_t size;
	FILE *f;
	int rc = 0;

	f = open_memstream(&text, &size);
	if (!f)
		return errmsg__fail(s->ctx->err, -ENOMEM, "out of memory");
	s->report.columns = screen__columns(&s->screen);
	stats_view__keys(f, &s->report);
	if (s->report.window && s->refusal.status && !s->window.run_cnt)
		fprintf(f, "nothing was counted so far: the statistics are off, or nothing ran\n");
	else if (s->report.window)
		stats_view__screen(f, &s->report);
	else
		fprintf(f, "the first %.3g s are being measured\n", s->interval_ns / 1e9);
	if (fclose(f))
		rc = errmsg__fail(s->ctx->err, -ENOMEM, "out of memory");
	else
		screen__draw(&s->screen, text);
	free(text);
	return rc;
}

/* Whether the statistics are on is not known, and this window does not say it. It is not shown, as
 * its zeros may be none; the next one may say more. */
static int nothing_counted(struct stats *s, bool last)
{
	if (last)
		return errmsg__fail(s->ctx->err, -EPERM, "%s; nothing was counted",
				    s->refusal.text);
	if (s->watch)
		return draw(s);
	if (!s->waits)
		note(s->ctx, "nothing was counted so far: the statistics are off, or nothing ran");
	s->waits = true;
	return 0;
}

/* The @last window is the one that has to say something. */
static int show(struct stats *s, bool last)
{
	__u64 cpu = cpu_ns();
	int rc;

	rc = make_report(s);
	if (rc)
		return rc;
	if (s->refusal.status && !s->window.run_cnt)
		return nothing_counted(s, last);
	memset(&s->refusal, 0, sizeof(s->refusal));
	stats_report__sort(&s->report);
	if (s->watch) {
		rc = draw(s);
	} else if (s->ctx->json) {
		rc = stats_view__json(s->ctx, &s->report);
		if (rc)
			errmsg__fail(s->ctx->err, rc, "out of memory");
	} else {
		s->report.columns = 0;
		stats_view__plain(s->ctx->out, &s->report);
		fflush(s->ctx->out);
	}
	debug(s->ctx, "showing it: %.3f ms of CPU", (cpu_ns() - cpu) / 1e6);
	return rc;
}

static int drop_privileges(struct stats *s)
{
	cap_value_t keep[5];
	char buf[128];
	size_t n = 0;
	int rc;

	/* Programs, maps and links are opened by id; and a sysctl that was set is set back. */
	keep[n++] = CAP_SYS_ADMIN;
	/* Without that: to see whether the switch is still on, and to read at all before 5.19. */
	if (s->sw.how == STATS_SWITCH_FOREIGN)
		keep[n++] = CAP_BPF;
	/* Other people's /proc/PID/fd is looked into. */
	if (s->by_owner) {
		keep[n++] = CAP_SYS_PTRACE;
		keep[n++] = CAP_DAC_READ_SEARCH;
	}
	/* Signals are handed on to a command, also if it became somebody else. */
	if (s->child.pid)
		keep[n++] = CAP_KILL;
	rc = caps__keep_only(keep, n);
	if (rc)
		return errmsg__fail(s->ctx->err, rc, "cannot drop privileges: %s",
				    errmsg__errno(rc, buf, sizeof(buf)));
	return 0;
}

/* Opens what is read, then switches on, so that programs are slowed down no longer than needed. */
static int start(struct stats *s)
{
	struct errmsg why = {};
	int rc;

	rc = runstats__open(&s->source, s->filters, s->n_filters, s->ctx->err) ?: hold_switch(s);
	if (rc)
		return rc;
	if (s->source.fdinfo)
		note(s->ctx, "only programs that your own processes have open can be read; for the "
			     "others it needs CAP_SYS_ADMIN, for example: sudo");
	if (floor__measure_statistics(&s->floor, &why))
		debug(s->ctx, "no floor: %s", why.text);
	return drop_privileges(s);
}

/* From one interval to the next. */
static int next_interval(struct stats *s)
{
	return take_sample(s, false) ?: show(s, false) ?: runstats__let_go(&s->source, s->ctx->err);
}

static int go_on(struct stats *s)
{
	screen__enter(&s->screen);
	s->wait.key_fd = s->screen.key_fd;
	return draw(s);
}

/* Stops as if the signal had not been waited for, which leaves it to the kernel whether it stops:
 * it does not where nobody could wake us. */
static int stop(struct stats *s)
{
	sigset_t set;

	screen__leave(&s->screen);
	s->wait.key_fd = -1;
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return go_on(s);
}

/* Returns whether it is the end. */
static bool press(struct stats *s)
{
	int key = screen__key(&s->screen);

	if (key < 0 || key == 'q' || key == 'Q')
		return true;
	if (key >= '1' && key < '1' + STATS_SORTS) {
		s->report.sort = key - '1';
		stats_report__sort(&s->report);
	}
	return false;
}

/* What a command writes to the same terminal would not go together with a table that is drawn over
 * and over. */
static bool can_watch(const struct stats *s)
{
	return s->interval_ns && !s->ctx->json && !s->ctx->debug && !s->ctx->command &&
	       screen__can(s->ctx->out);
}

static int watch(struct stats *s)
{
	int rc = wait__watch(&s->wait);

	if (rc)
		return errmsg__fail(s->ctx->err, rc, "cannot wait for signals");
	s->watch = true;
	return go_on(s);
}

static int measure(struct stats *s)
{
	int rc, event = WAIT_TICK;

	rc = take_sample(s, true);
	if (!rc && can_watch(s))
		rc = watch(s);
	if (rc)
		return rc;
	wait__start(&s->wait, s->duration_ns, s->interval_ns, &s->child);
	if (s->child.pid) {
		rc = child__go(&s->child);
		if (rc)
			return errmsg__fail(s->ctx->err, rc, "cannot start the command");
	}
	/* What nobody can read any more is not worth slowing programs down for. */
	while (!rc && event != WAIT_END && !ferror(s->ctx->out)) {
		event = wait__next(&s->wait);
		switch (event) {
		case WAIT_END:
			break;
		case WAIT_INTERVAL:
			rc = next_interval(s);
			break;
		case WAIT_TICK:
			rc = runstats__look(&s->source, s->now, s->ctx->err);
			break;
		case WAIT_KEY:
			if (press(s))
				event = WAIT_END;
			else
				rc = draw(s);
			break;
		case WAIT_STOP:
			rc = stop(s);
			break;
		case WAIT_REDRAW:
			rc = go_on(s);
			break;
		default:
			rc = errmsg__fail(s->ctx->err, event, "cannot wait");
			break;
		}
	}
	screen__leave(&s->screen);
	s->watch = false;
	return rc ?: take_sample(s, true) ?: show(s, true);
}

static void close_stats(struct stats *s)
{
	const char *text = stats_switch__close(&s->sw);

	screen__leave(&s->screen);
	if (text)
		note(s->ctx, "%s", text);
	close_report(s);
	runstats__close(&s->source);
	stats_sample__free(&s->sample[0]);
	stats_sample__free(&s->sample[1]);
	blind__close(&s->blind);
	floor__free(&s->floor);
	free(s->filters);
	wait__close(&s->wait);
}

int cmd_prog_stats(struct ctx *ctx)
{
	struct stats s = {
		.ctx = ctx,
		.wait.signal_fd = -1,
		.screen = {.out = ctx->out, .key_fd = -1},
		.report.colour = !ctx->json && screen__has_colours(ctx->out),
		.source.proc_root = ctx->proc_root,
		.sw.proc_root = ctx->proc_root,
		.source.sysfs_root = ctx->sysfs_root,
	};
	char buf[128];
	int rc;

	s.last = &s.sample[0];
	s.now = &s.sample[1];
	rc = wait__open(&s.wait);
	if (rc) {
		errmsg__fail(ctx->err, rc, "cannot wait for signals: %s",
			     errmsg__errno(rc, buf, sizeof(buf)));
		goto cleanup;
	}
	s.wait.tick_ns = LOOK_NS;
	rc = parse(&s);
	if (rc)
		goto cleanup;

	/* Before limits are raised and privileges dropped: the command gets the caller's. */
	if (ctx->command) {
		rc = child__open(&s.child, ctx->command, ctx->json);
		if (rc) {
			errmsg__fail(ctx->err, rc, "cannot fork: %s",
				     errmsg__errno(rc, buf, sizeof(buf)));
			goto cleanup;
		}
	}
	rc = start(&s) ?: measure(&s);
cleanup:
	close_stats(&s);
	if (s.child.pid) {
		bool started = s.child.go < 0;

		if (started)
			child__wait(&s.child);
		child__close(&s.child);
		if (started && !rc)
			return s.child.status;
	}
	return rc ? (int)ctx->err->status : EXIT_DONE;
}
