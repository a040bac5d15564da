/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_TARGETS_H
#define BPFCOST_TARGETS_H

#include "session.h"
#include "window.h"

/* One function of one program, with the profiler's programs around it. */
struct target {
	struct prog prog;
	size_t func;
	struct profiler *profiler; /* NULL: it cannot be profiled */
	const struct floor *floor;
	struct sample last, now;
	struct window window;
	struct errmsg why;
	bool idle; /* did not run in the last window */
	bool seen; /* was there when programs were last looked for */
};

/* What is measured: functions of programs that can come and go. */
struct targets {
	struct session *session;
	const char *func; /* NULL: main functions; "all": every function */
	bool many;	  /* one that cannot be profiled is a row, not an error */
	struct target **v;
	size_t n;
};

/* Adds the asked for functions of @prog, which is taken over, also when that fails: with the
 * profiler's programs loaded, and attached. */
int targets__add(struct targets *t, struct prog *prog, struct errmsg *err);

/* How many can be profiled. */
size_t targets__count(const struct targets *t);

/* Whether a function of this program (same id, loaded at the same time) is among them; marks it as
 * seen. */
bool targets__find(struct targets *t, __u32 id, __u64 load_time);

/*
 * Looks which programs are gone. Being measured holds a program, so a few of the idle ones are let
 * go, and taken again if they are still there; what they run in that moment is not seen.
 */
int targets__drop_gone(struct targets *t, struct errmsg *err);

/* Takes samples: what was `now` is `last`. */
int targets__read(struct targets *t, struct errmsg *err);

/* Ends the measurement: no new runs, and those under way have ended (sleeping ones aside). */
void targets__stop(struct targets *t);

void targets__close(struct targets *t);

#endif
