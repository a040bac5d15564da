// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who holds the switch, as far as /proc shows it, and whether it is on, which is more. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "btest.h"
#include "ctx.h"
#include "forbid.h"
#include "holders.h"
#include "stats_switch.h"
#include "unit.h"

static struct holders look(struct btest *t)
{
	struct errmsg err = {};
	struct holders h;

	if (holders__read(&h, "/proc", &err))
		btest_failed(t, "the holders can be read", "%s", err.text);
	return h;
}

/* What is found, and that it is on or not by the command's own observation. */
static struct holders expect_holders(struct btest *t, size_t n, unsigned fds, int files, bool on,
				     const char *when)
{
	struct holders h = look(t);
	struct errmsg err = {};
	bool seen;

	expect_eq(t, n, h.n, "holders %s", when);
	expect_eq(t, fds, h.fds, "stats fds %s", when);
	/* kcmp(2) is not in every kernel, but its answer is one. */
	if (h.files >= 0)
		expect_eq(t, files, h.files, "open files %s", when);
	if (stats_switch__observe(&seen, &err))
		btest_failed(t, "the switch can be observed", "%s", err.text);
	expect_eq(t, on, seen, "the switch is on %s", when);
	if (on)
		expect_on(t, "%s", when);
	else
		expect_off(t, "%s", when);
	return h;
}

/* The only holder is process @pid, by the name @comm. */
static void expect_holder(struct btest *t, const struct holders *h, size_t i, pid_t pid,
			  const char *comm)
{
	if (i >= h->n || h->v[i].process.pid != pid)
		btest_failed(t, "the process is a holder", "there are %zu, the %zuth is pid %d",
			     h->n, i, i < h->n ? h->v[i].process.pid : 0);
	if (strcmp(h->v[i].process.comm, comm))
		btest_failed(t, "its name", "'%s' in place of '%s'", h->v[i].process.comm, comm);
	if (!h->v[i].process.started_ns)
		btest_failed(t, "when it was started", "it is not known");
}

static void nobody(struct btest *t)
{
	expect_holders(t, 0, 0, 0, false, "when nobody holds it");
}

/* Looking is not holding, however often. */
static void observing(struct btest *t)
{
	struct errmsg err = {};
	bool on;

	/* Whoever opens a stats fd ends here. */
	need(t, forbid_bpf(BPF_ENABLE_STATS, 0), "seccomp");
	for (int i = 0; i < 100; i++) {
		need(t, stats_switch__observe(&on, &err), "observe");
		expect_eq(t, false, on, "the switch is on");
	}
	expect_holders(t, 0, 0, 0, false, "after it was looked at");
}

static void fds(struct btest *t)
{
	struct holders h;
	int fd[3];

	prctl(PR_SET_NAME, "a) (b\n\x1b[2J");
	for (int i = 0; i < 3; i++)
		fd[i] = must_open(t);
	h = expect_holders(t, 1, 3, 3, true, "with three fds");
	expect_holder(t, &h, 0, getpid(), "a) (b\n\x1b[2J");
	close(fd[0]);
	expect_holders(t, 1, 2, 2, true, "with two of them");
	need(t, dup(fd[1]), "dup");
	need(t, dup(fd[1]), "dup");
	expect_holders(t, 1, 4, 2, true, "with two copies more of one");
}

static void sysctl(struct btest *t)
{
	int value;

	must_set(t, 1);
	expect_holders(t, 0, 0, 0, true, "by the sysctl only");
	need(t, stats_switch__sysctl(NULL, &value), "read the sysctl");
	expect_eq(t, 1, value, "the sysctl");
	must_open(t);
	expect_holders(t, 1, 1, 1, true, "by the sysctl and an fd");
	must_set(t, 0);
	need(t, stats_switch__sysctl(NULL, &value), "read the sysctl");
	expect_eq(t, 0, value, "the sysctl");
	expect_holders(t, 1, 1, 1, true, "by an fd");
}

static void keep(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "peer");
	peer_say(t, me, 0);
	peer_hear(t, me);
}

static void forked(struct btest *t)
{
	struct holders h;
	struct peer p;
	int fd;

	fd = must_open(t);
	p = peer_start(t, keep, NULL);
	peer_hear(t, &p);
	h = expect_holders(t, 2, 2, 1, true, "after a fork");
	expect_holder(t, &h, h.v[0].process.pid == p.pid ? 0 : 1, p.pid, "peer");
	close(fd);
	h = expect_holders(t, 1, 1, 1, true, "with the child only");
	expect_holder(t, &h, 0, p.pid, "peer");
	peer_kill(t, &p, SIGKILL);
	expect_off_soon(t, "after the child was killed");
	expect_holders(t, 0, 0, 0, false, "after the child was killed");
}

