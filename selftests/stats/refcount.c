// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The reference count behind BPF_ENABLE_STATS: the switch is on exactly while anybody, anywhere,
 * has a stats fd.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "btest.h"

static void one(struct btest *t)
{
	int fd;

	expect_off(t, "before the first fd is opened");
	for (int i = 0; i < 3; i++) {
		fd = must_open(t);
		expect_on(t, "while one fd is open (round %d)", i);
		close(fd);
		expect_off(t, "after that fd is closed (round %d)", i);
	}
}

static void two_lifo(struct btest *t)
{
	int a = must_open(t), b = must_open(t);

	expect_on(t, "with two fds open");
	close(b);
	expect_on(t, "after the second of two fds is closed");
	close(a);
	expect_off(t, "after both are closed");
}

static void two_fifo(struct btest *t)
{
	int a = must_open(t), b = must_open(t);

	close(a);
	expect_on(t, "after the first of two fds is closed");
	close(b);
	expect_off(t, "after both are closed");
}

/* All 24 orders of closing four fds, the switch looked at after each close. */
static void every_order(struct btest *t)
{
	for (int order = 0; order < 24; order++) {
		int fds[4], left[4] = {0, 1, 2, 3}, code = order;

		for (int i = 0; i < 4; i++)
			fds[i] = must_open(t);
		for (int n = 4; n > 0; n--) {
			int pick = code % n, index = left[pick];

			code /= n;
			memmove(left + pick, left + pick + 1, (n - pick - 1) * sizeof(left[0]));
			close(fds[index]);
			if (n > 1)
				expect_on(t, "with %d of 4 fds open (order %d)", n - 1, order);
			else
				expect_off(t, "with all 4 fds closed (order %d)", order);
		}
	}
}

/* As many as the limit on file descriptors lets one process have. */
static void many(struct btest *t)
{
	struct rlimit rl;
	int *fds, count = 0, rc;

	need(t, getrlimit(RLIMIT_NOFILE, &rl), "getrlimit");
	if (rl.rlim_cur > 4096) {
		rl.rlim_cur = 4096;
		need(t, setrlimit(RLIMIT_NOFILE, &rl), "setrlimit");
	}
	fds = calloc(rl.rlim_cur, sizeof(*fds));
	if (!fds)
		btest_broken(t, ENOMEM, "calloc");
	while ((rc = bstats_open()) >= 0)
		fds[count++] = rc;
	expect_errno(t, EMFILE, rc, "opening fd number %d under a limit of %d", count,
		     (int)rl.rlim_cur);
	for (int i = 0; i < count - 1; i++)
		close(fds[i]);
	expect_on(t, "with one fd left of %d", count);
	close(fds[count - 1]);
	expect_off(t, "with %d fds opened and closed", count);
	free(fds);
}

static void dup_shares(struct btest *t)
{
	int a = must_open(t), b = (int)need(t, dup(a), "dup");

	close(a);
	expect_on(t, "after close of an fd that was duplicated");
	close(b);
	expect_off(t, "after close of the duplicate too");
}

