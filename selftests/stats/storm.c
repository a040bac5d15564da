// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A storm on the switch: processes that play tools open, dup, pass, close, write the sysctl, fork,
 * exec and are killed, all at once. While one holds, each of its runs is counted; whenever all
 * pause, the switch is what the model says. A failure is shrunk to a short sequence that still
 * fails.
 *
 * What happens is a list of steps, made from a seed in small portions (epochs) that begin and end
 * with nothing on. Environment: STORM_SEED, STORM_SECONDS (20; 1 where time is exact), STORM_OPS
 * (stop after so many), STORM_TOOLS (8), LOOP=1 (for ever), STORM_REPLAY (a sequence as a failure
 * prints it).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "btest.h"

#define MAX_TOOLS     16
#define MAX_HELD      12 /* fds that one tool holds */
#define MAX_STEPS     1024
#define STEP_TEXT     18 /* what a step takes at most when it is printed: "15:killchild.255 " */
#define NOTE_STEPS    64 /* in a line */
#define SHRINK_NS     10000000000LL
#define SHRINK_TRIES  3 /* of a sequence, before it counts as one that does not fail */
#define DEFAULT_TOOLS 8
#define DEFAULT_S     20
#define EXACT_S	      1 /* where time is counted in instructions, one takes ten to emulate */

enum op {
	OP_OPEN,
	OP_CLOSE,
	OP_DUP,
	OP_DUP2, /* one held fd over another */
	OP_SEND, /* to the tool in arg; the sender closes its own */
	OP_RECV,
	OP_SYSCTL_0,
	OP_SYSCTL_1,
	OP_RUN,	       /* and look whether it was counted, if holding */
	OP_FORK,       /* a child that has copies of all, and stays */
	OP_FORK_EXEC,  /* a child that has what exec keeps, and stays */
	OP_CHILD_KILL, /* the child is killed */
	OP_FORK_EXIT,  /* a child that opens one itself, and exits */
	OP_DIE,	       /* by SIGKILL, holding whatever it holds */
	OP_PAUSE,      /* all of them, and look at the switch */
	OPS,
};

/* How often, out of the sum of all. */
static const struct {
	const char *name;
	unsigned int weight;
} ops[OPS] = {
	[OP_OPEN] = {"open", 20},	    [OP_CLOSE] = {"close", 22},
	[OP_DUP] = {"dup", 6},		    [OP_DUP2] = {"dup2", 3},
	[OP_SEND] = {"send", 8},	    [OP_RECV] = {"recv", 9},
	[OP_SYSCTL_0] = {"sysctl0", 7},	    [OP_SYSCTL_1] = {"sysctl1", 5},
	[OP_RUN] = {"run", 20},		    [OP_FORK] = {"fork", 2},
	[OP_FORK_EXEC] = {"exec", 1},	    [OP_CHILD_KILL] = {"killchild", 3},
	[OP_FORK_EXIT] = {"forkexit", 2},   [OP_DIE] = {"die", 1},
	[OP_PAUSE] = {"pause", 0},
};

struct step {
	unsigned char tool, op, arg;
};

/* What one tool says of itself; it is the only one that writes here, and survives its death. */
struct account {
	unsigned int held;
	unsigned int child_held; /* copies that its child has */
	pid_t child;
	unsigned long long sent, received;
	int wrote; /* the last value written to the sysctl since the last pause; -1: none */
	unsigned long long ops;
};

struct shared {
	struct account tools[MAX_TOOLS];
	int failed;
	char text[1000];
};

struct storm {
	struct btest *t;
	struct shared *sh;
	unsigned int tools;
	int programs[MAX_TOOLS]; /* each is run by one tool only */
	int mail[MAX_TOOLS][2];	 /* fds on their way to a tool */
	int control[MAX_TOOLS];
	pid_t pids[MAX_TOOLS];
	const struct step *steps;
	unsigned int count;
};

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL >> 32;
}

/* ---- a tool ---- */

struct tool {
	struct storm *s;
	struct account *a;
	unsigned int index;
	int control;
	int fds[MAX_HELD];
	int child_sock;
};

