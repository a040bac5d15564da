// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stats show: is the switch on right now, and who holds it? It holds nothing itself: whether the
 * switch is on is seen by a run of a program, which counts or does not.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "ctx.h"
#include "holders.h"
#include "json.h"
#include "stats_switch.h"
#include "text.h"
#include "wait.h"

/* What is looked at one after the other can change in between; then it is looked at again. */
#define TRIES	 4
#define PAUSE_NS 20000000

#define SHORT_ID 12 /* of a container's id, as their tools show it */

enum state {
	STATE_OFF,
	STATE_HELD,	   /* by processes, and by the sysctl maybe */
	STATE_SYSCTL_ONLY, /* which is a leak, if nobody wants it so */
	STATE_NOT_VISIBLE,
	STATE_NOT_KNOWN,
};

static const char *const state_names[] = {
	[STATE_OFF] = "off",
	[STATE_HELD] = "held",
	[STATE_SYSCTL_ONLY] = "sysctl only",
	[STATE_NOT_VISIBLE] = "no holder visible",
	[STATE_NOT_KNOWN] = "not known",
};

struct show {
	bool observed, on;    /* on: if it was observed, or if there is a holder */
	struct errmsg why;    /* it could not be observed */
	int sysctl;	      /* 0, 1, or a negative errno */
	bool sysctl_borrowed; /* set for a bpfcost that is running */
	struct holders holders;
	enum state state;
	char verdict[512];
};

static bool is_consistent(const struct show *s)
{
	bool held = s->sysctl == 1 || s->holders.n;

	return !s->observed || s->on == held;
}

static int look(struct show *s, struct ctx *ctx)
{
	int value = 0, rc;

	holders__close(&s->holders);
	rc = holders__read(&s->holders, ctx->proc_root, ctx->err);
	if (rc)
		return rc;
	memset(&s->why, 0, sizeof(s->why));
	s->observed = !stats_switch__observe(&s->on, &s->why);
	rc = stats_switch__sysctl(ctx->proc_root, &value);
	s->sysctl = rc ? rc : value;
	s->sysctl_borrowed = stats_switch__sysctl_is_ours(ctx->proc_root);
	if (!s->observed)
		s->on = value || s->holders.n;
	return 0;
}

