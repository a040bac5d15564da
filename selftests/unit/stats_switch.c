// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Holding the switch by the sysctl, on kernels that have no stats fds. Here bpf(BPF_ENABLE_STATS)
 * fails as it does there, and the sysctl is a file. Where bpf(2) forbids to run a program as well,
 * the machine's own switch is not looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/bpf.h>

#include "forbid.h"
#include "lab.h"
#include "stats_switch.h"
#include "unit.h"

#define SYSCTL "sys/kernel/bpf_stats_enabled"

static char root[4096];

static int value(void)
{
	int v = -1, rc = stats_switch__sysctl(root, &v);

	return rc ? rc : v;
}

static void set(const char *text)
{
	unit_write(root, SYSCTL, text);
}

static bool test_set_and_back(void)
{
	struct stats_switch s = {.proc_root = root};
	struct errmsg err = {};
	bool ok = true;
	const char *end;

	set("0");
	CHECK(!stats_switch__open(&s, &err));
	CHECK(s.held && s.how == STATS_SWITCH_SYSCTL && s.set);
	EQUAL(1, value());
	CHECK(stats_switch__sysctl_is_ours(root));
	/* Whoever kills us wants to know what to do then. */
	CHECK(strstr(stats_switch__how(&s), "sysctl kernel.bpf_stats_enabled=0"));
	end = stats_switch__close(&s);
	CHECK(end && strstr(end, "is set back to 0"));
	EQUAL(0, value());
	CHECK(!stats_switch__sysctl_is_ours(root));
	CHECK(!s.held);
	/* Closed is closed. */
	set("1");
	CHECK(!stats_switch__close(&s));
	EQUAL(1, value());
cleanup:
	return ok;
}

static bool test_was_on(void)
{
	struct stats_switch s = {.proc_root = root};
	struct errmsg err = {};
	bool ok = true;

	set("1");
	CHECK(!stats_switch__open(&s, &err));
	CHECK(s.how == STATS_SWITCH_SYSCTL && !s.set);
	CHECK(!stats_switch__sysctl_is_ours(root));
	CHECK(strstr(stats_switch__how(&s), "stays as it is"));
	CHECK(!stats_switch__close(&s));
	EQUAL(1, value());
cleanup:
	return ok;
}

static bool test_changed_meanwhile(void)
{
	struct stats_switch s = {.proc_root = root};
	struct errmsg err = {};
	bool ok = true;
	const char *end;

	set("0");
	CHECK(!stats_switch__open(&s, &err) && s.set);
	set("0");
	end = stats_switch__close(&s);
	CHECK(end && strstr(end, "set to 0 by somebody else"));
	EQUAL(0, value());
cleanup:
	return ok;
}

/* Whoever comes first, and whoever ends first: the last one sets it back. */
static bool test_two(void)
{
	struct stats_switch a = {.proc_root = root}, b = {.proc_root = root};
	struct errmsg err = {};
	bool ok = true;
	const char *end;
	int first;

	for (first = 0; first < 2; first++) {
		set("0");
		CHECK(!stats_switch__open(&a, &err) && a.set);
		CHECK(!stats_switch__open(&b, &err) && b.set);
		end = stats_switch__close(first ? &b : &a);
		CHECK(end && strstr(end, "left at 1 for another bpfcost"));
		EQUAL(1, value());
		CHECK(stats_switch__sysctl_is_ours(root));
		end = stats_switch__close(first ? &a : &b);
		CHECK(end && strstr(end, "is set back to 0"));
		EQUAL(0, value());
	}
	/* What is no bpfcost's, but on, is somebody's wish. */
	set("1");
	CHECK(!stats_switch__open(&a, &err) && !a.set);
	CHECK(!stats_switch__open(&b, &err) && !b.set);
	stats_switch__close(&a);
	stats_switch__close(&b);
	EQUAL(1, value());
cleanup:
	return ok;
}

