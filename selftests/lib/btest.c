// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/capability.h>
#include <bpf/libbpf.h>

#include "btest.h"
#include "ktap.h"

#define RESTORE_HINT "sysctl -w kernel.bpf_stats_enabled=0"
#define PAUSE_OPTION "--pause"
#define SLOW_NS	     1000000000LL /* a case that takes longer says how long */

/* How a case's process says what happened; the first message counts. */
#define SAY_FAIL 'F'
#define SAY_SKIP 'S'
#define SAY_MAX	 4000 /* under PIPE_BUF, so that a message is whole */

/* ---- small things ---- */

const char *kernel_release(char *buf, size_t size)
{
	struct utsname u;

	if (uname(&u))
		snprintf(buf, size, "unknown");
	else
		snprintf(buf, size, "%s %s", u.release, u.machine);
	return buf;
}

long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

void sleep_ms(unsigned int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

int stay_on_cpu(unsigned int nth)
{
	cpu_set_t allowed, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	nth %= (unsigned int)CPU_COUNT(&allowed);
	for (cpu = 0; !CPU_ISSET(cpu, &allowed) || nth--; cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) ? -errno : cpu;
}

/* Time of a loop of known length in this process, in ns. */
static long long loop_ns(unsigned long rounds)
{
	long long began = now_ns();

	for (unsigned long i = rounds; i; i--)
		__asm__ volatile("" : "+r"(i));
	return now_ns() - began;
}

/* Does time pass by instructions here? The same loop takes the same time again and again, which no
 * real machine manages to the nanosecond. The statistics have no part in this. */
bool time_is_exact(void)
{
	int equal = 0;

	for (int i = 0; i < 10; i++) {
		long long once = loop_ns(2000), twice = loop_ns(4000);
		long long again = loop_ns(4000) - loop_ns(2000) - (twice - once);

		/* One round is two or three instructions. */
		equal += again >= -2 && again <= 2 && twice - once >= 3998 && twice - once <= 8002;
	}
	return equal >= 7;
}

int put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = errno;
	ssize_t n;

	if (fd < 0)
		return -err;
	n = write(fd, text, strlen(text));
	err = errno;
	close(fd);
	return n < 0 ? -err : 0;
}

/* ---- the ways out of a case ---- */

static _Noreturn void say_and_exit(struct btest *t, char kind, int status, const char *text)
{
	char buf[SAY_MAX];
	int n = snprintf(buf, sizeof(buf), "%c%s", kind, text);
	size_t len = n < (int)sizeof(buf) ? (size_t)n + 1 : sizeof(buf);

	/* The runner sees a case that ended without a message as broken; no more can be done. */
	while (write(t->result_fd, buf, len) < 0 && errno == EINTR)
		;
	_exit(status);
}

/* Who else is holding the switch may explain what was seen. */
static void append_foreigners(char *text, size_t size)
{
	char who[1024];
	size_t used = strlen(text);

	if (bstats_holders(0, who, sizeof(who)) > 0 && used < size)
		snprintf(text + used, size - used, "; stats fds are held by %s", who);
}

_Noreturn void btest_failed(struct btest *t, const char *expected, const char *seen_fmt, ...)
{
	char seen[1500], release[256], text[SAY_MAX - 2];
	va_list ap;

	va_start(ap, seen_fmt);
	vsnprintf(seen, sizeof(seen), seen_fmt, ap);
	va_end(ap);
	snprintf(text, sizeof(text), "rule: %s\nexpected: %s\nseen: %s\nkernel: %s", t->tc->rule,
		 expected, seen, kernel_release(release, sizeof(release)));
	say_and_exit(t, SAY_FAIL, KTAP_EXIT_FAIL, text);
}

_Noreturn void btest_skip(struct btest *t, const char *fmt, ...)
{
	char text[1500];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say_and_exit(t, SAY_SKIP, KTAP_EXIT_SKIP, text);
}

_Noreturn void btest_broken(struct btest *t, int err, const char *what)
{
	char text[1024], release[256];

	snprintf(text, sizeof(text),
		 "rule: %s\nexpected: to be able to test it\nseen: %s: %s\nkernel: %s", t->tc->rule,
		 what, strerror(err < 0 ? -err : err), kernel_release(release, sizeof(release)));
	say_and_exit(t, SAY_FAIL, KTAP_EXIT_FAIL, text);
}