__attribute__((format(printf, 2, 3))) static void fail(struct storm *s, const char *fmt, ...)
{
	va_list ap;

	if (__atomic_exchange_n(&s->sh->failed, 1, __ATOMIC_SEQ_CST))
		return;
	va_start(ap, fmt);
	vsnprintf(s->sh->text, sizeof(s->sh->text), fmt, ap);
	va_end(ap);
}

static void keep(struct tool *w, int fd)
{
	w->fds[w->a->held++] = fd;
}

static int drop(struct tool *w, unsigned int which)
{
	int fd = w->fds[which];

	w->fds[which] = w->fds[--w->a->held];
	return fd;
}

static void do_run(struct tool *w)
{
	int program = w->s->programs[w->index];
	struct bstats before, after;

	if (bstats_info(program, &before) || bstats_run(program, 2) ||
	    bstats_info(program, &after)) {
		fail(w->s, "tool %u cannot run its program", w->index);
		return;
	}
	if (w->a->held && after.run_cnt - before.run_cnt != 2)
		fail(w->s, "tool %u holds %u fds, and of 2 runs %lld were counted", w->index,
		     w->a->held, (long long)(after.run_cnt - before.run_cnt));
	else if (after.run_cnt - before.run_cnt > 2)
		fail(w->s, "of 2 runs %lld were counted",
		     (long long)(after.run_cnt - before.run_cnt));
}

static void do_sysctl(struct tool *w, int value)
{
	int rc = bstats_sysctl_set(value);

	if (rc)
		fail(w->s, "tool %u: writing %d to the sysctl: %s", w->index, value, strerror(-rc));
	w->a->wrote = value;
}

static void do_send(struct tool *w, unsigned int to)
{
	int fd = w->fds[0], rc = send_fd(w->s->mail[to][0], fd);

	/* A full queue is none of our business. */
	if (rc == -EAGAIN || rc == -ETOOMANYREFS)
		return;
	if (rc) {
		fail(w->s, "tool %u: sending an fd: %s", w->index, strerror(-rc));
		return;
	}
	w->a->sent++;
	close(drop(w, 0));
}

static void do_receive(struct tool *w)
{
	int fd = recv_fd(w->s->mail[w->index][1], MSG_DONTWAIT);

	if (fd == -EAGAIN)
		return;
	if (fd < 0) {
		fail(w->s, "tool %u: receiving an fd: %s", w->index, strerror(-fd));
		return;
	}
	w->a->received++;
	keep(w, fd);
}

static void kill_child(struct tool *w)
{
	kill(w->a->child, SIGKILL);
	while (waitpid(w->a->child, NULL, 0) < 0 && errno == EINTR)
		;
	close(w->child_sock);
	w->a->child_held = 0;
	w->a->child = 0;
}

/* The child is heard before this returns, so that what it has is what the account says. */
static void do_fork(struct tool *w, bool exec)
{
	pid_t me = getpid(), pid;
	int socks[2], value;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks)) {
		fail(w->s, "socketpair: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (pid < 0) {
		fail(w->s, "fork: %s", strerror(errno));
		close(socks[0]);
		close(socks[1]);
		return;
	}
	if (!pid) {
		close(w->control);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != me)
			_exit(0);
		close(socks[0]);
		if (exec)
			exec_pause(w->s->t, socks[1]);
		value = 1;
		if (send(socks[1], &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value))
			pause();
		_exit(0);
	}
	close(socks[1]);
	w->child_sock = socks[0];
	if (recv(socks[0], &value, sizeof(value), MSG_WAITALL) != sizeof(value))
		fail(w->s, "tool %u: no word from its child", w->index);
	w->a->child_held = exec ? 0 : w->a->held;
	w->a->child = pid;
}

static void do_fork_exit(struct tool *w)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		close(w->control);
		_exit(bstats_open() < 0);
	}
	if (pid < 0) {
		fail(w->s, "fork: %s", strerror(errno));
		return;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		fail(w->s, "tool %u: its child cannot open a stats fd", w->index);
}

