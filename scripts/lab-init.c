// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lab-init: process 1 of a lab guest.
 *
 * It sets the guest up, runs one command, and sends what the command writes, what the kernel logs
 * meanwhile and how the command ended over the console, as the frames that lab-frame.h describes.
 * The console is the one device that every kernel has, however small its configuration.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "lab-frame.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define ARGV_FILE "/lab/argv"
#define WORK_DIR  "/bpfcost"

#define KLOG_CONSOLE_LEVEL 8 /* SYSLOG_ACTION_CONSOLE_LEVEL in the kernel, which exports no name */

static const struct {
	const char *source, *target, *type, *data;
	unsigned long flags;
} mounts[] = {
	{"proc", "/proc", "proc", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC},
	{"sysfs", "/sys", "sysfs", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC},
	{"devpts", "/dev/pts", "devpts", "mode=620,ptmxmode=666", MS_NOSUID | MS_NOEXEC},
	{"tmpfs", "/dev/shm", "tmpfs", "mode=1777", MS_NOSUID | MS_NODEV},
	{"tmpfs", "/tmp", "tmpfs", "mode=1777", MS_NOSUID | MS_NODEV},
	{"tmpfs", "/run", "tmpfs", "mode=755", MS_NOSUID | MS_NODEV},
	{"bpf", "/sys/fs/bpf", "bpf", "mode=700", MS_NOSUID | MS_NODEV | MS_NOEXEC},
	{"tracefs", "/sys/kernel/tracing", "tracefs", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC},
	{"debugfs", "/sys/kernel/debug", "debugfs", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC},
	{"cgroup2", "/sys/fs/cgroup", "cgroup2", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC},
};

static const struct {
	const char *target, *path;
} links[] = {
	{"/proc/self/fd", "/dev/fd"},	    {"/proc/self/fd/0", "/dev/stdin"},
	{"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"},
	{"pts/ptmx", "/dev/ptmx"},	    {"/proc/self/mounts", "/etc/mtab"},
};

/* What a process needs from the signal state that it inherits from us. */
static sigset_t old_mask;

static void send_bytes(const unsigned char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, buf, len);

		if (n < 0) {
			/* The console cannot be anything but blocking; there is nobody to tell. */
			if (errno == EINTR || errno == EAGAIN)
				continue;
			return;
		}
		buf += n;
		len -= n;
	}
}

static void send_frame(char type, const void *data, size_t len)
{
	unsigned char out[FRAME_ENCODED_MAX];

	send_bytes(out, frame_encode(out, type, data, len));
}

__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...)
{
	char buf[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n > 0)
		send_frame(FRAME_NOTE, buf, n < (int)sizeof(buf) ? (size_t)n : sizeof(buf) - 1);
}

static void send_status(int status)
{
	char buf[16];

	send_frame(FRAME_EXIT, buf, snprintf(buf, sizeof(buf), "%d", status));
	tcdrain(STDOUT_FILENO);
}

/* The lab ends the machine when it has the status; until then, process 1 must not exit. */
static _Noreturn void rest(void)
{
	for (;;)
		pause();
}

static _Noreturn void fail(const char *what)
{
	note("%s: %s", what, strerror(errno));
	send_status(FRAME_STATUS_LAB);
	rest();
}

static void open_console(void)
{
	struct termios t;
	int fd;

	mkdir("/dev", 0755);
	mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID | MS_NOEXEC, "mode=755");
	fd = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* The kernel may have left us without any descriptor, so fd may be one of the three. */
	for (int i = 0; i < 3; i++)
		if (fd != i)
			dup2(fd, i);
	if (fd > 2)
		close(fd);
	if (tcgetattr(STDOUT_FILENO, &t) == 0) {
		cfmakeraw(&t);
		tcsetattr(STDOUT_FILENO, TCSANOW, &t);
	}
}

static void mount_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		mkdir(mounts[i].target, 0755);
		/* A small kernel need not have all of them. */
		mount(mounts[i].source, mounts[i].target, mounts[i].type, mounts[i].flags,
		      mounts[i].data);
	}
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		unlink(links[i].path);
		if (symlink(links[i].target, links[i].path) < 0)
			note("%s: %s", links[i].path, strerror(errno));
	}
}

static void loopback_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) == 0) {
		ifr.ifr_flags |= IFF_UP | IFF_RUNNING;
		ioctl(fd, SIOCSIFFLAGS, &ifr);
	}
	close(fd);
}

static void child_setup(void)
{
	struct sigaction sa = {.sa_handler = SIG_DFL};

	sigaction(SIGPIPE, &sa, NULL);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
	setsid();
}

