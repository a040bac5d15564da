// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The three ways to read a program's statistics say the same: BPF_OBJ_GET_INFO_BY_FD, fdinfo, and
 * bpftool, to anybody who may look.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "btest.h"

#define NOBODY 65534

static void same(struct btest *t, const struct bstats *a, const struct bstats *b, const char *who)
{
	expect_eq(t, (long long)a->run_cnt, (long long)b->run_cnt, "run_cnt by %s, as by info",
		  who);
	expect_eq(t, (long long)a->run_time_ns, (long long)b->run_time_ns,
		  "run_time_ns by %s, as by info", who);
	if (a->has_recursion_misses) {
		expect_eq(t, 1, b->has_recursion_misses, "recursion_misses in %s (1 is yes)", who);
		expect_eq(t, (long long)a->recursion_misses, (long long)b->recursion_misses,
			  "recursion_misses by %s, as by info", who);
	}
}

/* A program that has run @n times. */
static int with_runs(struct btest *t, unsigned int n)
{
	int prog = (int)need(t, bstats_observer(), "a program"), fd = must_open(t);

	if (n)
		must_run(t, prog, n);
	close(fd);
	return prog;
}

static void fdinfo(struct btest *t)
{
	static const unsigned int counts[] = {0, 1, 1000, 12345};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		int prog = with_runs(t, counts[i]);
		struct bstats info = must_info(t, prog), other;

		expect_eq(t, counts[i], (long long)info.run_cnt, "run_cnt by info");
		need(t, bstats_fdinfo(prog, &other), "reading fdinfo");
		same(t, &info, &other, "fdinfo");
		close(prog);
	}
}

/* Every fd of a program shows the program's numbers: they are not the fd's. */
static void every_fd(struct btest *t)
{
	int prog = with_runs(t, 77), copy, again;
	struct bpf_prog_info pi = {};
	__u32 len = sizeof(pi);
	struct bstats info = must_info(t, prog), other;

	need(t, bpf_obj_get_info_by_fd(prog, &pi, &len), "info");
	copy = (int)need(t, fcntl(prog, F_DUPFD_CLOEXEC, 3), "dup");
	again = (int)need(t, bpf_prog_get_fd_by_id(pi.id), "an fd by id");
	close(prog);
	need(t, bstats_info(copy, &other), "info of a duplicate");
	same(t, &info, &other, "a duplicate");
	need(t, bstats_fdinfo(again, &other), "fdinfo of an fd by id");
	same(t, &info, &other, "an fd by id");
}