void btest_note(struct btest *t, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ktap_note("%s: %s", t->tc->name, text);
}

long need(struct btest *t, long rc, const char *what)
{
	if (rc < 0)
		btest_broken(t, rc == -1 ? errno : (int)rc, what);
	return rc;
}

/* ---- expectations ---- */

static void expect_switch(struct btest *t, int expected, const char *when)
{
	int on = bstats_is_on(t->observer);
	char text[512];

	if (on == expected)
		return;
	snprintf(text, sizeof(text), "the switch is %s %s", expected ? "on" : "off", when);
	if (on < 0)
		btest_broken(t, on, "a run of the observer program");
	btest_failed(t, text, "it is %s (a run of a program %s counted); the sysctl reads %d",
		     on ? "on" : "off", on ? "was" : "was not", bstats_sysctl_read());
}

void expect_on(struct btest *t, const char *when, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, when);
	vsnprintf(text, sizeof(text), when, ap);
	va_end(ap);
	expect_switch(t, 1, text);
}

void expect_off(struct btest *t, const char *when, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, when);
	vsnprintf(text, sizeof(text), when, ap);
	va_end(ap);
	expect_switch(t, 0, text);
}

static int off_within(int observer, unsigned int ms)
{
	long long end = now_ns() + ms * 1000000LL;
	int on;

	while ((on = bstats_is_on(observer)) > 0 && now_ns() < end)
		sleep_ms(1);
	return on;
}

void expect_off_soon(struct btest *t, const char *when)
{
	off_within(t->observer, 3000);
	expect_switch(t, 0, when);
}

void expect_eq(struct btest *t, long long expected, long long seen, const char *what, ...)
{
	char text[512], full[600];
	va_list ap;

	if (expected == seen)
		return;
	va_start(ap, what);
	vsnprintf(text, sizeof(text), what, ap);
	va_end(ap);
	snprintf(full, sizeof(full), "%s: %lld", text, expected);
	btest_failed(t, full, "%lld", seen);
}

void expect_range(struct btest *t, long long low, long long high, long long seen, const char *what)
{
	char text[600];

	if (low <= seen && seen <= high)
		return;
	snprintf(text, sizeof(text), "%s: %lld to %lld", what, low, high);
	btest_failed(t, text, "%lld", seen);
}

static const char *errno_text(long err, char *buf, size_t size)
{
	const char *name = strerrorname_np((int)err);

	if (!err)
		snprintf(buf, size, "success");
	else if (!name)
		snprintf(buf, size, "errno %ld", err);
	else
		snprintf(buf, size, "%s (%s)", name, strerror((int)err));
	return buf;
}

void expect_errno(struct btest *t, int expected, long rc, const char *what, ...)
{
	char text[512], full[700], name[128];
	va_list ap;
	long seen = rc < 0 ? -rc : 0;

	if (seen == expected)
		return;
	va_start(ap, what);
	vsnprintf(text, sizeof(text), what, ap);
	va_end(ap);
	snprintf(full, sizeof(full), "%s: %s", text, errno_text(expected, name, sizeof(name)));
	btest_failed(t, full, "%s", errno_text(seen, name, sizeof(name)));
}

int must_open(struct btest *t)
{
	int fd = bstats_open();

	expect_errno(t, 0, fd, "BPF_ENABLE_STATS");
	return fd;
}

void must_set(struct btest *t, int value)
{
	expect_errno(t, 0, bstats_sysctl_set(value), "writing %d to kernel.bpf_stats_enabled",
		     value);
}

struct bstats must_info(struct btest *t, int prog_fd)
{
	struct bstats s;

	need(t, bstats_info(prog_fd, &s), "BPF_OBJ_GET_INFO_BY_FD");
	return s;
}

void must_run(struct btest *t, int prog_fd, unsigned int repeat)
{
	need(t, bstats_run(prog_fd, repeat), "BPF_PROG_TEST_RUN");
}

/* ---- second processes ---- */