static void dup2_replaces(struct btest *t)
{
	int a = must_open(t), b = must_open(t);
	int null = (int)need(t, open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");

	need(t, dup2(null, a), "dup2");
	expect_on(t, "after dup2 over one of two stats fds");
	need(t, dup3(null, b, O_CLOEXEC), "dup3");
	expect_off(t, "after dup2 and dup3 over both stats fds");
	/* dup2 of an fd onto itself neither adds nor drops. */
	a = must_open(t);
	need(t, dup2(a, a), "dup2 onto itself");
	expect_on(t, "after dup2 of a stats fd onto itself");
	b = (int)need(t, fcntl(a, F_DUPFD, 100), "F_DUPFD");
	close(a);
	expect_on(t, "with the copy by F_DUPFD open");
	close(b);
	expect_off(t, "with the copy by F_DUPFD closed");
}

static void close_range_drops(struct btest *t)
{
	int fds[8];

	for (int i = 0; i < 8; i++)
		fds[i] = must_open(t);
	for (int i = 0; i < 8; i++)
		need(t, dup2(fds[i], 200 + i), "dup2");
	for (int i = 0; i < 8; i++)
		close(fds[i]);
	expect_on(t, "with 8 fds moved to 200 and following");
	if (syscall(SYS_close_range, 200U, 207U, 0U))
		btest_skip(t, "needs close_range (5.9): %s", strerror(errno));
	expect_off(t, "after close_range over all stats fds");
}

/* The child has a copy of the same open file. */
static void child_holds(struct btest *t, struct peer *me, void *arg)
{
	peer_ask(t, me, 0);
	close(*(int *)arg);
	peer_ask(t, me, 0);
}

static void fork_shares(struct btest *t)
{
	int fd = must_open(t);
	struct peer p = peer_start(t, child_holds, &fd);

	peer_hear(t, &p);
	close(fd);
	expect_on(t, "while a forked child has the fd that its parent closed");
	peer_ask(t, &p, 0);
	expect_off(t, "after parent and child have closed");
	peer_say(t, &p, 0);
	peer_wait(t, &p);
}

static void fork_parent_keeps(struct btest *t)
{
	int fd = must_open(t);
	struct peer p = peer_start(t, child_holds, &fd);

	peer_hear(t, &p);
	peer_ask(t, &p, 0);
	expect_on(t, "after a forked child closed its copy");
	peer_say(t, &p, 0);
	peer_wait(t, &p);
	expect_on(t, "after that child exited");
	close(fd);
	expect_off(t, "after the parent closed too");
}

static void child_execs(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	exec_pause(t, me->sock);
}

static void cloexec(struct btest *t)
{
	int fd = must_open(t), flags;
	struct peer p;

	flags = (int)need(t, fcntl(fd, F_GETFD), "F_GETFD");
	expect_eq(t, FD_CLOEXEC, flags, "flags of a new stats fd (FD_CLOEXEC is %d)", FD_CLOEXEC);
	p = peer_start(t, child_execs, NULL);
	peer_hear(t, &p);
	close(fd);
	expect_off(t, "while a process that was started by exec lives on");
	peer_say(t, &p, 0);
	peer_wait(t, &p);
}

static void exec_inherits(struct btest *t)
{
	int fd = must_open(t);
	struct peer p;

	need(t, fcntl(fd, F_SETFD, 0), "F_SETFD");
	p = peer_start(t, child_execs, NULL);
	peer_hear(t, &p);
	close(fd);
	expect_on(t, "while an exec'ed process has an fd without FD_CLOEXEC");
	peer_say(t, &p, 0);
	peer_wait(t, &p);
	expect_off(t, "after that process exited");
}

static void child_opens(struct btest *t, struct peer *me, void *arg)
{
	int how = *(int *)arg;

	must_open(t);
	peer_ask(t, me, 0);
	if (how == SIGSEGV) {
		struct rlimit none = {};

		setrlimit(RLIMIT_CORE, &none);
		/* A sanitizer would catch it, and make an exit of it. */
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	/* 0: exit with the fd open */
}

static void holder_ends(struct btest *t, int how, const char *when)
{
	struct peer p = peer_start(t, child_opens, &how);
	int status;

	peer_hear(t, &p);
	expect_on(t, "while another process holds the only fd");
	if (how == SIGKILL) {
		status = peer_kill(t, &p, SIGKILL);
	} else {
		peer_say(t, &p, 0);
		status = peer_wait(t, &p);
	}
	expect_eq(t, how, WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		  "end of the other process");
	expect_off(t, "%s", when);
}

static void holder_exits(struct btest *t)
{
	holder_ends(t, 0, "after the holder exited without closing");
}

static void holder_killed(struct btest *t)
{
	holder_ends(t, SIGKILL, "after SIGKILL of the holder");
}

static void holder_segfaults(struct btest *t)
{
	holder_ends(t, SIGSEGV, "after a segmentation fault of the holder");
}

static void passed(struct btest *t)
{
	int fd = must_open(t), socks[2], got;

	need(t, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, socks), "socketpair");
	need(t, send_fd(socks[0], fd), "sending the fd");
	close(fd);
	expect_on(t, "while the only fd is in flight in a socket");
	got = (int)need(t, recv_fd(socks[1], 0), "receiving the fd");
	expect_on(t, "after it was received");
	close(got);
	expect_off(t, "after the received fd is closed");
}

static void child_receives(struct btest *t, struct peer *me, void *arg)
{
	(void)arg;
	need(t, recv_fd(me->sock, 0), "receiving the fd");
	peer_ask(t, me, 0);
}

static void passed_to_process(struct btest *t)
{
	struct peer p = peer_start(t, child_receives, NULL);
	int fd = must_open(t);

	need(t, send_fd(p.sock, fd), "sending the fd");
	close(fd);
	peer_hear(t, &p);
	expect_on(t, "while another process has the fd that was passed to it");
	peer_kill(t, &p, SIGKILL);
	expect_off(t, "after that process was killed");
}

static void lost_in_queue(struct btest *t)
{
	int fd = must_open(t), socks[2];

	need(t, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, socks), "socketpair");
	need(t, send_fd(socks[0], fd), "sending the fd");
	close(fd);
	expect_on(t, "while the only fd is in a socket's queue");
	close(socks[1]);
	close(socks[0]);
	expect_off_soon(t, "after the socket was closed with the fd in its queue");
}