static pid_t start_holder(void)
{
	struct stats_switch s = {.proc_root = root};
	int fds[2];
	pid_t pid;
	char c;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (!pid) {
		close(fds[0]);
		if (!stats_switch__open(&s, NULL) && write(fds[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(fds[1]);
	if (pid > 0 && read(fds[0], &c, 1) != 1)
		pid = -1;
	close(fds[0]);
	return pid;
}

static bool test_killed(void)
{
	struct stats_switch s = {.proc_root = root};
	struct errmsg err = {};
	bool ok = true;
	const char *end;
	pid_t pid;

	/* The one that set it is killed: whoever joined it sets it back. */
	set("0");
	pid = start_holder();
	CHECK(pid > 0);
	EQUAL(1, value());
	CHECK(!stats_switch__open(&s, &err) && s.set);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	end = stats_switch__close(&s);
	CHECK(end && strstr(end, "is set back to 0"));
	EQUAL(0, value());
	/* All are killed: it stays, as was said at the start, and is somebody's from then on. */
	pid = start_holder();
	CHECK(pid > 0 && !kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	EQUAL(1, value());
	CHECK(!stats_switch__sysctl_is_ours(root));
	CHECK(!stats_switch__open(&s, &err) && !s.set);
	stats_switch__close(&s);
	EQUAL(1, value());
cleanup:
	return ok;
}

/* The reader of our output goes away: that must not leave the sysctl set. */
static bool test_sigpipe(void)
{
	int fds[2], status;
	bool ok = true;
	pid_t pid;

	set("0");
	CHECK(!pipe(fds));
	close(fds[0]);
	pid = fork();
	if (!pid) {
		struct stats_switch s = {.proc_root = root};

		signal(SIGPIPE, SIG_DFL);
		if (stats_switch__open(&s, NULL) || !s.set || write(fds[1], "", 1) >= 0 ||
		    value() != 1)
			_exit(1);
		stats_switch__close(&s);
		_exit(2); /* what came meanwhile comes now */
	}
	close(fds[1]);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	EQUAL(0, value());
cleanup:
	return ok;
}

static bool refused(int rc, const char *text)
{
	struct stats_switch s = {.proc_root = root};
	struct errmsg err = {};
	int seen;

	seen = stats_switch__open(&s, &err);
	if (seen == rc && !s.held && strstr(err.text, text))
		return true;
	ktap_note("expected %d and '%s', got %d and '%s'", rc, text, seen, err.text);
	stats_switch__close(&s);
	return false;
}

static bool test_refused(void)
{
	char path[4200];
	bool ok = true;
	int v;

	snprintf(path, sizeof(path), "%s/" SYSCTL, root);
	CHECK(!unlink(path));
	EQUAL(-ENOENT, value());
	CHECK(refused(-ENOENT, "kernels before 5.1 do not have it"));
	/* A value that no kernel has is not overwritten. */
	set("2");
	EQUAL(-EPROTO, value());
	CHECK(refused(-EPROTO, "the sysctl kernel.bpf_stats_enabled cannot be set"));
	set("");
	CHECK(refused(-EPROTO, "cannot be set"));
	set("00");
	CHECK(stats_switch__sysctl(root, &v) == -EPROTO);
	/* What cannot be written. */
	CHECK(!unlink(path) && !mkdir(path, 0755));
	CHECK(refused(-EISDIR, "cannot be set: Is a directory (EISDIR)"));
	CHECK(!rmdir(path));
cleanup:
	return ok;
}

/* As an ordinary user, of whom the file does not take anything. */
static bool test_unprivileged(void)
{
	bool ok = true;
	int status;
	pid_t pid;

	set("0");
	pid = fork();
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		/* Off. */
		if (!refused(-EACCES, "Permission denied (EACCES); it needs CAP_SYS_ADMIN"))
			_exit(2);
		_exit(stats_switch__sysctl(root, &status) ? 3 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	EQUAL(0, WEXITSTATUS(status));
	set("1");
	pid = fork();
	if (!pid) {
		struct stats_switch s = {.proc_root = root};
		struct errmsg err = {};

		/* On: it can be read beside. */
		if (setgid(65534) || setuid(65534) || stats_switch__open(&s, &err))
			_exit(1);
		if (s.how != STATS_SWITCH_FOREIGN || s.set || s.fd >= 0 ||
		    !strstr(stats_switch__how(&s), "held by somebody else, and can end at any"))
			_exit(2);
		_exit(stats_switch__close(&s) ? 3 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	EQUAL(0, WEXITSTATUS(status));
	EQUAL(1, value());
cleanup:
	return ok;
}

/* What is refused for another reason than that the kernel does not know it is not got around. */
static bool test_forbidden(void)
{
	static const struct {
		int err;
		const char *text;
	} errors[] = {
		{EPERM, "(EPERM); it needs CAP_SYS_ADMIN, for example: sudo"},
		{EACCES, "(EACCES); it needs CAP_SYS_ADMIN"},
		{EMFILE, "(EMFILE); raise the limit: ulimit -n"},
		{ENOSYS, "(ENOSYS); this kernel has no bpf(2)"},
		{EBUSY, "Device or resource busy (EBUSY)"},
	};
	bool ok = true;
	int status;
	pid_t pid;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		set("0");
		pid = fork();
		/* Of several filters the most severe answer counts, of equal ones the last. */
		if (!pid)
			_exit(forbid_bpf(BPF_ENABLE_STATS, errors[i].err) ||
			      !refused(-errors[i].err, errors[i].text) || value() != 0);
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		EQUAL(0, status);
	}
cleanup:
	return ok;
}

/* The locks keep nobody waiting for ever. */
static bool test_stopped(void)
{
	struct flock guard = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
	char path[4200];
	bool ok = true;
	int fd;

	set("0");
	snprintf(path, sizeof(path), "%s/" SYSCTL, root);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && !fcntl(fd, F_OFD_SETLK, &guard));
	CHECK(refused(-EBUSY, "another bpfcost is stopped while it sets it"));
	EQUAL(0, value());
	close(fd);
	fd = -1;
cleanup:
	if (fd >= 0)
		close(fd);
	return ok;
}

int main(void)
{
	struct ktap k;
	int rc;

	rc = geteuid() ? -EPERM : forbid_bpf(BPF_ENABLE_STATS, EINVAL);
	/* Whether this machine's statistics are on is nothing to these tests. */
	if (!rc)
		rc = forbid_bpf(BPF_PROG_LOAD, EPERM);
	ktap_begin(&k, rc ? 1 : 10);
	if (rc) {
		ktap_result(&k, KTAP_SKIP, "stats_switch",
			    rc == -EPERM ? "not root" : "no seccomp here");
		return ktap_end(&k);
	}
	unit_tree("proc", root, sizeof(root));
	if (chmod(root, 0755))
		printf("Bail out! chmod %s\n", root);
	ktap_ok(&k, test_set_and_back(), "the sysctl is set, and set back");
	ktap_ok(&k, test_was_on(), "a sysctl that was 1 stays 1");
	ktap_ok(&k, test_changed_meanwhile(), "what somebody else changes meanwhile stays so");
	ktap_ok(&k, test_two(), "of two, the last sets it back");
	ktap_ok(&k, test_killed(), "of two, one is killed; and the only one");
	ktap_ok(&k, test_sigpipe(), "SIGPIPE waits until it is set back");
	ktap_ok(&k, test_stopped(), "somebody who is stopped is not waited for");
	ktap_ok(&k, test_forbidden(), "a refusal is not got around");
	ktap_ok(&k, test_refused(), "no sysctl, and one that makes no sense");
	ktap_ok(&k, test_unprivileged(), "an ordinary user: off is refused, on is read beside");
	unit_tree_remove(root);
	return ktap_end(&k);
}