static void own(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	must_open(t);
	peer_say(t, me, 0);
	peer_hear(t, me);
}

static void two(struct btest *t)
{
	struct peer a, b;

	a = peer_start(t, own, NULL);
	peer_hear(t, &a);
	b = peer_start(t, own, NULL);
	peer_hear(t, &b);
	expect_holders(t, 2, 2, 2, true, "by two processes");
	peer_kill(t, &a, SIGKILL);
	expect_holders(t, 1, 1, 1, true, "after one of them was killed");
	peer_kill(t, &b, SIGTERM);
	expect_off_soon(t, "after both were killed");
}

static void take(struct btest *t, struct peer *me, void *arg)
{
	int *sock = arg;

	peer_hear(t, me);
	need(t, recv_fd(*sock, 0), "receive the fd");
	peer_say(t, me, 0);
	peer_hear(t, me);
}

static void passed(struct btest *t)
{
	struct holders h;
	struct peer p;
	int sock[2], fd;

	need(t, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), "socketpair");
	p = peer_start(t, take, &sock[1]);
	fd = must_open(t);
	need(t, send_fd(sock[0], fd), "send the fd");
	close(fd);
	/* It is in no process now. */
	expect_holders(t, 0, 0, 0, true, "by an fd in flight");
	peer_ask(t, &p, 0);
	h = expect_holders(t, 1, 1, 1, true, "by the process that received it");
	expect_holder(t, &h, 0, p.pid, "holders");
	peer_say(t, &p, 0);
	peer_wait(t, &p);
	expect_off_soon(t, "after its end");
}

static void *opens_alone(void *arg)
{
	struct btest *t = arg;

	/* A table of its own, of which the first thread has nothing. */
	need(t, unshare(CLONE_FILES), "unshare the table of fds");
	must_open(t);
	raise(SIGSTOP); /* of the whole process: its parent looks meanwhile */
	return NULL;
}

static void alone(struct btest *t, struct peer *me, void *arg)
{
	pthread_t thread;

	(void)me;
	(void)arg;
	need(t, -pthread_create(&thread, NULL, opens_alone, t), "start a thread");
	pthread_join(thread, NULL);
}

#define TABLES 40

struct tables {
	struct btest *t;
	pthread_barrier_t ready;
};

static void *opens_one_of_many(void *arg)
{
	struct tables *tables = arg;

	need(tables->t, unshare(CLONE_FILES), "unshare the table of fds");
	must_open(tables->t);
	if (pthread_barrier_wait(&tables->ready) == PTHREAD_BARRIER_SERIAL_THREAD)
		raise(SIGSTOP);
	while (pause())
		;
	return NULL;
}

static void many_alone(struct btest *t, struct peer *me, void *arg)
{
	struct tables tables = {.t = t};
	pthread_t thread;

	(void)me;
	(void)arg;
	need(t, -pthread_barrier_init(&tables.ready, NULL, TABLES), "make a barrier");
	for (int i = 0; i < TABLES; i++)
		need(t, -pthread_create(&thread, NULL, opens_one_of_many, &tables),
		     "start a thread");
	pthread_join(thread, NULL);
}

static void *opens_shared(void *arg)
{
	must_open(arg);
	/* Until the first thread has ended. */
	for (int i = 0; i < 3000; i++) {
		struct process p;

		if (!process__read_stat(&p, "/proc", getpid()) && p.first_ended)
			break;
		usleep(10000);
	}
	raise(SIGSTOP);
	return NULL;
}

static void first_ends(struct btest *t, struct peer *me, void *arg)
{
	pthread_t thread;

	(void)me;
	(void)arg;
	need(t, -pthread_create(&thread, NULL, opens_shared, t), "start a thread");
	pthread_exit(NULL);
}

static void expect_stopped(struct btest *t, pid_t pid)
{
	siginfo_t info;

	need(t, waitid(P_PID, pid, &info, WSTOPPED | WEXITED | WNOWAIT), "wait for the process");
	if (info.si_code != CLD_STOPPED)
		btest_failed(t, "the process holds", "it has ended");
}