/* Two sockets, each in the other's queue together with the fd: only the kernel's garbage collector
 * can free that. */
static void lost_in_cycle(struct btest *t)
{
	int fd = must_open(t), socks[2];

	need(t, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, socks), "socketpair");
	need(t, send_fd(socks[0], fd), "sending the fd");
	need(t, send_fd(socks[0], socks[1]), "sending a socket to itself");
	need(t, send_fd(socks[1], socks[0]), "sending the other socket to itself");
	close(fd);
	close(socks[0]);
	close(socks[1]);
	/* The collector runs when a socket is closed. */
	for (int i = 0; i < 100 && bstats_is_on(t->observer) > 0; i++) {
		close((int)need(t, socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
		sleep_ms(10);
	}
	expect_off_soon(t, "after sockets that hold each other and the fd were closed");
}

/* A receiver that has no room for the fd loses it; the reference must go with it. */
static void lost_at_receiver(struct btest *t)
{
	int fd = must_open(t), socks[2], top;
	struct rlimit rl;

	need(t, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, socks), "socketpair");
	need(t, send_fd(socks[0], fd), "sending the fd");
	close(fd);
	/* All numbers below the limit are taken. */
	need(t, getrlimit(RLIMIT_NOFILE, &rl), "getrlimit");
	rl.rlim_cur = 64;
	need(t, setrlimit(RLIMIT_NOFILE, &rl), "setrlimit");
	do {
		top = dup(socks[0]);
	} while (top >= 0);
	expect_on(t, "while the only fd is in flight");
	expect_errno(t, EMFILE, recv_fd(socks[1], 0), "receiving an fd with no number free");
	expect_off(t, "after the fd could not be received");
}

static void peeked(struct btest *t)
{
	int fd = must_open(t), socks[2], copy, got;

	need(t, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, socks), "socketpair");
	need(t, send_fd(socks[0], fd), "sending the fd");
	close(fd);
	copy = (int)need(t, recv_fd(socks[1], MSG_PEEK), "peeking at the fd");
	got = (int)need(t, recv_fd(socks[1], 0), "receiving the fd");
	close(got);
	expect_on(t, "while the copy that MSG_PEEK made is open");
	close(copy);
	expect_off(t, "after that copy is closed too");
}

