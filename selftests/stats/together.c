// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sysctl and the fds share one switch: one old tool with the sysctl and any number of new ones
 * with fds, none of which can switch another one off.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "btest.h"

#define LENGTH 6 /* of the sequences that are tried exhaustively */

enum op {
	OP_SYSCTL_0,
	OP_SYSCTL_1,
	OP_OPEN,
	OP_CLOSE_OLDEST,
	OP_CLOSE_NEWEST,
	OPS,
};

/* What the kernel should be: two numbers. */
struct model {
	int sysctl;
	int fds[LENGTH + 1];
	int count;
};

static const char *describe(const enum op *ops, int count, char *buf, size_t size)
{
	static const char *const names[OPS] = {
		[OP_SYSCTL_0] = "sysctl=0", [OP_SYSCTL_1] = "sysctl=1", [OP_OPEN] = "open",
		[OP_CLOSE_OLDEST] = "close-oldest", [OP_CLOSE_NEWEST] = "close-newest",
	};
	size_t used = 0;

	for (int i = 0; i < count && used < size; i++)
		used += snprintf(buf + used, size - used, "%s%s", i ? ", " : "", names[ops[i]]);
	return buf;
}

static bool possible(enum op op, int open)
{
	/* With one fd, the oldest is the newest: once is enough. */
	if (op == OP_CLOSE_NEWEST)
		return open > 0;
	if (op == OP_CLOSE_OLDEST)
		return open > 1;
	return true;
}

static void apply(struct btest *t, struct model *m, enum op op)
{
	switch (op) {
	case OP_SYSCTL_0:
	case OP_SYSCTL_1:
		must_set(t, op == OP_SYSCTL_1);
		m->sysctl = op == OP_SYSCTL_1;
		break;
	case OP_OPEN:
		m->fds[m->count++] = must_open(t);
		break;
	case OP_CLOSE_OLDEST:
		close(m->fds[0]);
		m->count--;
		memmove(m->fds, m->fds + 1, m->count * sizeof(m->fds[0]));
		break;
	default:
		close(m->fds[--m->count]);
	}
}

static void check(struct btest *t, const struct model *m, const enum op *ops, int count)
{
	int want = m->sysctl || m->count;
	int on = bstats_is_on(t->observer), value = bstats_sysctl_read();
	char text[512];

	/* To describe it takes longer than to look, under emulation. */
	if (on == want && value == m->sysctl)
		return;
	describe(ops, count, text, sizeof(text));
	if (on < 0)
		btest_broken(t, on, "a run of the observer program");
	expect_eq(t, want, on, "the switch, 0 off and 1 on, after: %s", text);
	expect_eq(t, m->sysctl, value, "value that the sysctl reads back after: %s", text);
}

/* Takes an operation back. Which fd it was that was closed makes no difference to the count. */
static void undo(struct btest *t, struct model *m, enum op op, int sysctl)
{
	if (op == OP_OPEN) {
		close(m->fds[--m->count]);
	} else if (op == OP_CLOSE_OLDEST || op == OP_CLOSE_NEWEST) {
		m->fds[m->count++] = must_open(t);
	} else if (m->sysctl != sysctl) {
		must_set(t, sysctl);
		m->sysctl = sysctl;
	}
}

/* Walks the tree of all sequences, looking at the switch at each node, and going back by
 * undoing. To play each sequence from the beginning would toggle the switch four times as often,
 * which takes milliseconds under emulation. Returns the number of sequences. */
static int walk(struct btest *t, struct model *m, enum op *ops, int depth)
{
	int sequences = 0;

	if (depth == LENGTH)
		return 1;
	for (int op = 0; op < OPS; op++) {
		int sysctl = m->sysctl;

		if (!possible(op, m->count))
			continue;
		ops[depth] = op;
		apply(t, m, op);
		check(t, m, ops, depth + 1);
		sequences += walk(t, m, ops, depth + 1);
		undo(t, m, op, sysctl);
	}
	return sequences;
}