struct peer peer_start(struct btest *t, void (*fn)(struct btest *t, struct peer *me, void *arg),
		       void *arg)
{
	struct peer p = {};
	int socks[2];

	need(t, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), "socketpair");
	fflush(stdout);
	p.pid = (pid_t)need(t, fork(), "fork");
	p.sock = socks[p.pid ? 0 : 1];
	close(socks[p.pid ? 1 : 0]);
	if (!p.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(t, &p, arg);
		_exit(0);
	}
	return p;
}

void peer_say(struct btest *t, const struct peer *p, int value)
{
	ssize_t n = send(p->sock, &value, sizeof(value), MSG_NOSIGNAL);

	if (n != sizeof(value))
		btest_broken(t, n < 0 ? errno : EPIPE, "telling the other process");
}

int peer_hear(struct btest *t, const struct peer *p)
{
	ssize_t n;
	int value;

	do {
		n = recv(p->sock, &value, sizeof(value), MSG_WAITALL);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(value))
		btest_broken(t, n < 0 ? errno : EPIPE, "hearing from the other process");
	return value;
}

int peer_ask(struct btest *t, const struct peer *p, int value)
{
	peer_say(t, p, value);
	return peer_hear(t, p);
}

int peer_wait(struct btest *t, struct peer *p)
{
	int status;

	while (waitpid(p->pid, &status, 0) < 0)
		if (errno != EINTR)
			btest_broken(t, errno, "waiting for the other process");
	close(p->sock);
	return status;
}

int peer_kill(struct btest *t, struct peer *p, int sig)
{
	need(t, kill(p->pid, sig), "kill");
	return peer_wait(t, p);
}

int send_fd(int sock, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

int recv_fd(int sock, int flags)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return msg.msg_flags & MSG_CTRUNC ? -EMFILE : -ENOMSG;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

_Noreturn void exec_pause(struct btest *t, int sock)
{
	char number[16];

	need(t, fcntl(sock, F_SETFD, 0), "F_SETFD");
	snprintf(number, sizeof(number), "%d", sock);
	execl("/proc/self/exe", "stats-pause", PAUSE_OPTION, number, (char *)NULL);
	btest_broken(t, errno, "exec of /proc/self/exe");
}

/* What exec_pause() becomes. */
static int pause_main(const char *number)
{
	int sock = (int)strtol(number, NULL, 10), value = 1;

	if (send(sock, &value, sizeof(value), MSG_NOSIGNAL) != sizeof(value))
		return 1;
	return recv(sock, &value, sizeof(value), MSG_WAITALL) != sizeof(value);
}

int caps_keep(uint64_t keep)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d))
		return -errno;
	for (int i = 0; i < 2; i++) {
		uint32_t mask = (uint32_t)(keep >> (32 * i));

		d[i].effective &= mask;
		d[i].permitted &= mask;
		d[i].inheritable = 0;
	}
	return syscall(SYS_capset, &h, d) ? -errno : 0;
}

int become(unsigned int id, uint64_t keep)
{
	if (prctl(PR_SET_KEEPCAPS, 1) || syscall(SYS_setgroups, 0, NULL) ||
	    syscall(SYS_setresgid, id, id, id) || syscall(SYS_setresuid, id, id, id))
		return -errno;
	if (keep) {
		struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
		struct __user_cap_data_struct d[2];

		/* A change of the uid clears the effective set, even with KEEPCAPS. */
		if (syscall(SYS_capget, &h, d))
			return -errno;
		d[0].effective = d[0].permitted;
		d[1].effective = d[1].permitted;
		if (syscall(SYS_capset, &h, d))
			return -errno;
	}
	return caps_keep(keep);
}

/* ---- the runner ---- */

struct runner {
	struct ktap ktap;
	int observer;
	int lock;
	int guard; /* closed with the runner: the guardian then restores the sysctl */
	const char *program;
	const char *known_failures;
	struct behaviour_found found;
	char stuck[256]; /* the case after which the switch stayed on */
};

/* Only a flag: the runner looks at it between waits. */
static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	interrupted = sig;
}

/*
 * A process in a session of its own that does nothing but wait for the runner's end. If that comes
 * without a goodbye (SIGKILL), it puts the sysctl back to 0, the value without which no case
 * starts.
 */