static void getfd(struct btest *t)
{
	int how = 0, pidfd, copy, number;
	struct peer p = peer_start(t, child_opens, &how);

	peer_hear(t, &p);
	pidfd = (int)need(t, syscall(SYS_pidfd_open, p.pid, 0), "pidfd_open");
	for (number = 3, copy = -1; number < 64 && copy < 0; number++) {
		char path[64], target[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", p.pid, number);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		if (!strcmp(target, "anon_inode:bpf-stats"))
			copy = (int)need(t, syscall(SYS_pidfd_getfd, pidfd, number, 0),
					 "pidfd_getfd");
	}
	if (copy < 0)
		btest_failed(t, "a link anon_inode:bpf-stats in /proc/PID/fd of the holder",
			     "no such link");
	peer_kill(t, &p, SIGKILL);
	expect_on(t, "while a copy by pidfd_getfd is open and the holder is killed");
	close(copy);
	expect_off(t, "after that copy is closed");
}

struct thread {
	struct btest *t;
	pthread_barrier_t *barrier;
	int fd;
};

static void *thread_opens(void *arg)
{
	struct thread *th = arg;

	th->fd = bstats_open();
	pthread_barrier_wait(th->barrier);
	pthread_barrier_wait(th->barrier);
	return NULL;
}

/* The files belong to the process: the end of the thread that opened one changes nothing. */
static void threads(struct btest *t)
{
	pthread_barrier_t barrier;
	struct thread th[8];
	pthread_t id[8];

	need(t, -pthread_barrier_init(&barrier, NULL, 9), "pthread_barrier_init");
	for (int i = 0; i < 8; i++) {
		th[i] = (struct thread){.t = t, .barrier = &barrier};
		need(t, -pthread_create(&id[i], NULL, thread_opens, &th[i]), "pthread_create");
	}
	pthread_barrier_wait(&barrier);
	expect_on(t, "while 8 threads have opened an fd each");
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 8; i++)
		pthread_join(id[i], NULL);
	pthread_barrier_destroy(&barrier);
	expect_on(t, "after the threads that opened the fds ended");
	for (int i = 0; i < 8; i++) {
		expect_errno(t, 0, th[i].fd, "BPF_ENABLE_STATS in thread %d", i);
		expect_on(t, "with %d of 8 fds open", 8 - i);
		close(th[i].fd);
	}
	expect_off(t, "after all 8 fds are closed");
}

static void *thread_churns(void *arg)
{
	struct thread *th = arg;

	pthread_barrier_wait(th->barrier);
	for (int i = 0; i < 200; i++) {
		int fd = bstats_open();

		if (fd < 0) {
			th->fd = fd;
			break;
		}
		close(fd);
	}
	return NULL;
}

static void concurrent(struct btest *t)
{
	pthread_barrier_t barrier;
	struct thread th[8];
	pthread_t id[8];
	int held;

	need(t, -pthread_barrier_init(&barrier, NULL, 9), "pthread_barrier_init");
	held = must_open(t);
	for (int i = 0; i < 8; i++) {
		th[i] = (struct thread){.t = t, .barrier = &barrier};
		need(t, -pthread_create(&id[i], NULL, thread_churns, &th[i]), "pthread_create");
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 100; i++)
		expect_on(t, "while one fd is held and 8 threads open and close others");
	for (int i = 0; i < 8; i++)
		pthread_join(id[i], NULL);
	pthread_barrier_destroy(&barrier);
	for (int i = 0; i < 8; i++)
		expect_errno(t, 0, th[i].fd, "BPF_ENABLE_STATS in thread %d", i);
	expect_on(t, "with the one held fd left");
	close(held);
	expect_off(t, "after that is closed too");
}

