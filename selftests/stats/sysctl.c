// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * kernel.bpf_stats_enabled: one holder of the switch at most, however often it is written, by
 * whoever may write it, and never more than that.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>

#include "btest.h"

#define NOBODY 65534

static void expect_value(struct btest *t, int value, const char *when)
{
	int seen = bstats_sysctl_read();
	char text[256];

	snprintf(text, sizeof(text), "value that reads back %s", when);
	need(t, seen, "reading the sysctl");
	expect_eq(t, value, seen, "%s", text);
}

static void on_off(struct btest *t)
{
	for (int i = 0; i < 3; i++) {
		must_set(t, 1);
		expect_on(t, "after 1 was written (round %d)", i);
		expect_value(t, 1, "after 1 was written");
		must_set(t, 0);
		expect_off(t, "after 0 was written (round %d)", i);
		expect_value(t, 0, "after 0 was written");
	}
}

static void counts_once(struct btest *t)
{
	for (int ones = 2; ones < 6; ones++) {
		for (int i = 0; i < ones; i++)
			must_set(t, 1);
		expect_on(t, "after 1 was written %d times", ones);
		must_set(t, 0);
		expect_off(t, "after 1 was written %d times and 0 once", ones);
	}
}

static void no_underflow(struct btest *t)
{
	int fd;

	for (int i = 0; i < 20; i++)
		must_set(t, 0);
	expect_off(t, "after 0 was written 20 times with nothing on");
	/* A count below zero would swallow the next reference, or stay on at its drop. */
	fd = must_open(t);
	expect_on(t, "with one fd open, after 0 was written 20 times");
	for (int i = 0; i < 20; i++)
		must_set(t, 0);
	expect_on(t, "with one fd open, after 0 was written 20 times more");
	close(fd);
	expect_off(t, "after that fd is closed");
	must_set(t, 1);
	expect_on(t, "after 1 was written");
	must_set(t, 0);
	expect_off(t, "after 0 was written");
}

/* One text written to the file, and what must come of it, from either value. */
struct text {
	const char *what, *text;
	size_t len; /* 0: strlen */
	int err;    /* the errno, or 0 */
	int value;  /* what it sets, if err is 0; -1: nothing changes */
};

static const struct text texts[] = {
	{ "'0'", "0", 0, 0, 0 },
	{ "'1'", "1", 0, 0, 1 },
	{ "'0' and newline", "0\n", 0, 0, 0 },
	{ "'1' and newline", "1\n", 0, 0, 1 },
	{ "'1' after blanks", "  \t1", 0, 0, 1 },
	{ "'1' before blanks", "1 \t\n", 0, 0, 1 },
	{ "'01'", "01", 0, 0, 1 },
	{ "'0x1'", "0x1", 0, 0, 1 },
	{ "'-0'", "-0", 0, 0, 0 },
	{ "nothing", "", 0, 0, -1 },
	{ "'2'", "2", 0, EINVAL, -1 },
	{ "'10'", "10", 0, EINVAL, -1 },
	{ "'-1'", "-1", 0, EINVAL, -1 },
	{ "the largest int", "2147483647", 0, EINVAL, -1 },
	{ "the smallest int", "-2147483648", 0, EINVAL, -1 },
	{ "2^32", "4294967296", 0, EINVAL, -1 },
	{ "2^32 + 1", "4294967297", 0, EINVAL, -1 },
	{ "2^64", "18446744073709551616", 0, EINVAL, -1 },
	{ "2^64 + 1", "18446744073709551617", 0, EINVAL, -1 },
	{ "30 digits", "100000000000000000000000000001", 0, EINVAL, -1 },
	{ "a word", "yes", 0, EINVAL, -1 },
	{ "'on'", "on", 0, EINVAL, -1 },
	{ "'+1'", "+1", 0, EINVAL, -1 },
	{ "'1x'", "1x", 0, EINVAL, -1 },
	{ "'1.0'", "1.0", 0, EINVAL, -1 },
	{ "'1,'", "1,", 0, EINVAL, -1 },
	{ "a lone minus", "-", 0, EINVAL, -1 },
	{ "a blank", " ", 0, EINVAL, -1 },
	{ "a newline", "\n", 0, EINVAL, -1 },
	{ "a zero byte", "", 1, EINVAL, -1 },
	{ "a byte of 255", "\xff", 0, EINVAL, -1 },
};

