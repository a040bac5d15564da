// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stats enable [duration SECONDS] [inherit] [-- COMMAND...]: holds the switch for those who cannot
 * do it themselves, and leaves nothing switched on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "caps.h"
#include "child.h"
#include "ctx.h"
#include "json.h"
#include "parse.h"
#include "stats_switch.h"
#include "text.h"
#include "wait.h"

struct enable {
	struct ctx *ctx;
	__u64 duration_ns; /* 0: none */
	bool inherit;
	struct stats_switch sw;
	struct wait wait;
	struct child child;
	__u64 held_ns;
	const char *ended; /* by what */
};

static int parse(struct enable *e)
{
	struct ctx *ctx = e->ctx;
	int argc = ctx->argc;
	char **argv = ctx->argv;

	while (argc) {
		if (parse__is_prefix(argv[0], "inherit")) {
			e->inherit = true;
			argc--, argv++;
			continue;
		}
		if (!parse__is_prefix(argv[0], "duration"))
			return errmsg__usage(ctx->err,
					     "expected 'duration', 'inherit' or '--', got: '%s'",
					     argv[0]);
		if (argc < 2)
			return errmsg__usage(ctx->err, "'%s' needs a value", argv[0]);
		if (e->duration_ns)
			return errmsg__usage(ctx->err, "'duration' is there twice");
		if (parse__seconds(argv[1], &e->duration_ns))
			return errmsg__usage(ctx->err,
					     "duration: '%s' is not a number of seconds above 0 "
					     "(1, or 0.25)",
					     argv[1]);
		argc -= 2;
		argv += 2;
	}
	if (ctx->command && !ctx->command[0])
		return errmsg__usage(ctx->err, "'--' needs a command behind it");
	if (e->inherit && !ctx->command)
		return errmsg__usage(ctx->err,
				     "'inherit' needs a command that inherits: -- COMMAND...");
	if (e->inherit && e->duration_ns)
		return errmsg__usage(ctx->err,
				     "'inherit' does not go with 'duration': a command that has "
				     "the fd holds the switch for as long as it likes");
	return 0;
}

static int hold(struct enable *e)
{
	struct ctx *ctx = e->ctx;
	int rc;

	e->sw.proc_root = ctx->proc_root;
	rc = stats_switch__open(&e->sw, ctx->err);
	if (rc)
		return rc;
	rc = e->sw.set ? wait__also(&e->wait, &e->sw.blocked) : 0;
	if (rc)
		return errmsg__fail(ctx->err, rc, "cannot wait for signals");
	/* What we do not hold can end before the time does. */
	if (e->sw.how == STATS_SWITCH_FOREIGN)
		return errmsg__fail(ctx->err, -EPERM,
				    "cannot hold the kernel's statistics on: it needs "
				    "CAP_SYS_ADMIN, for example: sudo; at this moment they are on, "
				    "held by somebody else");
	if (e->inherit && e->sw.how != STATS_SWITCH_FD)
		return errmsg__fail(ctx->err, -EOPNOTSUPP,
				    "there is no stats fd to inherit: kernels have them since 5.8");
	return 0;
}

static void say_what(const struct enable *e)
{
	char until[300] = "until interrupted", fd[64] = "", name[200];
	bool fd_held = e->sw.how == STATS_SWITCH_FD;

	if (e->ctx->command)
		snprintf(until, sizeof(until), "while '%s' runs",
			 text__printable(e->ctx->command[0], name, sizeof(name)));
	if (e->duration_ns)
		snprintf(until + (e->ctx->command ? strlen(until) : 0),
			 sizeof(until) - (e->ctx->command ? strlen(until) : 0), "%sfor %.9g s",
			 e->ctx->command ? ", at most " : "", e->duration_ns / 1e9);
	if (e->inherit)
		snprintf(fd, sizeof(fd), "; it inherits fd %d", e->sw.fd);
	note(e->ctx, "the kernel's statistics are on %s%s%s%s", until, fd, fd_held ? "" : ": ",
	     fd_held ? "" : stats_switch__how(&e->sw));
}

static int start_command(struct enable *e)
{
	struct ctx *ctx = e->ctx;
	char buf[128];
	int rc;

	if (!ctx->command)
		return 0;
	/* What the child has when it is forked it has when it runs, unless it is close-on-exec. */
	if (e->inherit && fcntl(e->sw.fd, F_SETFD, 0))
		return errmsg__fail(ctx->err, -errno, "cannot let the command inherit the fd: %s",
				    errmsg__errno(errno, buf, sizeof(buf)));
	rc = child__open(&e->child, ctx->command, ctx->json);
	if (e->inherit)
		fcntl(e->sw.fd, F_SETFD, FD_CLOEXEC);
	return rc ? errmsg__fail(ctx->err, rc, "cannot fork: %s",
				 errmsg__errno(rc, buf, sizeof(buf)))
		  : 0;
}