/* The table of files is shared with CLONE_FILES and copied by unshare(CLONE_FILES). */
static void unshared_files(struct btest *t)
{
	int fd = must_open(t);
	struct peer p = peer_start(t, child_holds, &fd);

	peer_hear(t, &p);
	need(t, unshare(CLONE_FILES), "unshare(CLONE_FILES)");
	close(fd);
	expect_on(t, "while the child has its copy");
	peer_ask(t, &p, 0);
	expect_off(t, "after the child closed it");
	peer_say(t, &p, 0);
	peer_wait(t, &p);
}

static void emfile(struct btest *t)
{
	struct rlimit rl;
	int fd;

	need(t, getrlimit(RLIMIT_NOFILE, &rl), "getrlimit");
	fd = (int)need(t, open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null");
	/* The limit is on the number, and all below the limit are taken. */
	rl.rlim_cur = (rlim_t)fd + 1;
	need(t, setrlimit(RLIMIT_NOFILE, &rl), "setrlimit");
	while (dup(fd) >= 0)
		;
	for (int i = 0; i < 100; i++)
		expect_errno(t, EMFILE, bstats_open(), "BPF_ENABLE_STATS with no number free");
	expect_off(t, "after 100 calls that failed with EMFILE");
	/* And a failed call does not drop what another one holds. */
	close(fd);
	fd = must_open(t);
	for (int i = 0; i < 100; i++)
		expect_errno(t, EMFILE, bstats_open(), "BPF_ENABLE_STATS with no number free");
	expect_on(t, "with one fd open, after 100 more calls that failed");
	close(fd);
	expect_off(t, "after that fd is closed");
}

static int read_number(const char *path, long long *value)
{
	FILE *f = fopen(path, "re");
	int rc;

	if (!f)
		return -errno;
	rc = fscanf(f, "%lld", value) == 1 ? 0 : -EPROTO;
	fclose(f);
	return rc;
}

/* The system's limit does not hold for CAP_SYS_ADMIN, which BPF_ENABLE_STATS wants: root opens
 * files beyond it. What is left to check is that being there changes nothing. */
static void enfile(struct btest *t)
{
	long long max, used;
	char text[32];
	int fd, rc;

	need(t, read_number("/proc/sys/fs/file-max", &max), "/proc/sys/fs/file-max");
	need(t, read_number("/proc/sys/fs/file-nr", &used), "/proc/sys/fs/file-nr");
	/* Ends with this call: the restoring child survives even our end by SIGKILL. */
	int fds[2];

	need(t, pipe2(fds, O_CLOEXEC), "pipe2");
	if (!need(t, fork(), "fork")) {
		char byte;

		close(fds[1]);
		signal(SIGTERM, SIG_IGN);
		setsid();
		while (read(fds[0], &byte, 1) < 0 && errno == EINTR)
			;
		snprintf(text, sizeof(text), "%lld", max);
		_exit(put_file("/proc/sys/fs/file-max", text) ? 1 : 0);
	}
	close(fds[0]);
	rc = put_file("/proc/sys/fs/file-max", "16");
	if (rc) {
		close(fds[1]);
		wait(NULL);
		btest_skip(t, "needs to lower fs.file-max: %s", strerror(-rc));
	}
	fd = bstats_open();
	rc = fd < 0 ? fd : 0;
	/* With the limit restored, everything else can open files again. */
	if (fd >= 0) {
		int on = bstats_is_on(t->observer);

		close(fd);
		if (on != 1)
			rc = -EPROTO;
	}
	close(fds[1]);
	wait(NULL);
	if (rc && rc != -ENFILE)
		expect_errno(t, 0, rc, "BPF_ENABLE_STATS beyond fs.file-max");
	expect_off(t, "after BPF_ENABLE_STATS at the system's limit of files (%s)",
		   rc ? "ENFILE" : "allowed for CAP_SYS_ADMIN");
}

/* A file that epoll cannot watch must not keep a reference. */
static void epoll_refused(struct btest *t)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd = must_open(t), ep = (int)need(t, epoll_create1(EPOLL_CLOEXEC), "epoll_create1");

	expect_errno(t, EPERM, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0,
		     "EPOLL_CTL_ADD of a stats fd");
	close(fd);
	expect_off(t, "after the fd is closed, with the epoll fd open");
}