static void do_step(struct tool *w, const struct step *st)
{
	unsigned int held = w->a->held;
	int fd = -1;

	w->a->ops++;
	switch ((enum op)st->op) {
	case OP_OPEN:
		if (held == MAX_HELD)
			return;
		fd = bstats_open();
		if (fd < 0)
			fail(w->s, "tool %u: BPF_ENABLE_STATS: %s", w->index, strerror(-fd));
		else
			keep(w, fd);
		break;
	case OP_CLOSE:
		if (held)
			close(drop(w, st->arg % held));
		break;
	case OP_DUP:
		if (!held || held == MAX_HELD)
			return;
		fd = fcntl(w->fds[st->arg % held], F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			fail(w->s, "tool %u: F_DUPFD: %s", w->index, strerror(errno));
		else
			keep(w, fd);
		break;
	case OP_DUP2:
		if (held > 1 && dup3(w->fds[st->arg % held], w->fds[(st->arg + 1U) % held],
				     O_CLOEXEC) < 0)
			fail(w->s, "tool %u: dup3: %s", w->index, strerror(errno));
		break;
	case OP_SEND:
		if (held)
			do_send(w, st->arg % w->s->tools);
		break;
	case OP_RECV:
		if (held < MAX_HELD)
			do_receive(w);
		break;
	case OP_SYSCTL_0:
	case OP_SYSCTL_1:
		do_sysctl(w, st->op == OP_SYSCTL_1);
		break;
	case OP_RUN:
		do_run(w);
		break;
	case OP_FORK:
	case OP_FORK_EXEC:
		if (!w->a->child)
			do_fork(w, st->op == OP_FORK_EXEC);
		break;
	case OP_CHILD_KILL:
		if (w->a->child)
			kill_child(w);
		break;
	case OP_FORK_EXIT:
		do_fork_exit(w);
		break;
	case OP_DIE:
		kill(getpid(), SIGKILL);
		break;
	default:
		break;
	}
}

/* Plays its part of the steps from @from on; at each pause, says so and waits. */
static _Noreturn void play(struct storm *s, unsigned int index, int control, unsigned int from)
{
	struct tool w = {.s = s, .a = &s->sh->tools[index], .index = index, .control = control};
	char byte = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Where that is forbidden, anywhere will do. */
	(void)stay_on_cpu(index);
	for (unsigned int i = from; i < s->count; i++) {
		const struct step *st = &s->steps[i];

		if (st->op == OP_PAUSE) {
			if (write(control, &byte, 1) != 1 || read(control, &byte, 1) != 1)
				_exit(0);
		} else if (st->tool == index && !s->sh->failed) {
			do_step(&w, st);
		}
	}
	_exit(0);
}

/* ---- the director ---- */

static void start_tool(struct storm *s, unsigned int index, unsigned int from)
{
	struct account *a = &s->sh->tools[index];
	int socks[2];

	a->held = a->child_held = 0;
	a->child = 0;
	need(s->t, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), "socketpair");
	s->pids[index] = (pid_t)need(s->t, fork(), "fork");
	if (!s->pids[index]) {
		for (unsigned int i = 0; i < s->tools; i++)
			if (s->control[i] >= 0)
				close(s->control[i]);
		close(socks[0]);
		play(s, index, socks[1], from);
	}
	close(socks[1]);
	s->control[index] = socks[0];
}

