// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the tests of `stats show` and `stats enable` need others to do.
 *
 *   tool lock             takes the lock of the suites that own the switch, and prints "locked", or
 *                         why they cannot run here; holds it until it is killed
 *   tool hold N           opens N stats fds
 *   tool share N          opens one, and shares it with N - 1 other processes
 *   tool pass             opens one, and passes it to another process, which alone has it
 *   tool flight           opens one that is in flight over a socket: no process has it
 *   tool named NAME       opens one, as a process of that name
 *   tool hold 0           opens none: it may have inherited one
 *     Each of these prints the pid of the (last) holder, and holds until it is killed.
 *   tool on               runs a program of its own: exits with 0 if that was counted, 1 if not
 *   tool off              the other way round
 *   tool fds              prints the stats fds that it has inherited, a number a line
 *   tool caps PID         prints the effective capabilities of a process, as in /proc/PID/status
 *
 * And what a machine forbids; each runs a command:
 *
 *   tool keep COMMAND...          with a stats fd that it inherits
 *   tool without ERRNO COMMAND... bpf(BPF_ENABLE_STATS) fails with this errno (a name), or, with
 *                                 KILL, ends the process
 *   tool nobody COMMAND...        as an ordinary user
 *   tool proc OPTIONS COMMAND...  with another /proc, mounted with these options
 *   tool readonly COMMAND...      with /proc/sys read-only
 *   tool pidns COMMAND...         in a pid namespace, with its /proc
 *   tool noproc COMMAND...        without /proc
 *   tool session COMMAND...       in a session of its own
 *   tool default COMMAND...       with no signal ignored, as jobs of scripts have them
 *   tool ignoring N COMMAND...    with a signal ignored
 *   tool files N COMMAND...       with this limit of open files
 *   tool closed FDS COMMAND...    without the standard streams whose digits are in FDS
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bstats.h"
#include "btest.h"
#include "forbid.h"

static int fail(const char *what)
{
	fprintf(stderr, "tool: %s: %s\n", what, strerror(errno));
	return 99;
}

static _Noreturn void hold_on(pid_t holder)
{
	printf("%d\n", holder);
	fflush(stdout);
	for (;;)
		pause();
}

static int lock(void)
{
	char who[1024];
	int rc = bstats_lock(), on;

	if (rc < 0) {
		printf("another test owns the switch: %s\n", strerror(-rc));
		return 1;
	}
	rc = bstats_holders(0, who, sizeof(who));
	on = bstats_sysctl_read();
	if (rc > 0)
		printf("the switch is held by %s\n", who);
	else if (on == 1)
		printf("kernel.bpf_stats_enabled is 1, so somebody may be measuring\n");
	else if (on < 0)
		printf("no sysctl kernel.bpf_stats_enabled: %s\n", strerror(-on));
	else if (bstats_is_on(bstats_observer()) != 0)
		printf("the switch cannot be observed, or is on\n");
	else
		printf("locked\n");
	fflush(stdout);
	for (;;)
		pause();
}

static int hold(int n)
{
	while (n-- > 0)
		if (bstats_open() < 0)
			return fail("open a stats fd");
	hold_on(getpid());
}

/* A process that ends with us. */
static pid_t start(void)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static int share(int n)
{
	if (bstats_open() < 0)
		return fail("open a stats fd");
	while (n-- > 1) {
		pid_t pid = start();

		if (!pid)
			for (;;)
				pause();
		if (pid < 0)
			return fail("fork");
	}
	hold_on(getpid());
}

static int pass(bool receive)
{
	int sock[2], fd;
	pid_t pid = 0;
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		return fail("socketpair");
	if (receive) {
		pid = start();
		if (!pid) {
			if (recv_fd(sock[1], 0) < 0 || write(sock[1], "", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
	}
	fd = bstats_open();
	if (fd < 0 || send_fd(sock[0], fd))
		return fail("open and send a stats fd");
	close(fd);
	if (receive && read(sock[0], &c, 1) != 1)
		return fail("pass the fd");
	hold_on(pid);
}

static int print_fds(void)
{
	char target[64];
	struct dirent *de;
	DIR *dir = opendir("/proc/self/fd");

	if (!dir)
		return fail("/proc/self/fd");
	while ((de = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), de->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		if (!strcmp(target, "anon_inode:bpf-stats"))
			puts(de->d_name);
	}
	closedir(dir);
	return 0;
}

static int print_caps(const char *pid)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "re");
	if (!f)
		return fail(path);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "CapEff:\t", 8))
			fputs(line + 8, stdout);
	fclose(f);
	return 0;
}

/* ---- with a command -------------------------------------------------------------------------- */

static int run(char **argv)
{
	execvp(argv[0], argv);
	return fail(argv[0]);
}