static void check_text(struct btest *t, const struct text *x, int from)
{
	size_t len = x->len ? x->len : strlen(x->text);
	int want = x->err || x->value < 0 ? from : x->value, rc;

	must_set(t, from);
	rc = bstats_sysctl_write(x->text, len);
	expect_errno(t, x->err, rc, "writing %s while the value is %d", x->what, from);
	if (!x->err)
		expect_eq(t, (long long)len, rc, "bytes taken of %s", x->what);
	expect_value(t, want, x->what);
	if (want)
		expect_on(t, "after %s was written while the value was %d", x->what, from);
	else
		expect_off(t, "after %s was written while the value was %d", x->what, from);
}

static void texts_from_0(struct btest *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		check_text(t, &texts[i], 0);
}

static void texts_from_1(struct btest *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		check_text(t, &texts[i], 1);
}

/* A number, then more blanks than a page holds: taken or refused, but nothing in between. */
static void overlong(struct btest *t)
{
	size_t sizes[] = {21, 22, 23, 100, 4095, 4096, 4097, 65536};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char *buf = malloc(sizes[i]);
		int rc, value;

		if (!buf)
			btest_broken(t, ENOMEM, "malloc");
		must_set(t, 0);
		memset(buf, ' ', sizes[i]);
		buf[0] = '1';
		rc = bstats_sysctl_write(buf, sizes[i]);
		value = bstats_sysctl_read();
		expect_eq(t, rc >= 0, value, "value after '1' and %zu blanks (write returned %d)",
			  sizes[i] - 1, rc);
		if (value)
			expect_on(t, "after '1' and %zu blanks", sizes[i] - 1);
		else
			expect_off(t, "after '1' and %zu blanks", sizes[i] - 1);
		/* Digits, on the other hand, are no number that long. */
		must_set(t, 0);
		memset(buf, '1', sizes[i]);
		expect_errno(t, EINVAL, bstats_sysctl_write(buf, sizes[i]), "writing %zu digits",
			     sizes[i]);
		expect_off(t, "after %zu digits were refused", sizes[i]);
		free(buf);
	}
}

/* kernel.sysctl_writes_strict is 1 by default: only a write at the start of the file sets. A tool
 * that writes 1 and later 0 through one fd, without seeking, is told that it worked. */
static void partial(struct btest *t)
{
	char strict[8] = "";
	int fd = open("/proc/sys/kernel/sysctl_writes_strict", O_RDONLY | O_CLOEXEC);

	need(t, fd, "sysctl_writes_strict");
	need(t, read(fd, strict, sizeof(strict) - 1), "sysctl_writes_strict");
	close(fd);
	if (strict[0] != '1')
		btest_skip(t, "needs kernel.sysctl_writes_strict 1, which is %s", strict);
	fd = (int)need(t, open(BSTATS_SYSCTL, O_RDWR | O_CLOEXEC), BSTATS_SYSCTL);
	expect_eq(t, 1, write(fd, "1", 1), "bytes written at offset 0");
	expect_on(t, "after 1 was written at offset 0");
	expect_eq(t, 1, write(fd, "0", 1), "bytes taken at offset 1");
	expect_on(t, "after 0 was written at offset 1, which sets nothing");
	need(t, lseek(fd, 0, SEEK_SET), "lseek");
	expect_eq(t, 1, write(fd, "0", 1), "bytes written at offset 0 again");
	expect_off(t, "after 0 was written at offset 0");
	/* The digits of one number in two writes are not joined. */
	need(t, lseek(fd, 0, SEEK_SET), "lseek");
	expect_eq(t, 1, write(fd, "1", 1), "bytes written at offset 0");
	expect_eq(t, 1, write(fd, "5", 1), "bytes taken at offset 1");
	expect_value(t, 1, "after '1' and '5' in two writes");
	close(fd);
	expect_on(t, "after the fd of the sysctl file is closed: it is the value that holds");
	must_set(t, 0);
	expect_off(t, "after 0 was written");
}