/* Its child has lost its parent, and comes to us. */
static void bury(struct storm *s, unsigned int index)
{
	struct account *a = &s->sh->tools[index];

	while (waitpid(s->pids[index], NULL, 0) < 0 && errno == EINTR)
		;
	if (a->child) {
		kill(a->child, SIGKILL);
		while (waitpid(a->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(s->control[index]);
	s->control[index] = -1;
	a->held = a->child_held = 0;
	a->child = 0;
}

static void drain(struct storm *s)
{
	for (unsigned int i = 0; i < s->tools; i++) {
		int fd;

		while ((fd = recv_fd(s->mail[i][1], MSG_DONTWAIT)) >= 0)
			close(fd);
	}
}

static const char *on_off(int on)
{
	return on ? "on" : "off";
}

/* All tools pause: what must the switch be, and what is it? @value is what the sysctl was. */
static void check_pause(struct storm *s, int *value)
{
	unsigned int held = 0, children = 0;
	unsigned long long flight = 0;
	bool wrote = false, possible = false;
	int seen = bstats_sysctl_read(), on, want;

	for (unsigned int i = 0; i < s->tools; i++) {
		struct account *a = &s->sh->tools[i];

		held += a->held;
		children += a->child_held;
		flight += a->sent - a->received;
		if (a->wrote >= 0) {
			wrote = true;
			possible |= a->wrote == seen;
		}
		a->wrote = -1;
	}
	if (wrote ? !possible : seen != *value)
		fail(s, "the sysctl reads %d, which nobody wrote last", seen);
	*value = seen;
	want = held || children || flight || seen == 1;
	on = bstats_is_on(s->t->observer);
	if (on != want)
		fail(s,
		     "the switch is %s, not %s, while tools hold %u fds, their children %u, %llu "
		     "are in flight, and the sysctl reads %d",
		     on < 0 ? strerror(-on) : on_off(on), on_off(want), held, children, flight,
		     seen);
}

/* Plays @steps from nothing on to nothing on. Returns whether all was as it should be; else what
 * was wrong is in the shared text. */
static bool perform(struct storm *s, const struct step *steps, unsigned int count)
{
	int value = 0, on;

	s->steps = steps;
	s->count = count;
	s->sh->failed = 0;
	for (unsigned int i = 0; i < s->tools; i++) {
		struct account *a = &s->sh->tools[i];

		*a = (struct account){.wrote = -1, .ops = a->ops};
		s->control[i] = -1;
	}
	for (unsigned int i = 0; i < s->tools; i++)
		start_tool(s, i, 0);
	for (unsigned int at = 0; at < count; at++) {
		char byte;

		if (steps[at].op != OP_PAUSE)
			continue;
		for (unsigned int i = 0; i < s->tools; i++)
			if (read(s->control[i], &byte, 1) != 1)
				bury(s, i);
		if (!s->sh->failed)
			check_pause(s, &value);
		if (s->sh->failed)
			break;
		for (unsigned int i = 0; i < s->tools; i++) {
			if (s->control[i] < 0)
				start_tool(s, i, at + 1);
			else if (write(s->control[i], "", 1) != 1)
				fail(s, "tool %u ended by itself", i);
		}
	}
	for (unsigned int i = 0; i < s->tools; i++) {
		if (s->control[i] >= 0) {
			kill(s->pids[i], SIGKILL);
			bury(s, i);
		}
	}
	drain(s);
	need(s->t, bstats_sysctl_set(0), "writing the sysctl");
	for (int i = 0; (on = bstats_is_on(s->t->observer)) > 0 && i < 1000; i++)
		sleep_ms(1);
	if (on)
		fail(s, "the switch is %s after all tools were killed and 0 was written",
		     on < 0 ? strerror(-on) : "on");
	return !s->sh->failed;
}

/* ---- sequences ---- */

static unsigned int add(struct step *steps, unsigned int count, unsigned int tool, enum op op,
			unsigned int arg)
{
	steps[count] = (struct step){(unsigned char)tool, (unsigned char)op, (unsigned char)arg};
	return count + 1;
}

/* The first epochs are short, so that a coarse fault is found by a few steps. */
static unsigned int make_epoch(struct storm *s, uint64_t *rnd, unsigned int number,
			       struct step *steps)
{
	/* Later, few tools with few steps are as frequent as many, or the switch would never be
	 * off. */
	unsigned int roll = (unsigned int)next_random(rnd), count = 0, sum = 0;
	unsigned int tools = 1 + (number < 32 ? number / 8 : roll % s->tools);
	unsigned int pauses = number < 32 ? 2 : 4;
	unsigned int between = number < 32 ? 1 + number / 2 : (1 + (roll >> 8) % 20) * tools;

	if (tools > s->tools)
		tools = s->tools;
	for (int op = 0; op < OPS; op++)
		sum += ops[op].weight;
	if (pauses * (between + 1) > MAX_STEPS)
		between = MAX_STEPS / pauses - 1;
	for (unsigned int p = 0; p < pauses; p++) {
		for (unsigned int i = 0; i < between; i++) {
			unsigned int pick = (unsigned int)(next_random(rnd) % sum);
			unsigned int op = 0;

			while (pick >= ops[op].weight)
				pick -= ops[op++].weight;
			count = add(steps, count, (unsigned int)(next_random(rnd) % tools),
				    (enum op)op, (unsigned int)(next_random(rnd) & 0xff));
		}
		count = add(steps, count, 0, OP_PAUSE, 0);
	}
	return count;
}

/* "3:send5 0:close1 pause", as STORM_REPLAY takes it. */
static void print_steps(const struct step *steps, unsigned int count, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < count && used < size; i++) {
		const struct step *st = &steps[i];
		int n;

		if (st->op == OP_PAUSE)
			n = snprintf(buf + used, size - used, "%spause", i ? " " : "");
		else
			n = snprintf(buf + used, size - used, "%s%u:%s.%u", i ? " " : "", st->tool,
				     ops[st->op].name, st->arg);
		used += (size_t)n;
	}
}

static unsigned int read_steps(struct btest *t, const char *text, struct step *steps)
{
	char copy[MAX_STEPS * STEP_TEXT], *save, *word;
	unsigned int count = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		unsigned int tool = 0, arg = 0;
		char name[16] = "";
		int op;

		if (strcmp(word, "pause")) {
			if (sscanf(word, "%u:%15[a-z0-9].%u", &tool, name, &arg) != 3)
				btest_broken(t, EINVAL, word);
		} else {
			strcpy(name, "pause");
		}
		for (op = 0; op < OPS && strcmp(name, ops[op].name); op++)
			;
		if (op == OPS || tool >= MAX_TOOLS || count == MAX_STEPS - 1)
			btest_broken(t, EINVAL, word);
		count = add(steps, count, tool, (enum op)op, arg);
	}
	return count;
}

/* Does the switch still work in the simplest of cases? */
static bool sane(struct storm *s)
{
	int fd, on;

	if (bstats_is_on(s->t->observer) != 0)
		return false;
	fd = bstats_open();
	on = bstats_is_on(s->t->observer);
	close(fd);
	return fd >= 0 && on == 1 && bstats_is_on(s->t->observer) == 0;
}

/* Fails this sequence? What ran at once may run in another order each time. */
static bool still_fails(struct storm *s, const struct step *steps, unsigned int count)
{
	for (int i = 0; i < SHRINK_TRIES; i++)
		if (!perform(s, steps, count))
			return true;
	return false;
}

static const char wrong_for_good[] =
	"; the kernel's count is wrong now, so that every sequence fails: after a reboot it may "
	"be shortened further";

/* Leaves out what can be left out: halves, then quarters, and so on. Stops when the kernel's
 * count is wrong for good, since then every sequence fails. Returns the new length, and in @why
 * what kept it from becoming shorter, if that is so. */
static unsigned int shrink(struct storm *s, struct step *steps, unsigned int count,
			   const char **why)
{
	long long end = now_ns() + SHRINK_NS;

	for (unsigned int chunk = count / 2; chunk; chunk = chunk > 1 ? (chunk + 1) / 2 : 0) {
		for (unsigned int at = 0; at + 1 < count;) {
			struct step shorter[MAX_STEPS];
			unsigned int n = chunk < count - 1 - at ? chunk : count - 1 - at;

			if (!sane(s) || now_ns() > end) {
				*why = now_ns() > end ? "; time is up" : wrong_for_good;
				return count;
			}
			/* The last step is a pause: that is where the switch is looked at. */
			memcpy(shorter, steps, at * sizeof(*steps));
			memcpy(shorter + at, steps + at + n, (count - at - n) * sizeof(*steps));
			if (still_fails(s, shorter, count - n)) {
				count -= n;
				memcpy(steps, shorter, count * sizeof(*steps));
			} else {
				at += n;
			}
		}
	}
	return count;
}

static unsigned long long operations(const struct storm *s)
{
	unsigned long long n = 0;

	for (unsigned int i = 0; i < s->tools; i++)
		n += s->sh->tools[i].ops;
	return n;
}

static unsigned long long setting(const char *name, unsigned long long value)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : value;
}