static int without(const char *err, char **argv)
{
	static const struct {
		const char *name;
		int err;
	} errors[] = {
		{"EINVAL", EINVAL}, {"EPERM", EPERM}, {"EMFILE", EMFILE},
		{"EBUSY", EBUSY},   {"KILL", 0},
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors) && strcmp(err, errors[i].name); i++)
		;
	if (i == ARRAY_SIZE(errors))
		return 99;
	errno = -forbid_bpf(BPF_ENABLE_STATS, errors[i].err);
	return errno ? fail("seccomp") : run(argv);
}

/* Opened before, as an ordinary user may not get to where the build directory is. */
static int nobody(char **argv)
{
	int fd = open(argv[0], O_PATH | O_CLOEXEC);

	if (fd < 0)
		return fail(argv[0]);
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return fail("become nobody");
	fexecve(fd, argv, environ);
	return fail(argv[0]);
}

static int private_mounts(void)
{
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int other_proc(const char *options, char **argv)
{
	if (private_mounts() || mount("proc", "/proc", "proc", 0, options))
		return fail("mount another /proc");
	return run(argv);
}

static int readonly(char **argv)
{
	if (private_mounts() || mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) ||
	    mount("none", "/proc/sys", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL))
		return fail("mount /proc/sys read-only");
	return run(argv);
}

static int noproc(char **argv)
{
	if (private_mounts() || mount("none", "/proc", "tmpfs", 0, NULL))
		return fail("hide /proc");
	return run(argv);
}

static int pidns(char **argv)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		return fail("another pid namespace");
	pid = fork();
	if (!pid)
		_exit(other_proc("", argv));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return fail("fork");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int keep(char **argv)
{
	int fd = bstats_open();

	if (fd < 0 || fcntl(fd, F_SETFD, 0))
		return fail("open a stats fd");
	return run(argv);
}

/* The limit is all that the command has: what we have open would count as well. */
static int files(int n, char **argv)
{
	const struct rlimit limit = {n, n};
	int fd;

	for (fd = 3; fd < 64; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return fail("limit of open files");
	return run(argv);
}

static int closed(const char *fds, char **argv)
{
	for (; *fds; fds++)
		close(*fds - '0');
	return run(argv);
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 1 ? argv[1] : "";

	if (argc == 2 && !strcmp(cmd, "lock"))
		return lock();
	if (argc == 3 && !strcmp(cmd, "hold"))
		return hold(atoi(argv[2]));
	if (argc == 3 && !strcmp(cmd, "share"))
		return share(atoi(argv[2]));
	if (argc == 2 && !strcmp(cmd, "pass"))
		return pass(true);
	if (argc == 2 && !strcmp(cmd, "flight"))
		return pass(false);
	if (argc == 3 && !strcmp(cmd, "named"))
		return prctl(PR_SET_NAME, argv[2]) ? fail("name") : hold(1);
	if (argc == 2 && !strcmp(cmd, "on"))
		return bstats_is_on(bstats_observer()) != 1;
	if (argc == 2 && !strcmp(cmd, "off"))
		return bstats_is_on(bstats_observer()) != 0;
	if (argc == 2 && !strcmp(cmd, "fds"))
		return print_fds();
	if (argc == 3 && !strcmp(cmd, "caps"))
		return print_caps(argv[2]);
	if (argc > 2 && !strcmp(cmd, "keep"))
		return keep(argv + 2);
	if (argc > 3 && !strcmp(cmd, "without"))
		return without(argv[2], argv + 3);
	if (argc > 2 && !strcmp(cmd, "nobody"))
		return nobody(argv + 2);
	if (argc > 3 && !strcmp(cmd, "proc"))
		return other_proc(argv[2], argv + 3);
	if (argc > 2 && !strcmp(cmd, "readonly"))
		return readonly(argv + 2);
	if (argc > 2 && !strcmp(cmd, "pidns"))
		return pidns(argv + 2);
	if (argc > 2 && !strcmp(cmd, "noproc"))
		return noproc(argv + 2);
	if (argc > 2 && !strcmp(cmd, "session"))
		return setsid() < 0 ? fail("session") : run(argv + 2);
	if (argc > 2 && !strcmp(cmd, "default")) {
		for (int i = 1; i < 32; i++)
			signal(i, SIG_DFL);
		return run(argv + 2);
	}
	if (argc > 3 && !strcmp(cmd, "ignoring"))
		return signal(atoi(argv[2]), SIG_IGN) == SIG_ERR ? fail("ignore") : run(argv + 3);
	if (argc > 3 && !strcmp(cmd, "files"))
		return files(atoi(argv[2]), argv + 3);
	if (argc > 3 && !strcmp(cmd, "closed"))
		return closed(argv[2], argv + 3);
	fputs("tool: wrong usage; see the head of tool.c\n", stderr);
	return 99;
}
