/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_WAIT_H
#define BPFCOST_WAIT_H

#include <linux/types.h>
#include <signal.h>
#include <stdbool.h>

#include "child.h"

/*
 * Waits for what ends or divides a measurement. Signals arrive by an fd (signalfd), so that none is
 * handled in a handler and none is missed between two looks.
 */
struct wait {
	int signal_fd;
	sigset_t old_mask, mask; /* of the process before; what is waited for */
	__u64 end_ns;		 /* CLOCK_MONOTONIC; 0: no duration */
	__u64 interval_ns;	 /* 0: none */
	__u64 next_ns;		 /* end of the current interval */
	__u64 tick_ns;		 /* a quarter of a second, if nobody sets it */
	struct child *child;	 /* or NULL */
	int signal;		 /* SIGINT or another one that ends it, once it came */
	bool from_terminal;	 /* which sent it to the whole job */
	/* With wait__watch() only: */
	int key_fd; /* keys come from it, or -1 */
	bool stop;  /* SIGTSTP came */
	bool again; /* SIGCONT or SIGWINCH came */
};

enum wait_event {
	WAIT_TICK,     /* time to look after things (CPUs that come and go) */
	WAIT_INTERVAL, /* an interval is over */
	WAIT_KEY,      /* key_fd can be read */
	WAIT_STOP,     /* the process is asked to stop (SIGTSTP); it is up to the caller to do so */
	WAIT_REDRAW,   /* it goes on, or the terminal has another size */
	WAIT_END,      /* the duration is over, the command has ended, or a signal came */
};

/* Blocks SIGINT, SIGTERM, SIGHUP (unless it is ignored) and SIGCHLD for the process. Negative
 * errno. */
int wait__open(struct wait *w);
/* Blocks SIGTSTP, SIGCONT, SIGWINCH and SIGQUIT as well, as somebody watches. Negative errno. */
int wait__watch(struct wait *w);
/* Waits for signals that somebody else has blocked as well: each of them ends the measurement, but
 * for those that say how writing a result ended. Negative errno. */
int wait__also(struct wait *w, const sigset_t *blocked);
/* The measurement begins now. @duration_ns, @interval_ns: 0 for none. */
void wait__start(struct wait *w, __u64 duration_ns, __u64 interval_ns, struct child *child);
/* Waits for the next event; at most tick_ns for WAIT_TICK. Negative errno. */
int wait__next(struct wait *w);
/* True if a signal is pending that ends the measurement: for the time before wait__start(). */
int wait__interrupted(struct wait *w);
void wait__close(struct wait *w);

__u64 wait__now_ns(void);

#endif