static void reading(struct btest *t)
{
	char buf[16] = "";
	int fd, stats;

	fd = (int)need(t, open(BSTATS_SYSCTL, O_RDONLY | O_CLOEXEC), BSTATS_SYSCTL);
	expect_eq(t, 2, read(fd, buf, sizeof(buf)), "bytes read");
	if (memcmp(buf, "0\n", 2))
		btest_failed(t, "'0' and a newline", "'%.2s'", buf);
	expect_eq(t, 0, read(fd, buf, sizeof(buf)), "bytes read at the end");
	stats = must_open(t);
	expect_eq(t, 2, pread(fd, buf, sizeof(buf), 0), "bytes read again");
	if (memcmp(buf, "0\n", 2))
		btest_failed(t, "'0' while an fd, and not the sysctl, holds the switch", "'%.2s'",
			     buf);
	expect_on(t, "while an fd is open, after the sysctl was read");
	close(stats);
	for (int i = 0; i < 100; i++)
		expect_value(t, 0, "in a row");
	expect_off(t, "after the sysctl was read 100 times");
	must_set(t, 1);
	for (int i = 0; i < 100; i++)
		expect_value(t, 1, "in a row");
	must_set(t, 0);
	expect_off(t, "after 1, 100 reads, and 0");
	close(fd);
}

static void file_mode(struct btest *t)
{
	struct stat st;

	need(t, stat(BSTATS_SYSCTL, &st), BSTATS_SYSCTL);
	expect_eq(t, 0644, st.st_mode & 07777, "mode of the file (420 is 0644)");
	expect_eq(t, 0, st.st_uid, "owner of the file");
}

/* ---- who may write ---- */

static void tries(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	for (const char *s = "102"; *s; s++)
		peer_say(t, me, bstats_sysctl_write(s, 1));
	peer_say(t, me, bstats_sysctl_read());
}

struct who {
	unsigned int id;
	uint64_t keep;
	int unshare;
	bool map_root; /* become uid 0 of the new user namespace */
};

static void tries_as(struct btest *t, struct peer *me, void *arg)
{
	const struct who *w = arg;

	if (w->unshare && unshare(w->unshare))
		btest_broken(t, errno, "unshare");
	if (w->map_root) {
		need(t, put_file("/proc/self/setgroups", "deny"), "setgroups");
		need(t, put_file("/proc/self/uid_map", "0 0 1"), "uid_map");
		need(t, put_file("/proc/self/gid_map", "0 0 1"), "gid_map");
	}
	if (w->id)
		need(t, become(w->id, w->keep), "setuid");
	else if (w->keep != ~0ULL)
		need(t, caps_keep(w->keep), "capset");
	tries(t, me, NULL);
}

/* With the switch off: 1 is refused. With an fd open: 0 is refused and changes nothing. */
static void refused(struct btest *t, const struct who *w, int err, const char *who)
{
	for (int start = 0; start < 2; start++) {
		struct peer p;

		must_set(t, start);
		p = peer_start(t, tries_as, (void *)w);
		expect_errno(t, err, peer_hear(t, &p), "writing 1 as %s", who);
		expect_errno(t, err, peer_hear(t, &p), "writing 0 as %s", who);
		expect_errno(t, err, peer_hear(t, &p),
			     "writing 2 as %s: who writes is checked before what is written", who);
		expect_eq(t, start, peer_hear(t, &p), "value that reads back as %s", who);
		peer_wait(t, &p);
		if (start)
			expect_on(t, "after refused writes as %s", who);
		else
			expect_off(t, "after refused writes as %s", who);
	}
	must_set(t, 0);
	expect_off(t, "after 0 was written");
}

static void unprivileged(struct btest *t)
{
	const struct who w = {.id = NOBODY};

	refused(t, &w, EACCES, "an ordinary user");
}

/* The file belongs to root, and no capability opens it for others: sysctl permissions go by uid. */
static void wrong_uid(struct btest *t)
{
	const struct who w = {.id = NOBODY, .keep = CAP_BIT(CAP_SYS_ADMIN) |
			      CAP_BIT(CAP_DAC_OVERRIDE)};

	refused(t, &w, EACCES, "a user with CAP_SYS_ADMIN and CAP_DAC_OVERRIDE");
}

static void root_no_cap(struct btest *t)
{
	const struct who w = {.keep = ~(CAP_BIT(CAP_SYS_ADMIN))};

	refused(t, &w, EPERM, "root without CAP_SYS_ADMIN");
}

static void root_bpf_caps(struct btest *t)
{
	const struct who w = {.keep = CAP_BIT(CAP_BPF) | CAP_BIT(CAP_PERFMON)};

	refused(t, &w, EPERM, "root with CAP_BPF and CAP_PERFMON only");
}