static void threads(struct btest *t)
{
	struct holders h;
	struct peer p;

	if (syscall(SYS_kcmp, getpid(), getpid(), 2 /* KCMP_FILES */, 0, 0))
		btest_skip(t, "no kcmp (%s)", strerror(errno));
	p = peer_start(t, alone, NULL);
	expect_stopped(t, p.pid);
	h = expect_holders(t, 1, 1, 1, true, "by a thread with fds of its own");
	expect_holder(t, &h, 0, p.pid, "holders");
	peer_kill(t, &p, SIGKILL);
	expect_off_soon(t, "after it was killed");
	p = peer_start(t, many_alone, NULL);
	expect_stopped(t, p.pid);
	h = expect_holders(t, 1, TABLES, TABLES, true, "by threads, each with fds of its own");
	expect_holder(t, &h, 0, p.pid, "holders");
	peer_kill(t, &p, SIGKILL);
	expect_off_soon(t, "after it was killed");
	p = peer_start(t, first_ends, NULL);
	expect_stopped(t, p.pid);
	h = expect_holders(t, 1, 1, 1, true, "by a process whose first thread has ended");
	expect_holder(t, &h, 0, p.pid, "holders");
	peer_kill(t, &p, SIGKILL);
	expect_off_soon(t, "after it was killed");
}

/* Where kcmp(2) is refused, as to those who may not look into a process, nothing is made up. */
static void no_kcmp(struct btest *t)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = {.len = ARRAY_SIZE(code), .filter = code};
	struct holders h;

	must_open(t);
	must_open(t);
	need(t, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges");
	need(t, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0), "seccomp");
	h = look(t);
	expect_eq(t, 1, h.n, "holders");
	expect_eq(t, 2, h.fds, "fds");
	expect_eq(t, -1, h.files, "open files");
}

static double seconds_after(const struct timespec *a, const struct timespec *b)
{
	return (b->tv_sec - a->tv_sec) + (b->tv_nsec - a->tv_nsec) / 1e9;
}

/* What /proc says of the link's times is when somebody first looked at it, others who look for
 * holders included, or at the one that had its number before. So they are not shown: this would
 * fail if a kernel had better ones. */
static void since_when(struct btest *t)
{
	struct timespec opened;
	double age = 0, file_age;
	struct stat st;
	char path[64];
	int fd;

	for (int tries = 0; tries < 10 && fabs(age) < 0.5; tries++) {
		fd = must_open(t);
		clock_gettime(CLOCK_REALTIME, &opened);
		sleep_ms(1500);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		need(t, lstat(path, &st), "look at the link");
		age = seconds_after(&opened, &st.st_mtim);
		/* And the file behind it has none of its own. */
		need(t, fstat(fd, &st), "look at the file");
		file_age = seconds_after(&opened, &st.st_mtim);
		if (fabs(file_age) < 0.5)
			btest_failed(t, "the file has no time of its own",
				     "its time is that at which it was opened");
		close(fd);
	}
	if (fabs(age) < 0.5)
		btest_failed(t, "the link is as old as the first look at it",
			     "it was made %.3f s after the fd was opened", age);
}

static void come_and_go(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	peer_say(t, me, 0);
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			bstats_open();
			_exit(0);
		}
		need(t, pid, "fork");
		need(t, waitpid(pid, NULL, 0), "wait");
	}
}

/* Holders that vanish while they are looked at are seen or not, and are no error. */
static void vanishing(struct btest *t)
{
	struct peer p = peer_start(t, come_and_go, NULL);

	peer_hear(t, &p);
	for (int i = 0; i < 200; i++) {
		struct holders h = look(t);

		for (size_t k = 0; k < h.n; k++)
			if (strcmp(h.v[k].process.comm, "holders") || h.v[k].fds != 1)
				btest_failed(t, "only whole holders are seen", "'%s' with %u fds",
					     h.v[k].process.comm, h.v[k].fds);
		holders__close(&h);
	}
	peer_kill(t, &p, SIGKILL);
	expect_off_soon(t, "after its end");
}

/* Who may run a program, but not hold the switch, sees that somebody else does. */
static void foreign(struct btest *t, struct peer *me, void *arg)
{
	struct stats_switch s = {};
	struct errmsg err = {};

	(void)arg;
	need(t, caps_keep(CAP_BIT(39 /* CAP_BPF */)), "drop capabilities");
	/* Nobody holds it. */
	expect_eq(t, -EPERM, stats_switch__open(&s, &err), "hold");
	expect_eq(t, false, s.held, "held");
	peer_ask(t, me, 0);
	/* Somebody does, by an fd, of which the sysctl says nothing. */
	need(t, stats_switch__open(&s, &err), "hold beside somebody");
	expect_eq(t, STATS_SWITCH_FOREIGN, s.how, "how it is held");
	if (stats_switch__close(&s))
		btest_failed(t, "there is nothing to say at its end", "there is");
	expect_on(t, "after that");
	peer_say(t, me, 0);
}