static void judge(struct show *s)
{
	char by[64] = "", *text = s->verdict;
	size_t size = sizeof(s->verdict), n = s->holders.n;

	snprintf(by, sizeof(by), "%zu process%s", n, n == 1 ? "" : "es");
	if (!s->on && s->observed) {
		s->state = STATE_OFF;
		if (is_consistent(s))
			snprintf(text, size, "off");
		else
			snprintf(text, size,
				 "off, though it is held by %s%s%s: it is being switched at this "
				 "moment",
				 n ? by : "", n && s->sysctl == 1 ? " and " : "",
				 s->sysctl == 1 ? "the sysctl" : "");
	} else if (!s->on) {
		s->state = STATE_NOT_KNOWN;
		snprintf(text, size,
			 "not known: no holder is visible, and it cannot be observed from here");
	} else if (n) {
		s->state = STATE_HELD;
		snprintf(text, size, "on, held by %s%s", by,
			 s->sysctl == 1 ? " and by the sysctl" : "");
	} else if (s->sysctl == 1) {
		s->state = STATE_SYSCTL_ONLY;
		if (s->sysctl_borrowed)
			snprintf(text, size,
				 "on, held by the sysctl only, for a bpfcost that is running");
		else
			snprintf(
				text, size,
				"on, held by the sysctl only; nobody known is measuring; switch it "
				"off with: " STATS_SWITCH_OFF);
	} else {
		s->state = STATE_NOT_VISIBLE;
		snprintf(text, size,
			 "on, but no holder visible: a stats fd is in flight, or in a process that "
			 "cannot be seen from here");
	}
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_time(FILE *out, __u64 ns)
{
	time_t seconds = ns / 1000000000ULL;
	char buf[32] = "-";
	struct tm tm;

	if (ns && localtime_r(&seconds, &tm))
		strftime(buf, sizeof(buf), "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(out, " %-19s", buf);
}

static void print_holder(FILE *out, const struct holder *h)
{
	const struct process *p = &h->process;
	char name[256], container[300] = "-";

	text__printable(p->comm, name, sizeof(name));
	fprintf(out, "%8d %-16s %4u", p->pid, name, h->fds);
	print_time(out, p->started_ns);
	if (p->container) {
		text__printable(p->container, name, sizeof(name));
		if (strspn(name, "0123456789abcdef") == 64)
			name[SHORT_ID] = '\0';
		snprintf(container, sizeof(container), "%s%s%s", p->runtime ? p->runtime : "",
			 p->runtime ? " " : "", name);
	}
	fprintf(out, " %-26s", container);
	if (p->cgroup) {
		char path[4 * PATH_MAX];

		fprintf(out, " %s", text__printable(p->cgroup, path, sizeof(path)));
	} else {
		fprintf(out, " -");
	}
	fputc('\n', out);
}

static void print_unseen(FILE *out, const struct process_walk *w)
{
	if (w->unseen)
		fprintf(out,
			"not complete: the fds of %u process%s may not be looked at; it needs "
			"CAP_SYS_PTRACE, for example: sudo\n",
			w->unseen, w->unseen == 1 ? "" : "es");
	if (w->hidden)
		fprintf(out, "not complete: /proc hides processes (hidepid)\n");
	if (w->nested)
		fprintf(out,
			"not complete: processes outside of this pid namespace are not visible\n");
	if ((w->hidden || w->nested) && w->all_threads)
		fprintf(out, "visible are %u of about %u threads on this machine\n", w->threads,
			w->all_threads);
}

static void show_plain(const struct ctx *ctx, const struct show *s)
{
	FILE *out = ctx->out;
	char buf[128];
	size_t i;

	fprintf(out, "%s\n", s->verdict);
	if (s->sysctl >= 0)
		fprintf(out, "sysctl: " STATS_SWITCH_SYSCTL_NAME " = %d\n", s->sysctl);
	else
		fprintf(out, "sysctl: " STATS_SWITCH_SYSCTL_NAME " cannot be read: %s\n",
			errmsg__errno(s->sysctl, buf, sizeof(buf)));
	/* Nobody is looked for who would hold what is off. */
	if (s->state == STATE_OFF && !s->holders.n)
		return;
	if (s->holders.n) {
		fprintf(out, "stats fds: %u", s->holders.fds);
		if (s->holders.files >= 0)
			fprintf(out, ", of %d open file%s", s->holders.files,
				s->holders.files == 1 ? "" : "s");
		fprintf(out, "\n\n%8s %-16s %4s %-19s %-26s %s\n", "PID", "COMM", "FDS", "STARTED",
			"CONTAINER", "CGROUP");
		for (i = 0; i < s->holders.n; i++)
			print_holder(out, &s->holders.v[i]);
	}
	if (process__walk_incomplete(&s->holders.seen))
		print_unseen(out, &s->holders.seen);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static int put_text(struct json_object *obj, const char *key, const char *text)
{
	/* A null is a value here, not the lack of memory. */
	if (!text)
		return json_object_object_add(obj, key, NULL) ? -ENOMEM : 0;
	return json__put(obj, key, json__text(text));
}

static int put_known(struct json_object *obj, const char *key, bool known, double value)
{
	if (!known)
		return json_object_object_add(obj, key, NULL) ? -ENOMEM : 0;
	return json__put(obj, key, json__number(value));
}

static int put_holder(struct json_object *array, const struct holder *h)
{
	struct json_object *obj = json_object_new_object();
	const struct process *p = &h->process;

	return json__append(array, obj)				  ?:
	       json__put(obj, "pid", json_object_new_int(p->pid)) ?:
	       put_text(obj, "comm", p->comm)			  ?:
	       json__put(obj, "fds", json_object_new_int(h->fds)) ?:
	       put_known(obj, "started", p->started_ns, p->started_ns / 1e9) ?:
	       put_text(obj, "runtime", p->runtime)		  ?:
	       put_text(obj, "container", p->container)		  ?:
	       put_text(obj, "cgroup", p->cgroup);
}

static int put_show(struct json_object *obj, const struct show *s)
{
	struct json_object *array = json_object_new_array();
	const struct process_walk *w = &s->holders.seen;
	size_t i;
	int rc;

	rc = put_text(obj, "state", state_names[s->state]);
	if (s->state == STATE_NOT_KNOWN)
		rc = rc ?: put_text(obj, "on", NULL);
	else
		rc = rc ?: json__put(obj, "on", json_object_new_boolean(s->on));
	rc = rc ?: json__put(obj, "observed", json_object_new_boolean(s->observed)) ?:
	     put_text(obj, "verdict", s->verdict) ?:
	     put_known(obj, "sysctl", s->sysctl >= 0, s->sysctl);
	if (rc) {
		json_object_put(array);
		return rc;
	}
	rc = json__put(obj, "holders", array);
	for (i = 0; !rc && i < s->holders.n; i++)
		rc = put_holder(array, &s->holders.v[i]);
	rc = rc ?: put_known(obj, "fds", true, s->holders.fds) ?:
	     put_known(obj, "files", s->holders.files >= 0, s->holders.files) ?:
	     json__put(obj, "complete", json_object_new_boolean(!process__walk_incomplete(w))) ?:
	     put_known(obj, "unseen", true, w->unseen) ?:
	     json__put(obj, "hidden", json_object_new_boolean(w->hidden)) ?:
	     json__put(obj, "nested", json_object_new_boolean(w->nested)) ?:
	     put_known(obj, "threads", true, w->threads) ?:
	     put_known(obj, "all_threads", w->all_threads, w->all_threads);
	if (!rc && s->state == STATE_NOT_KNOWN)
		rc = put_text(obj, "error", s->why.text);
	return rc;
}

static int show_json(const struct ctx *ctx, const struct show *s)
{
	struct json_object *obj = json_object_new_object();
	int rc;

	rc = obj ? put_show(obj, s) ?: json__print(ctx, obj, false) : -ENOMEM;
	json_object_put(obj);
	return rc ? errmsg__fail(ctx->err, rc, "out of memory") : 0;
}

int cmd_stats_show(struct ctx *ctx)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct wait wait = {.signal_fd = -1};
	struct show s = {};
	char buf[128];
	int rc, i;

	/* It does not last: an interrupt comes too late rather than in the middle of a document. */
	rc = wait__open(&wait);
	if (rc) {
		errmsg__fail(ctx->err, rc, "cannot wait for signals: %s",
			     errmsg__errno(rc, buf, sizeof(buf)));
		return ctx->err->status;
	}
	if (ctx->argc || ctx->command) {
		rc = errmsg__usage(ctx->err, "stats show takes no arguments, got: '%s'",
				   ctx->argc ? ctx->argv[0] : "--");
		goto cleanup;
	}
	for (i = 0; i < TRIES; i++) {
		if (i)
			nanosleep(&pause, NULL);
		rc = look(&s, ctx);
		if (rc)
			goto cleanup;
		if (is_consistent(&s))
			break;
	}
	judge(&s);
	if (ctx->json)
		rc = show_json(ctx, &s);
	else
		show_plain(ctx, &s);
	/* In JSON it is a part of the one document. */
	if (!rc && s.state == STATE_NOT_KNOWN && !ctx->json)
		errmsg__fail(ctx->err, -EPERM, "%s", s.why.text);
cleanup:
	wait__close(&wait);
	holders__close(&s.holders);
	if (rc)
		return ctx->err->status;
	return s.state == STATE_NOT_KNOWN ? EXIT_NOT_MEASURED : EXIT_DONE;
}