static _Noreturn void report(struct storm *s, struct step *steps, unsigned int count,
			     unsigned long long seed)
{
	unsigned int original = count;
	char first[1600], text[NOTE_STEPS * STEP_TEXT], who[512];
	const char *why = "";

	/* All tools are gone: whoever holds now is not one of them. */
	if (bstats_holders(0, who, sizeof(who)) > 0)
		snprintf(first, sizeof(first), "%s; but %s came, which is none of the tools",
			 s->sh->text, who);
	else
		snprintf(first, sizeof(first), "%s", s->sh->text);
	/* Nothing after the pause at which it was seen can have been the reason; a shorter sequence
	 * may fail in another way, which is as good. */
	if (!sane(s))
		why = wrong_for_good;
	else if (still_fails(s, steps, count))
		count = shrink(s, steps, count, &why);
	else
		why = "; it did not fail again, as what runs at once runs in another order each "
		      "time";
	btest_note(s->t,
		   "seed %llu, %u tools; shortest sequence found (%u of %u steps%s), to be played "
		   "again as STORM_TOOLS=%u STORM_REPLAY='...':",
		   seed, s->tools, count, original, why, s->tools);
	/* A note has its limits, and a sequence that could not be shortened may be long. */
	for (unsigned int i = 0; i < count; i += NOTE_STEPS) {
		print_steps(steps + i, count - i < NOTE_STEPS ? count - i : NOTE_STEPS, text,
			    sizeof(text));
		btest_note(s->t, "%s", text);
	}
	print_steps(steps, count < NOTE_STEPS ? count : NOTE_STEPS, text, sizeof(text));
	text[300] = '\0';
	btest_failed(s->t, "what the model says, at each pause and at each run of a holder",
		     "%s; STORM_SEED=%llu, shortest sequence found (%u steps): %s", first, seed,
		     count, text);
}