static int start_guardian(void)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return -errno;
	}
	if (pid) {
		close(fds[0]);
		waitpid(pid, NULL, 0);
		return fds[1];
	}
	/* Twice forked, so that it is nobody's child here. */
	if (setsid() < 0 || fork() != 0)
		_exit(0);
	/* Whoever reads our output would wait for what keeps it open. */
	for (int fd = 0; fd < 1024; fd++)
		if (fd != fds[0])
			close(fd);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	char byte;
	ssize_t n;

	do {
		n = read(fds[0], &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		_exit(bstats_sysctl_set(0) ? 1 : 0);
	_exit(0);
}

/* Why the suite cannot run here, or NULL. */
static const char *why_not(struct runner *r, char *buf, size_t size)
{
	char who[1024];
	int rc, fd;

	r->observer = bstats_observer();
	if (r->observer < 0) {
		snprintf(buf, size, "no BPF program can be loaded: %s; needs root (CAP_BPF)",
			 strerror(-r->observer));
		return buf;
	}
	rc = bstats_run(r->observer, 1);
	if (rc) {
		snprintf(buf, size, "no BPF_PROG_TEST_RUN: %s", strerror(-rc));
		return buf;
	}
	r->lock = bstats_lock();
	if (r->lock < 0) {
		snprintf(buf, size, "another run of this suite owns the switch (%s)",
			 strerror(-r->lock));
		return buf;
	}
	rc = bstats_holders(0, who, sizeof(who));
	if (rc > 0) {
		snprintf(buf, size,
			 "the switch is held by %s; end that first, or its runs would be disturbed",
			 who);
		return buf;
	}
	rc = bstats_sysctl_read();
	if (rc < 0) {
		snprintf(buf, size, "%s: %s", BSTATS_SYSCTL, strerror(-rc));
		return buf;
	}
	if (rc == 1) {
		snprintf(buf, size,
			 "kernel.bpf_stats_enabled is 1, so somebody may be measuring; to run the "
			 "tests: %s",
			 RESTORE_HINT);
		return buf;
	}
	if (off_within(r->observer, 1000)) {
		snprintf(buf, size,
			 "the switch is on, but no holder is visible (another pid namespace, an fd "
			 "in flight, or a leak in the kernel)");
		return buf;
	}
	fd = bstats_open();
	if (fd < 0) {
		snprintf(buf, size, "BPF_ENABLE_STATS (5.8 and later, CAP_SYS_ADMIN): %s",
			 strerror(-fd));
		return buf;
	}
	close(fd);
	return NULL;
}

/* Ends all that a case left behind: it runs in a process group, and orphans come to us. */
static void end_leftovers(pid_t group)
{
	char path[64], line[4096], *p;

	kill(-group, SIGKILL);
	for (;;) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid > 0)
			continue;
		if (pid < 0)
			return;
		/* Something left the group: our children by name. */
		snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
		FILE *f = fopen(path, "re");

		if (f) {
			if (fgets(line, sizeof(line), f))
				for (p = strtok(line, " "); p; p = strtok(NULL, " "))
					if (strtol(p, NULL, 10) > 1)
						kill((pid_t)strtol(p, NULL, 10), SIGKILL);
			fclose(f);
		}
		sleep_ms(1);
	}
}

/* Waits for @pid to end, at most @seconds. Returns its wait status, or -1. */
static int wait_for(pid_t pid, unsigned int seconds)
{
	long long end = now_ns() + seconds * 1000000000LL;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int status = -1;

	for (;;) {
		long long left = end - now_ns();
		struct pollfd pfd = {.fd = pidfd, .events = POLLIN};
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			break;
		if (left <= 0 || interrupted) {
			status = -1;
			break;
		}
		if (pidfd < 0)
			sleep_ms(1);
		else
			poll(&pfd, 1, (int)(left / 1000000) + 1);
	}
	if (pidfd >= 0)
		close(pidfd);
	return status;
}

/* "program case kernel-pattern reason", a line each; '#' starts a comment. */
static bool known_failure(const struct runner *r, const char *name, char *reason, size_t size)
{
	char line[1024], prog[64], tc[64], pattern[64], release[256];
	int start;
	FILE *f;

	if (!r->known_failures)
		return false;
	f = fopen(r->known_failures, "re");
	if (!f)
		return false;
	kernel_release(release, sizeof(release));
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' ||
		    sscanf(line, "%63s %63s %63s %n", prog, tc, pattern, &start) != 3)
			continue;
		if (strcmp(prog, r->program) || fnmatch(tc, name, 0) ||
		    fnmatch(pattern, release, 0))
			continue;
		snprintf(reason, size, "known failure: %s", line + start);
		fclose(f);
		return true;
	}
	fclose(f);
	return false;
}