static void user_ns(struct btest *t)
{
	const struct who w = {.keep = ~0ULL, .unshare = CLONE_NEWUSER, .map_root = true};

	refused(t, &w, EPERM, "root of a user namespace");
}

static void no_caps_reads(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	need(t, become(NOBODY, 0), "setuid");
	peer_say(t, me, bstats_sysctl_read());
}

static void anyone_reads(struct btest *t)
{
	for (int value = 0; value < 2; value++) {
		struct peer p;

		must_set(t, value);
		p = peer_start(t, no_caps_reads, NULL);
		expect_eq(t, value, peer_hear(t, &p), "value read by an ordinary user");
		peer_wait(t, &p);
	}
}

/* The check is at the write, on who writes, not on who opened. */
static void writes_through(struct btest *t, struct peer *me, void *arg)
{
	need(t, become(NOBODY, 0), "setuid");
	for (const char *s = "10"; *s; s++)
		peer_say(t, me, pwrite(*(int *)arg, s, 1, 0) < 0 ? -errno : 0);
}

static void passed_fd(struct btest *t)
{
	int fd = (int)need(t, open(BSTATS_SYSCTL, O_RDWR | O_CLOEXEC), BSTATS_SYSCTL);
	struct peer p = peer_start(t, writes_through, &fd);

	expect_errno(t, EPERM, peer_hear(t, &p), "writing 1 as a user, to a file opened by root");
	expect_errno(t, EPERM, peer_hear(t, &p), "writing 0 as a user, to a file opened by root");
	peer_wait(t, &p);
	expect_off(t, "after both were refused");
	close(fd);
}

static void read_only_proc(struct btest *t)
{
	need(t, unshare(CLONE_NEWNS), "unshare(CLONE_NEWNS)");
	need(t, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "making mounts private");
	need(t, mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL), "bind mount of /proc/sys");
	need(t, mount(NULL, "/proc/sys", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL),
	     "read-only remount of /proc/sys");
	expect_errno(t, EROFS, bstats_sysctl_write("1", 1), "writing 1 on a read-only /proc/sys");
	expect_off(t, "after that was refused");
	expect_value(t, 0, "from a read-only /proc/sys");
	close(must_open(t));
}