static void reads(struct btest *t, struct peer *me, void *arg)
{
	struct bstats info, other;
	int prog = *(int *)arg, rc;

	need(t, become(NOBODY, 0), "setuid");
	/* A change of the uid makes one's own files in /proc root's. */
	need(t, prctl(PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE");
	rc = bstats_info(prog, &info);
	peer_say(t, me, rc);
	peer_say(t, me, rc ? 0 : (int)info.run_cnt);
	peer_say(t, me, rc ? 0 : info.run_time_ns > 0);
	rc = bstats_fdinfo(prog, &other);
	peer_say(t, me, rc);
	peer_say(t, me, rc ? 0 : (int)other.run_cnt);
	peer_say(t, me, !rc && other.run_time_ns == info.run_time_ns);
}

static void unprivileged(struct btest *t)
{
	int prog = with_runs(t, 321);
	struct peer p = peer_start(t, reads, &prog);

	expect_errno(t, 0, peer_hear(t, &p), "info as a user who was given the fd");
	expect_eq(t, 321, peer_hear(t, &p), "run_cnt by info as a user");
	expect_eq(t, 1, peer_hear(t, &p), "run_time_ns above 0 as a user (1 is yes)");
	expect_errno(t, 0, peer_hear(t, &p), "fdinfo as a user who was given the fd");
	expect_eq(t, 321, peer_hear(t, &p), "run_cnt by fdinfo as a user");
	expect_eq(t, 1, peer_hear(t, &p), "run_time_ns by fdinfo as by info, as a user (1 is yes)");
	peer_wait(t, &p);
}

/* An info shorter than the kernel's: what is there is right, what is not is not written. */
static void short_info(struct btest *t)
{
	int prog = with_runs(t, 9);
	size_t end = offsetof(struct bpf_prog_info, run_cnt) + sizeof(__u64);
	struct {
		struct bpf_prog_info info;
		unsigned char guard[64];
	} u;
	__u32 len;

	for (len = 0; len <= sizeof(u.info); len++) {
		__u32 asked = len;

		/* The kernel reads it, and wants 0 where it would follow pointers. */
		memset(&u, 0, sizeof(u));
		memset((unsigned char *)&u + len, 0xa5, sizeof(u) - len);
		need(t, bpf_obj_get_info_by_fd(prog, &u.info, &asked), "a shorter info");
		for (size_t i = len; i < sizeof(u); i++)
			expect_eq(t, 0xa5, ((unsigned char *)&u)[i],
				  "byte %zu behind an info of %u bytes", i, len);
		if (len >= end)
			expect_eq(t, 9, (long long)u.info.run_cnt, "run_cnt in an info of %u bytes",
				  len);
	}
}

/* ---- while the numbers change ---- */

struct runs {
	int prog;
	unsigned int cpu;
};

static void runs_forever(struct btest *t, struct peer *me, void *arg)
{
	const struct runs *r = arg;

	need(t, stay_on_cpu(r->cpu), "staying on a CPU");
	peer_say(t, me, 0);
	for (;;)
		must_run(t, r->prog, 1000);
}

static void monotonic(struct btest *t)
{
	int prog = (int)need(t, bstats_observer(), "a program"), fd = must_open(t);
	struct bstats last = {}, now;
	struct peer p[2];
	long long end;
	int reads_done = 0;

	/* Not on the reader's CPU, if there are others: it would have to wait for its turn. */
	need(t, stay_on_cpu(0), "staying on a CPU");
	for (unsigned int i = 0; i < 2; i++) {
		p[i] = peer_start(t, runs_forever, &(struct runs){.prog = prog, .cpu = i + 1});
		peer_hear(t, &p[i]);
	}
	for (end = now_ns() + 300000000LL; now_ns() < end || reads_done < 100; reads_done++) {
		if (reads_done & 1)
			need(t, bstats_fdinfo(prog, &now), "reading fdinfo");
		else
			now = must_info(t, prog);
		if (now.run_cnt < last.run_cnt)
			btest_failed(t, "a run_cnt that never goes back", "%llu after %llu",
				     now.run_cnt, last.run_cnt);
		if (now.run_time_ns < last.run_time_ns)
			btest_failed(t, "a run_time_ns that never goes back", "%llu after %llu",
				     now.run_time_ns, last.run_time_ns);
		last = now;
	}
	for (int i = 0; i < 2; i++)
		peer_kill(t, &p[i], SIGKILL);
	close(fd);
	btest_note(t, "%d reads of %llu runs", reads_done, last.run_cnt);
}

/* ---- bpftool ---- */

static bool json_number(const char *text, const char *key, unsigned long long *value)
{
	char quoted[64];
	const char *at;

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(text, quoted);
	return at && sscanf(at + strlen(quoted), "%llu", value) == 1;
}

/* What bpftool says of one program, by its id or by a file where it is pinned. */
struct shown {
	const char *path; /* of bpftool */
	const char *by, *which;
	unsigned int uid; /* who asks */
	char text[4096];
};

/* Runs bpftool and returns how much it wrote, or a negative errno. */
static int bpftool(struct shown *b)
{
	int fds[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fds[1], 1);
		if (b->uid && become(b->uid, 0))
			_exit(126);
		execlp(b->path, "bpftool", "-j", "prog", "show", b->by, b->which, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	while (pid > 0 && used < sizeof(b->text) - 1 &&
	       (n = read(fds[0], b->text + used, sizeof(b->text) - 1 - used)) > 0)
		used += (size_t)n;
	b->text[used] = '\0';
	close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	return status ? -EIO : (int)used;
}

static void shows_as_info(struct btest *t, struct shown *b, const struct bstats *info)
{
	const char *path = getenv("BPFTOOL");
	unsigned long long value;
	int rc;

	b->path = path && *path ? path : "bpftool";
	rc = bpftool(b);
	if (rc == -ENOENT)
		btest_skip(t, "needs bpftool (in PATH, or named by BPFTOOL)");
	need(t, rc, "bpftool -j prog show");
	if (!json_number(b->text, "run_cnt", &value))
		btest_failed(t, "a run_cnt in the output of bpftool -j prog show", "%s", b->text);
	expect_eq(t, (long long)info->run_cnt, (long long)value, "run_cnt by bpftool, as by info");
	if (!json_number(b->text, "run_time_ns", &value))
		btest_failed(t, "a run_time_ns in the output of bpftool -j prog show", "%s",
			     b->text);
	expect_eq(t, (long long)info->run_time_ns, (long long)value,
		  "run_time_ns by bpftool, as by info");
}

static void by_bpftool(struct btest *t)
{
	int prog = with_runs(t, 4321);
	struct bstats info = must_info(t, prog);
	struct bpf_prog_info pi = {};
	__u32 len = sizeof(pi);
	char number[16];
	struct shown b = {.by = "id", .which = number};

	need(t, bpf_obj_get_info_by_fd(prog, &pi, &len), "info");
	snprintf(number, sizeof(number), "%u", pi.id);
	shows_as_info(t, &b, &info);
}

/* By its id, a program is for CAP_SYS_ADMIN only. A user sees what is pinned where he may open it;
 * the file system for that is our own. */
static void by_bpftool_as_user(struct btest *t)
{
	static const char pin[] = "/sys/fs/bpf/stats_test";
	struct shown b = {.by = "pinned", .which = pin, .uid = NOBODY};
	int prog = with_runs(t, 4321);
	struct bstats info = must_info(t, prog);

	need(t, unshare(CLONE_NEWNS), "unshare(CLONE_NEWNS)");
	need(t, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "making mounts private");
	need(t, mount("bpf", "/sys/fs/bpf", "bpf", 0, NULL), "mounting bpffs");
	need(t, bpf_obj_pin(prog, pin), "pinning the program");
	need(t, chmod(pin, 0666), "chmod of the pinned program");
	shows_as_info(t, &b, &info);
}

static const char same_rule[] =
	"info, fdinfo and bpftool show the same numbers, the program's, through any fd";
static const char who_rule[] = "whoever has a program's fd may read its statistics";

static const struct btest_case cases[] = {
	{.name = "fdinfo", .rule = same_rule, .run = fdinfo},
	{.name = "every-fd", .rule = same_rule, .run = every_fd},
	{.name = "bpftool", .rule = same_rule, .run = by_bpftool, .tags = "tools"},
	{.name = "unprivileged",
	 .rule = who_rule,
	 .run = unprivileged,
	 .needs = BH_UNPRIVILEGED_INFO,
	 .tags = "privilege"},
	{.name = "bpftool-unprivileged",
	 .rule = who_rule,
	 .run = by_bpftool_as_user,
	 .needs = BH_UNPRIVILEGED_INFO,
	 .tags = "tools,privilege"},
	{.name = "short-info",
	 .rule = "an info shorter than the kernel's gets its fields, and nothing behind them",
	 .run = short_info,
	 .tags = "input"},
	{.name = "monotonic",
	 .rule = "numbers that are read while they change never go back",
	 .run = monotonic,
	 .tags = "smp"},
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