static void beside(struct btest *t)
{
	struct peer p = peer_start(t, foreign, NULL);
	int fd;

	peer_hear(t, &p);
	fd = must_open(t);
	peer_ask(t, &p, 0);
	peer_wait(t, &p);
	expect_on(t, "after it has looked");
	close(fd);
	expect_off(t, "at the end");
}

/* By an fd, without a look at the sysctl; it is gone with the process. */
static void held(struct btest *t)
{
	struct stats_switch s = {.proc_root = "/nonexistent"};
	struct errmsg err = {};

	/* The lowest that is free would be one of the standard streams. */
	close(0);
	need(t, stats_switch__open(&s, &err), "hold");
	expect_eq(t, STATS_SWITCH_FD, s.how, "how it is held");
	expect_range(t, 3, 1000, s.fd, "the number of the fd");
	expect_eq(t, FD_CLOEXEC, fcntl(s.fd, F_GETFD), "flags of the fd");
	expect_holders(t, 1, 1, 1, true, "while it is held");
	if (stats_switch__close(&s))
		btest_failed(t, "there is nothing to say at its end", "there is");
	expect_holders(t, 0, 0, 0, false, "after it was let go");
}

/* What is observed counts. A holder that is there all the same is said to be, after some tries. */
static void contradiction(struct btest *t)
{
	char root[] = "/tmp/holders-XXXXXX", *text = NULL;
	struct errmsg err = {};
	struct ctx ctx = {.msg = stderr, .err = &err, .proc_root = root};
	size_t size;
	int status;

	if (!mkdtemp(root))
		btest_broken(t, -errno, "mkdtemp");
	unit_write(root, "sys/kernel/bpf_stats_enabled", "1");
	ctx.out = open_memstream(&text, &size);
	if (!ctx.out)
		btest_broken(t, -errno, "open_memstream");
	status = cmd_stats_show(&ctx);
	fclose(ctx.out);
	unit_tree_remove(root);
	expect_eq(t, 0, status, "exit status");
	if (strncmp(text, "off, though it is held by the sysctl: it is being switched at this", 66))
		btest_failed(t, "both are said", "%s", text);
	free(text);
}

#define MANY 300

static void many(struct btest *t)
{
	struct holders h;
	int ready[2];
	char c;

	need(t, pipe2(ready, O_CLOEXEC), "pipe");
	must_open(t);
	for (int i = 0; i < MANY; i++) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			/* Every third has one of its own besides. */
			if (i % 3 == 0 && bstats_open() < 0)
				_exit(1);
			if (write(ready[1], "", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		need(t, pid, "fork");
	}
	for (int i = 0; i < MANY; i++)
		need(t, read(ready[0], &c, 1), "wait for the processes");
	h = expect_holders(t, MANY + 1, MANY + 1 + MANY / 3, 1 + MANY / 3, true,
			   "by many processes");
	for (size_t i = 1; i < h.n; i++)
		if (h.v[i - 1].process.pid >= h.v[i].process.pid)
			btest_failed(t, "holders are in the order of their ids", "they are not");
}

static const struct btest_case cases[] = {
	{.name = "nobody", .rule = "nobody holds it, and it is off", .run = nobody},
	{.name = "observing", .rule = "to observe is not to hold", .run = observing},
	{.name = "fds", .rule = "each fd of a process is found, and which are one", .run = fds},
	{.name = "sysctl", .rule = "the sysctl is no process", .run = sysctl},
	{.name = "forked", .rule = "a child that has inherited an fd is a holder", .run = forked},
	{.name = "two", .rule = "each of two processes is found, until it ends", .run = two},
	{.name = "passed", .rule = "an fd in flight is in no process, but on", .run = passed},
	{.name = "threads", .rule = "fds of any thread are the process's", .run = threads},
	{.name = "no-kcmp", .rule = "without kcmp(2) nobody knows which are one", .run = no_kcmp},
	{.name = "since-when", .rule = "links in /proc do not tell since when", .run = since_when},
	{.name = "vanishing",
	 .rule = "holders may vanish while they are looked at",
	 .run = vanishing,
	 .timeout_s = 120},
	{.name = "beside", .rule = "who may not hold sees that others do", .run = beside},
	{.name = "held", .rule = "what is held is an fd, and let go", .run = held},
	{.name = "contradiction", .rule = "what is observed counts", .run = contradiction},
	{.name = "many", .rule = "all of many are found", .run = many, .timeout_s = 120},
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