/* The switch is one for the whole machine, whatever namespace it is written from. */
static void in_namespace(struct btest *t, struct peer *me, void *arg)
{
	int flags = *(int *)arg, status;

	need(t, unshare(flags), "unshare");
	if (flags & CLONE_NEWPID) {
		pid_t pid = (pid_t)need(t, fork(), "fork");

		if (pid) {
			need(t, waitpid(pid, &status, 0), "waitpid");
			_exit(WEXITSTATUS(status));
		}
		/* /proc of the new namespace, too */
		need(t, unshare(CLONE_NEWNS), "unshare(CLONE_NEWNS)");
		need(t, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
		need(t, mount("proc", "/proc", "proc", 0, NULL), "mounting /proc");
	}
	peer_hear(t, me);
	peer_say(t, me, bstats_sysctl_write("1", 1));
	peer_hear(t, me);
	peer_say(t, me, bstats_sysctl_write("0", 1));
}

static void namespaces(struct btest *t)
{
	static const struct {
		const char *name;
		int flags;
	} ns[] = {
		{ "a network namespace", CLONE_NEWNET },
		{ "a mount namespace", CLONE_NEWNS },
		{ "a pid namespace", CLONE_NEWPID },
		{ "an IPC and UTS namespace", CLONE_NEWIPC | CLONE_NEWUTS },
		{ "a cgroup namespace", CLONE_NEWCGROUP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ns); i++) {
		int flags = ns[i].flags;
		struct peer p = peer_start(t, in_namespace, &flags);

		expect_errno(t, 0, peer_ask(t, &p, 0), "writing 1 in %s", ns[i].name);
		expect_on(t, "after 1 was written in %s", ns[i].name);
		expect_value(t, 1, "outside the namespace");
		expect_errno(t, 0, peer_ask(t, &p, 0), "writing 0 in %s", ns[i].name);
		expect_off(t, "after 0 was written in %s", ns[i].name);
		peer_wait(t, &p);
	}
}

/* The writer's end changes nothing: a value is not a process. */
static void writes_and_dies(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	peer_ask(t, me, bstats_sysctl_set(1));
}

static void outlives_writer(struct btest *t)
{
	struct peer p = peer_start(t, writes_and_dies, NULL);

	expect_errno(t, 0, peer_hear(t, &p), "writing 1 in another process");
	peer_kill(t, &p, SIGKILL);
	expect_on(t, "after the process that wrote 1 was killed");
	expect_value(t, 1, "after its writer was killed");
	must_set(t, 0);
	expect_off(t, "after 0 was written by another process");
}

static void churns(struct btest *t, struct peer *me, void *arg)
{
	long long end = now_ns() + *(int *)arg * 1000000LL;

	peer_hear(t, me);
	for (int i = 0; now_ns() < end; i++)
		need(t, bstats_sysctl_set(i & 1), "writing the sysctl");
	peer_say(t, me, 0);
}

/* However many write at once, what reads back is what is on, and 0 is off. */
static void concurrent(struct btest *t)
{
	struct peer p[4];
	/* In exact time, CPUs take turns: this takes seconds. */
	int ms = time_is_exact() ? 60 : 300;

	for (int i = 0; i < 4; i++)
		p[i] = peer_start(t, churns, &ms);
	for (int i = 0; i < 4; i++)
		peer_say(t, &p[i], 0);
	for (int i = 0; i < 4; i++) {
		peer_hear(t, &p[i]);
		peer_wait(t, &p[i]);
	}
	if (bstats_sysctl_read() == 1)
		expect_on(t, "after four writers, when 1 reads back");
	else
		expect_off(t, "after four writers, when 0 reads back");
	must_set(t, 0);
	expect_off(t, "after four writers and a last 0");
}

static const char one_holder[] =
	"the sysctl is one holder of the switch at most, whatever was written how often";
static const char only_0_1[] =
	"the sysctl takes 0 and 1; anything else is EINVAL and changes nothing";
static const char readable[] =
	"reading the sysctl gives the last value written, and changes nothing";
static const char who_may[] =
	"only uid 0 with CAP_SYS_ADMIN in the initial user namespace may write the sysctl";
static const char global[] = "the sysctl is one for all namespaces";

static const struct btest_case cases[] = {
	{.name = "on-off", .rule = one_holder, .run = on_off},
	{.name = "counts-once", .rule = one_holder, .run = counts_once},
	{.name = "no-underflow", .rule = one_holder, .run = no_underflow},
	{.name = "texts-from-0", .rule = only_0_1, .run = texts_from_0, .tags = "input"},
	{.name = "texts-from-1", .rule = only_0_1, .run = texts_from_1, .tags = "input"},
	{.name = "overlong", .rule = only_0_1, .run = overlong, .tags = "input"},
	{.name = "partial",
	 .rule = "only a write at offset 0 sets the sysctl",
	 .run = partial,
	 .tags = "input"},
	{.name = "reading", .rule = readable, .run = reading},
	{.name = "anyone-reads", .rule = readable, .run = anyone_reads, .tags = "privilege"},
	{.name = "mode", .rule = who_may, .run = file_mode, .tags = "privilege"},
	{.name = "unprivileged", .rule = who_may, .run = unprivileged, .tags = "privilege"},
	{.name = "wrong-uid", .rule = who_may, .run = wrong_uid, .tags = "privilege"},
	{.name = "root-no-cap", .rule = who_may, .run = root_no_cap, .tags = "privilege"},
	{.name = "root-bpf-caps", .rule = who_may, .run = root_bpf_caps, .tags = "privilege"},
	{.name = "user-namespace",
	 .rule = who_may,
	 .run = user_ns,
	 .needs = BH_USER_NS,
	 .tags = "privilege,namespace"},
	{.name = "passed-fd", .rule = who_may, .run = passed_fd, .tags = "privilege,passing"},
	{.name = "read-only-proc",
	 .rule = who_may,
	 .run = read_only_proc,
	 .tags = "privilege,namespace"},
	{.name = "namespaces", .rule = global, .run = namespaces, .tags = "namespace"},
	{.name = "outlives-writer",
	 .rule = "the sysctl holds the switch until it is written again",
	 .run = outlives_writer,
	 .tags = "process"},
	{.name = "concurrent", .rule = one_holder, .run = concurrent, .tags = "process"},
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