/* To let go of an fd takes nothing, of the sysctl what setting it took; to hand signals on to a
 * command that became somebody else takes CAP_KILL. */
static int drop_privileges(struct enable *e)
{
	cap_value_t keep[2];
	char buf[128];
	size_t n = 0;
	int rc;

	if (e->sw.set)
		keep[n++] = CAP_SYS_ADMIN;
	if (e->child.pid)
		keep[n++] = CAP_KILL;
	rc = caps__keep_only(keep, n);
	return rc ? errmsg__fail(e->ctx->err, rc, "cannot drop privileges: %s",
				 errmsg__errno(rc, buf, sizeof(buf)))
		  : 0;
}

static int wait_for_end(struct enable *e)
{
	char buf[128];
	int event;

	for (;;) {
		event = wait__next(&e->wait);
		if (event < 0)
			return errmsg__fail(e->ctx->err, event, "cannot wait: %s",
					    errmsg__errno(event, buf, sizeof(buf)));
		if (event != WAIT_END)
			continue;
		if (e->child.ended) {
			e->ended = "command";
			return 0;
		}
		if (!e->wait.signal) {
			e->ended = "duration";
			return 0;
		}
		e->ended = "signal";
		if (!e->child.pid)
			return 0;
		/* The command has got it, and may go on: until it ends, it has what it asked for.
		 * Another signal is handed on as well. */
		e->wait.signal = 0;
	}
}

/* The command goes on after the duration: it still gets the signals that we get. */
static void wait_for_command(struct enable *e)
{
	if (!e->child.pid || e->child.go >= 0)
		return;
	e->wait.end_ns = 0;
	while (!e->child.ended && wait__next(&e->wait) >= 0)
		e->wait.signal = 0;
	child__wait(&e->child);
}

static int show_json(const struct enable *e)
{
	struct json_object *obj = json_object_new_object();
	int rc = obj ? 0 : -ENOMEM;

	rc = rc ?:
	     json__put(obj, "held",
		       json_object_new_string(e->sw.how == STATS_SWITCH_FD ? "fd" : "sysctl")) ?:
	     json__put(obj, "seconds", json__number(e->held_ns / 1e9)) ?:
	     json__put(obj, "ended", json_object_new_string(e->ended));
	if (!rc && e->child.pid)
		rc = json__put(obj, "status", json_object_new_int(e->child.status));
	rc = rc ?: json__print(e->ctx, obj, false);
	json_object_put(obj);
	return rc ? errmsg__fail(e->ctx->err, rc, "out of memory") : 0;
}

int cmd_stats_enable(struct ctx *ctx)
{
	struct enable e = {.ctx = ctx, .wait.signal_fd = -1};
	const char *end;
	sigset_t mask;
	char buf[128];
	__u64 began;
	int rc;

	/* Whoever reads what we say may go away: that ends neither the command nor what it asked
	 * for. */
	sigemptyset(&mask);
	sigaddset(&mask, SIGPIPE);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	rc = wait__open(&e.wait);
	if (rc) {
		errmsg__fail(ctx->err, rc, "cannot wait for signals: %s",
			     errmsg__errno(rc, buf, sizeof(buf)));
		goto cleanup;
	}
	rc = parse(&e) ?: hold(&e) ?: start_command(&e) ?: drop_privileges(&e);
	if (rc)
		goto cleanup;
	say_what(&e);
	began = wait__now_ns();
	wait__start(&e.wait, e.duration_ns, 0, &e.child);
	if (e.child.pid) {
		rc = child__go(&e.child);
		if (rc) {
			errmsg__fail(ctx->err, rc, "cannot start the command");
			goto cleanup;
		}
	}
	rc = wait_for_end(&e);
	e.held_ns = wait__now_ns() - began;
cleanup:
	end = stats_switch__close(&e.sw);
	if (end)
		note(ctx, "%s", end);
	wait_for_command(&e);
	if (!rc && ctx->json)
		rc = show_json(&e);
	wait__close(&e.wait);
	if (rc) {
		child__close(&e.child);
		return ctx->err->status;
	}
	return e.child.pid ? e.child.status : EXIT_DONE;
}