static void exhaustive(struct btest *t)
{
	enum op ops[LENGTH] = {};
	struct model m = {};
	int sequences = walk(t, &m, ops, 0);

	check(t, &m, ops, 0);
	btest_note(t, "%d sequences of %d operations, each step against the model", sequences,
		   LENGTH);
}

static void nobody_switches_me_off(struct btest *t)
{
	int fd = must_open(t);

	for (int i = 0; i < 10; i++) {
		must_set(t, 0);
		expect_on(t, "while I hold an fd, after somebody wrote 0");
		must_set(t, 1);
		expect_on(t, "while I hold an fd, after somebody wrote 1");
		must_set(t, 0);
		expect_on(t, "while I hold an fd, after somebody wrote 1 and 0");
		close(must_open(t));
		expect_on(t, "while I hold an fd, after somebody opened and closed one");
	}
	close(fd);
	expect_off(t, "after I closed my fd");
}

static void old_tool_keeps(struct btest *t)
{
	int fds[16];

	must_set(t, 1);
	for (int i = 0; i < 16; i++)
		fds[i] = must_open(t);
	for (int i = 0; i < 16; i++)
		close(fds[i]);
	expect_on(t, "while the sysctl is 1, after 16 fds came and went");
	must_set(t, 0);
	expect_off(t, "after 0 was written");
}

static void other_holder(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	must_open(t);
	must_set(t, 1);
	must_open(t);
	peer_ask(t, me, 0);
}

static void killed_beside(struct btest *t)
{
	struct peer p = peer_start(t, other_holder, NULL);
	int fd;

	peer_hear(t, &p);
	fd = must_open(t);
	peer_kill(t, &p, SIGKILL);
	must_set(t, 0);
	expect_on(t, "while I hold an fd, after a holder of two was killed and 0 was written");
	close(fd);
	expect_off(t, "after I closed my fd");
}

static void toggles(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	peer_say(t, me, 0);
	for (;;)
		for (int i = 0; i < 2; i++)
			need(t, bstats_sysctl_set(i), "writing the sysctl");
}

static void opens_and_closes(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	peer_say(t, me, 0);
	for (;;)
		close(must_open(t));
}

/* The two sentences under fire: every run of mine is counted while I hold. */
static void under_fire(struct btest *t)
{
	struct peer p[4];
	struct bstats before, after;
	int fd;

	for (int i = 0; i < 4; i++) {
		p[i] = peer_start(t, i & 1 ? toggles : opens_and_closes, NULL);
		peer_hear(t, &p[i]);
	}
	for (int round = 0; round < 50; round++) {
		fd = must_open(t);
		before = must_info(t, t->observer);
		must_run(t, t->observer, 20);
		after = must_info(t, t->observer);
		expect_eq(t, 20, after.run_cnt - before.run_cnt,
			  "runs counted of 20, while I hold an fd and others toggle (round %d)",
			  round);
		close(fd);
	}
	for (int i = 0; i < 4; i++)
		peer_kill(t, &p[i], SIGKILL);
	must_set(t, 0);
	expect_off(t, "after all of them were killed and 0 was written");
}

static const char promise[] =
	"the switch is on exactly while the sysctl is 1 or anybody holds a stats fd";
static const char mine[] = "while I hold an fd, nobody can switch me off";

static const struct btest_case cases[] = {
	{ .name = "exhaustive", .rule = promise, .run = exhaustive, .tags = "model",
	  .timeout_s = 120 },
	{ .name = "nobody-switches-me-off", .rule = mine, .run = nobody_switches_me_off },
	{ .name = "old-tool-keeps", .rule = "while the sysctl is 1, no close of an fd switches off",
	  .run = old_tool_keeps },
	{ .name = "killed-beside", .rule = mine, .run = killed_beside, .tags = "process" },
	{ .name = "under-fire", .rule = mine, .run = under_fire, .tags = "process" },
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
