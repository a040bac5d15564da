// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A test program as those of selftests/stats, whose cases do what cases can do. btest.bats runs it
 * to see what its runner makes of that. "sample hold N" is a stranger: it holds N stats fds until
 * its standard input ends.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "btest.h"

static void passes(struct btest *t)
{
	expect_off(t, "at the beginning");
	close(must_open(t));
}

static void fails(struct btest *t)
{
	expect_eq(t, 42, 41, "the %s", "answer");
}

static void fails_errno(struct btest *t)
{
	expect_errno(t, EPERM, -EINVAL, "the call");
}

static void fails_switch(struct btest *t)
{
	must_open(t);
	expect_off(t, "while I hold an fd");
}

static void skips(struct btest *t)
{
	btest_skip(t, "needs the moon, which is #1");
}

static void crashes(struct btest *t)
{
	struct rlimit none = {};

	(void)t;
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void hangs(struct btest *t)
{
	must_open(t);
	for (;;)
		pause();
}

/* A process that nobody waits for, in a session of its own. */
static void leaves_process(struct btest *t)
{
	must_open(t);
	if (!need(t, fork(), "fork")) {
		setsid();
		if (!fork())
			for (;;)
				pause();
		_exit(0);
	}
	sleep_ms(50);
}

static void leaves_sysctl(struct btest *t)
{
	must_set(t, 1);
}

/* Both ways on, for somebody to kill us. */
static void waits(struct btest *t)
{
	must_set(t, 1);
	must_open(t);
	btest_note(t, "ready");
	for (;;)
		pause();
}

static const char rule[] = "the sample does what it says";

static const struct btest_case cases[] = {
	{.name = "passes", .rule = rule, .run = passes, .tags = "good,quick"},
	{.name = "fails", .rule = rule, .run = fails, .tags = "bad"},
	{.name = "fails-errno", .rule = rule, .run = fails_errno, .tags = "bad"},
	{.name = "fails-switch", .rule = rule, .run = fails_switch, .tags = "bad"},
	{.name = "skips", .rule = rule, .run = skips, .tags = "good"},
	{.name = "crashes", .rule = rule, .run = crashes, .tags = "bad"},
	{.name = "hangs", .rule = rule, .run = hangs, .tags = "bad", .timeout_s = 1},
	{.name = "leaves-process", .rule = rule, .run = leaves_process, .tags = "good"},
	{.name = "leaves-sysctl", .rule = rule, .run = leaves_sysctl, .tags = "good"},
	{.name = "waits", .rule = rule, .run = waits, .timeout_s = 600},
	{},
};

static int hold(unsigned long count)
{
	char byte;

	while (count--)
		if (bstats_open() < 0)
			return 1;
	puts("holding");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "hold"))
		return hold(strtoul(argv[2], NULL, 10));
	return btest_main(argc, argv, cases);
}