static void report(struct runner *r, const struct btest_case *tc, enum ktap_status status,
		   const char *text)
{
	char reason[1100];

	if ((status == KTAP_FAIL || status == KTAP_PASS) &&
	    known_failure(r, tc->name, reason, sizeof(reason))) {
		if (status == KTAP_FAIL) {
			ktap_note("%s\n%s", tc->name, text);
			status = KTAP_XFAIL;
			text = reason;
		} else {
			status = KTAP_XPASS;
			ktap_note("%s: passes, but is listed as a %s", tc->name, reason);
		}
	} else if (status == KTAP_FAIL) {
		ktap_note("%s\n%s", tc->name, text);
	}
	ktap_result(&r->ktap, status, tc->name, text);
}

static void run_case(struct runner *r, const struct btest_case *tc)
{
	char text[SAY_MAX + 512] = "", why[1024], release[256];
	long long began = now_ns();
	int fds[2], status, on;
	ssize_t n;
	pid_t pid;

	if (r->stuck[0]) {
		snprintf(text, sizeof(text), "the switch is stuck since the case '%s'", r->stuck);
		report(r, tc, KTAP_SKIP, text);
		return;
	}
	if (tc->needs && !behaviour__have(&r->found, tc->needs, why, sizeof(why))) {
		report(r, tc, KTAP_SKIP, why);
		return;
	}
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK)) {
		report(r, tc, KTAP_FAIL, "the runner cannot make a pipe");
		return;
	}
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct btest t = {
			.tc = tc,
			.observer = r->observer,
			.result_fd = fds[1],
			.pid = getpid(),
		};

		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		close(r->guard);
		tc->run(&t);
		fflush(stdout);
		_exit(0);
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		report(r, tc, KTAP_FAIL, "the runner cannot fork");
		return;
	}
	setpgid(pid, pid);
	status = wait_for(pid, tc->timeout_s ? tc->timeout_s : 30);
	end_leftovers(pid);
	n = read(fds[0], text, SAY_MAX);
	close(fds[0]);
	if (n <= 0)
		text[0] = '\0';
	kernel_release(release, sizeof(release));

	if (!text[0] && status == -1) {
		snprintf(text, sizeof(text),
			 "%crule: %s\nexpected: an end within %u s\nseen: %s\nkernel: %s", SAY_FAIL,
			 tc->rule, tc->timeout_s ? tc->timeout_s : 30,
			 interrupted ? "an interrupt" : "none", release);
	} else if (!text[0] && status != 0) {
		snprintf(text, sizeof(text),
			 "%crule: %s\nexpected: exit status 0\nseen: wait status 0x%x\nkernel: %s",
			 SAY_FAIL, tc->rule, (unsigned int)status, release);
	}

	/* The rule behind every case: when everyone is gone, however they went, the switch is off.
	 * The sysctl is one who does not go by himself. */
	if (bstats_sysctl_read() != 0 && bstats_sysctl_set(0) && text[0] != SAY_FAIL)
		snprintf(text, sizeof(text), "%crule: the sysctl can be put back to 0\nkernel: %s",
			 SAY_FAIL, release);
	on = off_within(r->observer, 3000);
	if (on) {
		size_t used = strlen(text);

		snprintf(r->stuck, sizeof(r->stuck), "%s", tc->name);
		if (text[0] != SAY_FAIL) {
			used = 1;
			text[0] = SAY_FAIL;
			text[1] = '\0';
		}
		snprintf(text + used, sizeof(text) - used,
			 "%srule: when every holder is gone and the sysctl is 0, the switch is "
			 "off\nexpected: off after this case\nseen: still on 3 s after the end of "
			 "all its processes\nkernel: %s",
			 used > 1 ? "\n" : "", release);
		append_foreigners(text, sizeof(text));
	}
	if (now_ns() - began > SLOW_NS)
		ktap_note("%s took %lld ms", tc->name, (now_ns() - began) / 1000000);
	report(r, tc, text[0] == SAY_FAIL ? KTAP_FAIL : text[0] == SAY_SKIP ? KTAP_SKIP : KTAP_PASS,
	       text[0] ? text + 1 : NULL);
}