/*
 * Links for the busybox applets. They are made here, after the packages have been unpacked, because
 * busybox leaves alone what is already there: a package's own tool wins.
 */
static void install_applets(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open("/dev/null", O_RDWR);

		dup2(fd, 1);
		dup2(fd, 2);
		execl("/usr/bin/busybox", "busybox", "--install", "-s", "/usr/bin", NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static char **read_argv(void)
{
	size_t len = 0, cap = 4096, argc = 0;
	char *buf = malloc(cap), **argv;
	int fd = open(ARGV_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0 || !buf)
		fail(ARGV_FILE);
	while ((n = read(fd, buf + len, cap - len)) > 0) {
		len += n;
		if (len == cap) {
			cap *= 2;
			buf = realloc(buf, cap);
			if (!buf)
				fail(ARGV_FILE);
		}
	}
	close(fd);
	for (size_t i = 0; i < len; i++)
		argc += !buf[i];
	argv = calloc(argc + 1, sizeof(*argv));
	if (!argv || !argc)
		fail(ARGV_FILE);
	for (size_t i = 0, start = 0, k = 0; i < len; i++) {
		if (!buf[i]) {
			argv[k++] = buf + start;
			start = i + 1;
		}
	}
	return argv;
}

static pid_t start(char **argv, int out[2], int err[2])
{
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid > 0) {
		close(out[1]);
		close(err[1]);
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		fcntl(err[0], F_SETFL, O_NONBLOCK);
		return pid;
	}

	child_setup();
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
	dup2(out[1], 1);
	dup2(err[1], 2);
	if (chdir(WORK_DIR) < 0 && chdir("/") < 0)
		_exit(126);
	execvp(argv[0], argv);
	dprintf(2, "lab: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Sends what can be read now; false at the end of the pipe. */
static bool forward(int fd, char type)
{
	unsigned char buf[FRAME_MAX];
	ssize_t n;

	for (;;) {
		n = read(fd, buf, sizeof(buf));
		if (n > 0) {
			send_frame(type, buf, n);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		return n < 0 && errno == EAGAIN;
	}
}

static void forward_log(int fd)
{
	char buf[FRAME_MAX];
	ssize_t n;

	if (fd < 0)
		return;
	for (;;) {
		n = read(fd, buf, sizeof(buf));
		if (n > 0) {
			/* What follows the message is a dictionary, " KEY=value" a line. */
			char *nl = memchr(buf, '\n', n);

			send_frame(FRAME_LOG, buf, nl ? nl - buf : n);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE) {
			note("the kernel logged faster than its log could be read; lines are "
			     "missing");
			continue;
		}
		if (n < 0 && errno == EINVAL) {
			note("a line of the kernel's log is too long to be read");
			continue;
		}
		return;
	}
}

static int run(char **argv)
{
	struct pollfd fds[4] = {};
	int out[2], err[2], status = 0;
	bool done = false;
	sigset_t mask;
	pid_t pid;

	fds[3].fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fds[3].fd < 0)
		note("no /dev/kmsg: what this kernel reports cannot be seen");
	else
		lseek(fds[3].fd, 0, SEEK_END);

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, &old_mask);
	fds[2].fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fds[2].fd < 0)
		fail("signalfd");

	pid = start(argv, out, err);
	fds[0].fd = out[0];
	fds[1].fd = err[0];
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i].events = POLLIN;

	while (!done) {
		struct signalfd_siginfo si;
		int st;
		pid_t p;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			fail("poll");
		while (read(fds[2].fd, &si, sizeof(si)) > 0)
			;
		/* Orphans are ours to reap as well. */
		while ((p = waitpid(-1, &st, WNOHANG)) > 0) {
			if (p == pid) {
				status = st;
				done = true;
			}
		}
		if (fds[0].fd >= 0 && !forward(fds[0].fd, FRAME_OUT))
			fds[0].fd = -1;
		if (fds[1].fd >= 0 && !forward(fds[1].fd, FRAME_ERR))
			fds[1].fd = -1;
		forward_log(fds[3].fd);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(void)
{
	char **argv;

	open_console();
	/* A kernel that talks on the console could talk in the middle of a frame. */
	klogctl(KLOG_CONSOLE_LEVEL, NULL, 1);
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	mount_all();
	loopback_up();
	sethostname("lab", 3);
	install_applets();

	clearenv();
	setenv("PATH", WORK_DIR ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("USER", "root", 1);
	setenv("LOGNAME", "root", 1);
	setenv("SHELL", "/bin/sh", 1);
	setenv("TERM", "dumb", 1);
	argv = read_argv();

	send_frame(FRAME_START, NULL, 0);
	send_status(run(argv));
	rest();
}
