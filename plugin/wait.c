// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "wait.h"

#define TICK_NS 250000000ULL

__u64 wait__now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* nohup(1): whoever wants to outlive the terminal shall. */
static bool is_ignored(int signal)
{
	struct sigaction action;

	return !sigaction(signal, NULL, &action) && action.sa_handler == SIG_IGN;
}

int wait__open(struct wait *w)
{
	int rc;

	memset(w, 0, sizeof(*w));
	w->signal_fd = w->key_fd = -1;
	w->tick_ns = TICK_NS;
	sigemptyset(&w->mask);
	sigaddset(&w->mask, SIGINT);
	sigaddset(&w->mask, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&w->mask, SIGHUP);
	sigaddset(&w->mask, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &w->mask, &w->old_mask))
		return -errno;
	w->signal_fd = signalfd(-1, &w->mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->signal_fd < 0) {
		rc = -errno;
		sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
		return rc;
	}
	return 0;
}

/* Waits for all that is in the mask. */
static int update(struct wait *w)
{
	if (sigprocmask(SIG_BLOCK, &w->mask, NULL) || signalfd(w->signal_fd, &w->mask, 0) < 0)
		return -errno;
	return 0;
}

int wait__watch(struct wait *w)
{
	static const int signals[] = {SIGTSTP, SIGCONT, SIGWINCH, SIGQUIT};
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&w->mask, signals[i]);
	return update(w);
}

int wait__also(struct wait *w, const sigset_t *blocked)
{
	int sig;

	for (sig = 1; sig < _NSIG; sig++)
		if (sigismember(blocked, sig) == 1 && sig != SIGPIPE && sig != SIGXFSZ)
			sigaddset(&w->mask, sig);
	return update(w);
}

void wait__start(struct wait *w, __u64 duration_ns, __u64 interval_ns, struct child *child)
{
	__u64 now = wait__now_ns();

	w->end_ns = duration_ns ? now + duration_ns : 0;
	w->interval_ns = interval_ns;
	w->next_ns = now + interval_ns;
	w->child = child && child->pid ? child : NULL;
}

static void read_signals(struct wait *w)
{
	struct signalfd_siginfo info;

	while (read(w->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGCHLD:
			break;
		case SIGTSTP:
			w->stop = true;
			break;
		case SIGCONT:
		case SIGWINCH:
			w->again = true;
			break;
		default:
			w->signal = info.ssi_signo;
			/* By a key, or a hangup: it is for the whole job. */
			w->from_terminal = info.ssi_code == SI_KERNEL;
			break;
		}
	}
}

int wait__interrupted(struct wait *w)
{
	read_signals(w);
	return w->signal;
}

int wait__next(struct wait *w)
{
	struct pollfd p[] = {
		{.fd = w->signal_fd, .events = POLLIN},
		{.fd = w->key_fd, .events = POLLIN},
	};
	__u64 now = wait__now_ns(), until = now + w->tick_ns;
	struct timespec timeout;

	read_signals(w);
	if (w->child && child__poll(w->child))
		return WAIT_END;
	if (w->signal) {
		/* From a terminal the command has got it too, unless it left our job; from
		 * elsewhere it has not. A second one would be another wish. */
		if (w->child && (!w->from_terminal || getpgid(w->child->pid) != getpgrp()))
			kill(w->child->pid, w->signal);
		return WAIT_END;
	}
	if (w->end_ns && now >= w->end_ns)
		return WAIT_END;
	if (w->stop) {
		w->stop = false;
		return WAIT_STOP;
	}
	if (w->again) {
		w->again = false;
		return WAIT_REDRAW;
	}
	if (w->interval_ns && now >= w->next_ns) {
		/* Intervals keep their beat; those that a busy machine missed are left out. */
		w->next_ns += ((now - w->next_ns) / w->interval_ns + 1) * w->interval_ns;
		return WAIT_INTERVAL;
	}
	if (w->end_ns && w->end_ns < until)
		until = w->end_ns;
	if (w->interval_ns && w->next_ns < until)
		until = w->next_ns;
	timeout.tv_sec = (until - now) / 1000000000ULL;
	timeout.tv_nsec = (until - now) % 1000000000ULL;
	if (ppoll(p, 2, &timeout, NULL) < 0)
		return errno == EINTR ? WAIT_TICK : -errno;
	return p[1].revents ? WAIT_KEY : WAIT_TICK;
}

void wait__close(struct wait *w)
{
	if (!w || w->signal_fd < 0)
		return;
	close(w->signal_fd);
	w->signal_fd = -1;
	sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
}