static bool has_tag(const struct btest_case *tc, const char *tag)
{
	size_t len = strlen(tag);

	for (const char *p = tc->tags; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == len && !strncmp(p, tag, len))
			return true;
	return false;
}

static bool selected(const struct btest_case *tc, char *const *names, const char *tag)
{
	if (tag && !has_tag(tc, tag))
		return false;
	if (!*names)
		return true;
	for (; *names; names++)
		if (!fnmatch(*names, tc->name, 0))
			return true;
	return false;
}

static void usage(FILE *out, const char *program)
{
	fprintf(out,
		"Usage: %s [--list | --needs] [--tag TAG] [--known-failures FILE] [CASE...]\n"
		"CASE is a name or a pattern; without one, all cases run. Exit status: 0 passed,\n"
		"1 failed, 2 wrong usage, 4 skipped.\n",
		program);
}

static void list(struct runner *r, const struct btest_case *tc, bool needs)
{
	char why[1024] = "";

	if (!needs) {
		printf("%-24s %s\n", tc->name, tc->rule);
		return;
	}
	printf("%-24s %s\n", tc->name,
	       behaviour__have(&r->found, tc->needs, why, sizeof(why)) ? "can run" : why);
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

int btest_main(int argc, char **argv, const struct btest_case *cases)
{
	const char *slash = strrchr(argv[0], '/'), *tag = NULL;
	struct runner r = {
		.observer = -1,
		.lock = -1,
		.guard = -1,
		.program = slash ? slash + 1 : argv[0],
		.known_failures = getenv("STATS_KNOWN_FAILURES"),
	};
	struct sigaction sa = {.sa_handler = on_signal};
	bool want_list = false, want_needs = false;
	char why[2048], release[256];
	unsigned int planned = 0;
	const char *reason;
	int i, rc;

	if (argc == 3 && !strcmp(argv[1], PAUSE_OPTION))
		return pause_main(argv[2]);
	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--list")) {
			want_list = true;
		} else if (!strcmp(argv[i], "--needs")) {
			want_needs = true;
		} else if (!strcmp(argv[i], "--tag") && i + 1 < argc) {
			tag = argv[++i];
		} else if (!strcmp(argv[i], "--known-failures") && i + 1 < argc) {
			r.known_failures = argv[++i];
		} else {
			bool help = !strcmp(argv[i], "--help");

			usage(help ? stdout : stderr, r.program);
			return help ? 0 : 2;
		}
	}
	libbpf_set_print(quiet);
	for (const struct btest_case *tc = cases; tc->name; tc++) {
		if (!selected(tc, argv + i, tag))
			continue;
		planned++;
		if (want_list || want_needs)
			list(&r, tc, want_needs);
	}
	if (want_list || want_needs)
		return 0;
	if (!planned) {
		fprintf(stderr, "%s: no case has such a name or tag; --list shows them\n",
			r.program);
		return 2;
	}

	reason = why_not(&r, why, sizeof(why));
	if (reason) {
		printf("KTAP version 1\n1..0 # SKIP %s\n", reason);
		return KTAP_EXIT_SKIP;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	fflush(stdout);
	/* Before orphans come to us, or the guardian would be one of a case's leftovers. */
	r.guard = start_guardian();
	prctl(PR_SET_CHILD_SUBREAPER, 1);

	ktap_begin(&r.ktap, planned);
	ktap_note("%s on %s; should this be killed, the switch is put back by: %s", r.program,
		  kernel_release(release, sizeof(release)), RESTORE_HINT);
	for (const struct btest_case *tc = cases; tc->name && !interrupted; tc++)
		if (selected(tc, argv + i, tag))
			run_case(&r, tc);
	rc = ktap_end(&r.ktap);
	if (r.guard >= 0) {
		if (write(r.guard, "", 1) != 1)
			ktap_note("the guardian of the sysctl is gone");
		close(r.guard);
	}
	close(r.observer);
	close(r.lock);
	return interrupted ? 128 + interrupted : rc;
}