/* /proc/PID/fd is a link to an inode that all anonymous files share; it cannot be opened. */
static void proc_link(struct btest *t)
{
	int fd = must_open(t);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	expect_errno(t, ENXIO, open(path, O_RDONLY | O_CLOEXEC) < 0 ? -errno : 0, "opening %s",
		     path);
	close(fd);
	expect_off(t, "after a refused open through /proc, and close");
}

static const char on_while_open[] =
	"the switch is on from the first open stats fd to the last close, whoever holds it";
static const char last_close[] =
	"one BPF_ENABLE_STATS is one reference, dropped at the last close of the open file";
static const char gone_is_off[] =
	"when every holder is gone, however it went, the switch is off";
static const char no_leak[] = "a BPF_ENABLE_STATS that fails leaves the reference count as it was";

static const struct btest_case cases[] = {
	{ .name = "one", .rule = on_while_open, .run = one },
	{ .name = "two-lifo", .rule = on_while_open, .run = two_lifo },
	{ .name = "two-fifo", .rule = on_while_open, .run = two_fifo },
	{ .name = "every-order", .rule = on_while_open, .run = every_order },
	{ .name = "many", .rule = on_while_open, .run = many },
	{ .name = "dup", .rule = last_close, .run = dup_shares },
	{ .name = "dup2", .rule = last_close, .run = dup2_replaces },
	{ .name = "close-range", .rule = last_close, .run = close_range_drops },
	{ .name = "fork-child-keeps", .rule = last_close, .run = fork_shares, .tags = "process" },
	{ .name = "fork-parent-keeps", .rule = last_close, .run = fork_parent_keeps,
	  .tags = "process" },
	{ .name = "cloexec", .rule = "a stats fd is O_CLOEXEC: exec drops the reference",
	  .run = cloexec, .tags = "process" },
	{ .name = "exec-inherits", .rule = last_close, .run = exec_inherits, .tags = "process" },
	{ .name = "unshare-files", .rule = last_close, .run = unshared_files, .tags = "process" },
	{ .name = "holder-exits", .rule = gone_is_off, .run = holder_exits, .tags = "process" },
	{ .name = "holder-killed", .rule = gone_is_off, .run = holder_killed, .tags = "process" },
	{ .name = "holder-segfaults", .rule = gone_is_off, .run = holder_segfaults,
	  .tags = "process" },
	{ .name = "passed", .rule = last_close, .run = passed, .tags = "passing" },
	{ .name = "passed-to-process", .rule = last_close, .run = passed_to_process,
	  .tags = "passing,process" },
	{ .name = "lost-in-queue", .rule = gone_is_off, .run = lost_in_queue, .tags = "passing" },
	{ .name = "lost-in-cycle", .rule = gone_is_off, .run = lost_in_cycle, .tags = "passing" },
	{ .name = "lost-at-receiver", .rule = gone_is_off, .run = lost_at_receiver,
	  .tags = "passing" },
	{ .name = "peeked", .rule = last_close, .run = peeked, .tags = "passing" },
	{ .name = "pidfd-getfd", .rule = last_close, .run = getfd, .needs = BH_PIDFD_GETFD,
	  .tags = "passing,process" },
	{ .name = "threads", .rule = last_close, .run = threads, .tags = "threads" },
	{ .name = "concurrent", .rule = on_while_open, .run = concurrent, .tags = "threads" },
	{ .name = "emfile", .rule = no_leak, .run = emfile },
	{ .name = "enfile", .rule = no_leak, .run = enfile },
	{ .name = "epoll", .rule = last_close, .run = epoll_refused },
	{ .name = "proc-link", .rule = last_close, .run = proc_link },
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