static void storm(struct btest *t)
{
	struct storm s = {.t = t};
	unsigned long long seconds =
		setting("STORM_SECONDS", time_is_exact() ? EXACT_S : DEFAULT_S);
	unsigned long long enough = setting("STORM_OPS", 0);
	unsigned long long seed = setting("STORM_SEED", (unsigned long long)time(NULL));
	bool loop = setting("LOOP", 0);
	const char *replay = getenv("STORM_REPLAY");
	long long end = now_ns() + (long long)seconds * 1000000000LL;
	uint64_t rnd = seed * 0x9e3779b97f4a7c15ULL + 1;
	struct step steps[MAX_STEPS];
	unsigned int count, epochs = 0;

	s.tools = (unsigned int)setting("STORM_TOOLS", DEFAULT_TOOLS);
	if (!s.tools || s.tools > MAX_TOOLS)
		btest_broken(t, EINVAL, "STORM_TOOLS");
	/* Shared, so that what a tool said outlives it. */
	s.sh = mmap(NULL, sizeof(*s.sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s.sh == MAP_FAILED)
		btest_broken(t, errno, "mmap");
	need(t, prctl(PR_SET_CHILD_SUBREAPER, 1), "PR_SET_CHILD_SUBREAPER");
	for (unsigned int i = 0; i < s.tools; i++) {
		s.programs[i] = (int)need(t, bstats_observer(), "loading a program");
		need(t, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, s.mail[i]), "socketpair");
	}
	if (replay) {
		count = read_steps(t, replay, steps);
		count = add(steps, count, 0, OP_PAUSE, 0);
		for (int i = 0; i < 10; i++)
			if (!perform(&s, steps, count))
				report(&s, steps, count, seed);
		return;
	}
	do {
		count = make_epoch(&s, &rnd, epochs++, steps);
		if (!perform(&s, steps, count))
			report(&s, steps, count, seed);
		if (loop && epochs % 1000 == 0)
			btest_note(t, "seed %llu: %llu operations so far", seed, operations(&s));
	} while (loop || (enough ? operations(&s) < enough : now_ns() < end));
	btest_note(t, "seed %llu: %llu operations of %u tools in %u epochs, %lld s", seed,
		   operations(&s), s.tools, epochs,
		   (now_ns() - end) / 1000000000LL + (long long)seconds);
}

int main(int argc, char **argv)
{
	/* For ever is a year. A number of operations takes as long as it takes. */
	const bool unlimited = setting("LOOP", 0) || setting("STORM_OPS", 0);
	const struct btest_case cases[] = {
		{.name = "storm",
		 .rule = "whoever comes and goes, and however: the switch is on exactly while "
			 "the sysctl is 1 or anybody holds a stats fd",
		 .run = storm,
		 .tags = "storm,process",
		 .timeout_s = unlimited ? 31536000
					: (unsigned int)setting("STORM_SECONDS", DEFAULT_S) + 100},
		{},
	};

	return btest_main(argc, argv, cases);
}
