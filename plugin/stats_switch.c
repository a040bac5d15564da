// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "progs.h"
#include "stats_switch.h"

/*
 * Several bpfcost can use the sysctl at the same time, and the first to end must not switch off
 * what another one measures with. They agree by locks on the sysctl's file, which the kernel drops
 * with the process: the byte DUTY is locked (shared) by each of them for as long as the sysctl is
 * at 1 because of them, GUARD while one of them looks and changes.
 */
enum { DUTY, GUARD };

/* Whoever was stopped while it held GUARD shall not stop all others. */
#define GUARD_TRIES   200
#define GUARD_WAIT_NS 10000000

static const char *root(const char *proc_root)
{
	return proc_root ? proc_root : "/proc";
}

static int open_sysctl(const char *proc_root, int flags)
{
	char *path;
	int fd, rc;

	if (asprintf(&path, "%s/sys/kernel/bpf_stats_enabled", root(proc_root)) < 0)
		return -ENOMEM;
	fd = open(path, flags | O_CLOEXEC);
	rc = fd < 0 ? -errno : fd;
	free(path);
	return rc;
}

/* Above the standard streams: where one of them is closed, a new fd would get its place, and what
 * is meant for the stream. */
static int above_standard(int fd)
{
	int other;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (other < 0)
		other = -errno;
	close(fd);
	return other;
}

static int read_sysctl(int fd, int *value)
{
	char buf[16];
	ssize_t n;

	n = pread(fd, buf, sizeof(buf), 0);
	if (n < 0)
		return -errno;
	if (n < 1 || (buf[0] != '0' && buf[0] != '1') || (n > 1 && buf[1] != '\n'))
		return -EPROTO;
	*value = buf[0] - '0';
	return 0;
}

static int write_sysctl(int fd, int value)
{
	/* Through one fd, the kernel takes only what is written at the beginning of the file. */
	ssize_t n = pwrite(fd, value ? "1\n" : "0\n", 2, 0);

	return n < 0 ? -errno : n == 2 ? 0 : -EIO;
}

int stats_switch__sysctl(const char *proc_root, int *value)
{
	int fd, rc;

	fd = open_sysctl(proc_root, O_RDONLY);
	if (fd < 0)
		return fd;
	rc = read_sysctl(fd, value);
	close(fd);
	return rc;
}

static int lock_byte(int fd, int byte, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &lock) ? -errno : 0;
}

static bool others_have(int fd, int byte)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

bool stats_switch__sysctl_is_ours(const char *proc_root)
{
	int fd = open_sysctl(proc_root, O_RDONLY);
	bool ours = fd >= 0 && others_have(fd, DUTY);

	if (fd >= 0)
		close(fd);
	return ours;
}

static int take_guard(int fd)
{
	const struct timespec pause = {.tv_nsec = GUARD_WAIT_NS};
	int rc, i;

	for (i = 0; i < GUARD_TRIES; i++) {
		rc = lock_byte(fd, GUARD, F_WRLCK);
		if (rc != -EAGAIN && rc != -EACCES)
			return rc;
		nanosleep(&pause, NULL);
	}
	return -EBUSY;
}

/*
 * Blocks all that would end us while the sysctl is set, but for what cannot be blocked, and what
 * the processor reports; @blocked: those that were not blocked before. What is ignored is no signal
 * that would end us, and a stop is not the end.
 */
static void block_signals(sigset_t *blocked)
{
	static const int others[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,	 SIGFPE,  SIGILL,
				     SIGSYS,  SIGTRAP, SIGABRT, SIGTSTP, SIGTTIN, SIGTTOU,
				     SIGCONT, SIGCHLD, SIGURG,	SIGWINCH};
	struct sigaction action;
	sigset_t old;
	size_t i;
	int sig;

	sigfillset(blocked);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		sigdelset(blocked, others[i]);
	sigprocmask(SIG_BLOCK, NULL, &old);
	for (sig = 1; sig < _NSIG; sig++)
		if (sigismember(&old, sig) == 1 ||
		    (!sigaction(sig, NULL, &action) && action.sa_handler == SIG_IGN))
			sigdelset(blocked, sig);
	sigprocmask(SIG_BLOCK, blocked, NULL);
}

/* Sets the sysctl to 1 if it is 0, and remembers that. */
static int hold_sysctl(struct stats_switch *s)
{
	int fd, rc, value = 0;

	fd = above_standard(open_sysctl(s->proc_root, O_RDWR));
	if (fd < 0)
		return fd;
	rc = take_guard(fd) ?: read_sysctl(fd, &value);
	if (rc)
		goto fail;
	if (value && !others_have(fd, DUTY)) {
		/* Somebody wants it so: it stays as it is. */
		close(fd);
		s->how = STATS_SWITCH_SYSCTL;
		return 0;
	}
	block_signals(&s->blocked);
	rc = lock_byte(fd, DUTY, F_RDLCK);
	if (!rc && !value)
		rc = write_sysctl(fd, 1);
	if (rc) {
		sigprocmask(SIG_UNBLOCK, &s->blocked, NULL);
		goto fail;
	}
	lock_byte(fd, GUARD, F_UNLCK);
	s->how = STATS_SWITCH_SYSCTL;
	s->set = true;
	s->lock = fd;
	return 0;
fail:
	close(fd);
	return rc;
}

static int hold_fd(void)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	return fd < 0 ? -errno : above_standard(fd);
}

/* Held by somebody else: seen by a run of ours or, where we may not run anything, by the sysctl. */
static bool is_on(const struct stats_switch *s)
{
	int value = 0;
	bool on;

	if (!stats_switch__observe(&on, NULL))
		return on;
	return !stats_switch__sysctl(s->proc_root, &value) && value;
}

static int refuse(int fd_rc, int sysctl_rc, struct errmsg *err)
{
	const char *sysctl = "", *advice = "";
	int rc = fd_rc;
	char buf[128];

	if (fd_rc == -EINVAL) {
		rc = sysctl_rc;
		sysctl = "the kernel has no stats fds (5.8), and the "
			 "sysctl " STATS_SWITCH_SYSCTL_NAME " cannot be set: ";
	}
	if (rc == -EPERM || rc == -EACCES)
		advice = "; it needs CAP_SYS_ADMIN, for example: sudo";
	else if (rc == -EMFILE)
		advice = "; raise the limit: ulimit -n";
	else if (rc == -EROFS)
		advice = "; where it may be written: sysctl " STATS_SWITCH_SYSCTL_NAME "=1";
	else if (rc == -ENOENT)
		advice = "; it is in /proc, and kernels before 5.1 do not have it";
	else if (rc == -ENOSYS)
		advice = "; this kernel has no bpf(2)";
	else if (rc == -EBUSY && *sysctl)
		advice = "; another bpfcost is stopped while it sets it";
	return errmsg__fail(err, rc, "cannot switch the kernel's statistics on: %s%s%s", sysctl,
			    errmsg__errno(rc, buf, sizeof(buf)), advice);
}

int stats_switch__open(struct stats_switch *s, struct errmsg *err)
{
	int fd_rc, sysctl_rc = 0;

	s->held = s->set = false;
	s->fd = s->lock = -1;
	fd_rc = hold_fd();
	if (fd_rc >= 0) {
		s->how = STATS_SWITCH_FD;
		s->fd = fd_rc;
		s->held = true;
		return 0;
	}
	/* What a kernel says to a command that it does not know. Any other errno is a refusal of
	 * something that it knows, and nothing to get around. */
	if (fd_rc == -EINVAL) {
		sysctl_rc = hold_sysctl(s);
		if (!sysctl_rc) {
			s->held = true;
			return 0;
		}
	}
	if (fd_rc == -EMFILE || fd_rc == -ENFILE || fd_rc == -ENOMEM || !is_on(s))
		return refuse(fd_rc, sysctl_rc, err);
	s->how = STATS_SWITCH_FOREIGN;
	s->held = true;
	return 0;
}

const char *stats_switch__how(const struct stats_switch *s)
{
	if (!s->held)
		return "not held";
	switch (s->how) {
	case STATS_SWITCH_FD:
		return "held by a stats fd";
	case STATS_SWITCH_SYSCTL:
		if (s->set)
			return "held by the sysctl, as this kernel has no stats fds (5.8); if "
			       "bpfcost is killed it stays on, and is switched off "
			       "with: " STATS_SWITCH_OFF;
		return "on already by the sysctl, which stays as it is; this kernel has no stats "
		       "fds (5.8)";
	case STATS_SWITCH_FOREIGN:
		break;
	}
	return "held by somebody else, and can end at any time; to hold it needs CAP_SYS_ADMIN, "
	       "for example: sudo";
}

static const char *let_go_of_sysctl(int fd)
{
	int value = 0, rc;

	/* Without the guard two of us could each leave it to the other. Rather both set it back. */
	take_guard(fd);
	if (others_have(fd, DUTY))
		return "the sysctl " STATS_SWITCH_SYSCTL_NAME " is left at 1 for another bpfcost, "
		       "which sets it back";
	rc = read_sysctl(fd, &value);
	if (!rc && !value)
		return "the sysctl " STATS_SWITCH_SYSCTL_NAME " was set to 0 by somebody else "
		       "meanwhile";
	if (!rc)
		rc = write_sysctl(fd, 0);
	return rc ? "the sysctl " STATS_SWITCH_SYSCTL_NAME " could not be set back; switch it off "
		    "with: " STATS_SWITCH_OFF
		  : "the sysctl " STATS_SWITCH_SYSCTL_NAME " is set back to 0";
}

const char *stats_switch__close(struct stats_switch *s)
{
	const char *text = NULL;

	if (!s || !s->held)
		return NULL;
	if (s->how == STATS_SWITCH_FD)
		close(s->fd);
	if (s->set) {
		text = let_go_of_sysctl(s->lock);
		close(s->lock); /* and the locks with it */
		sigprocmask(SIG_UNBLOCK, &s->blocked, NULL);
	}
	s->held = s->set = false;
	s->fd = s->lock = -1;
	return text;
}

static int run_count(int fd, __u64 *runs)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	*runs = info.run_cnt;
	return 0;
}

int stats_switch__observe(bool *on, struct errmsg *err)
{
	char packet[64] = {}, buf[128];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = 1);
	__u64 before = 0, after = 0;
	int fd, rc;

	fd = prog__load_empty(BPF_PROG_TYPE_SOCKET_FILTER, "bpfcost_observe");
	if (fd < 0) {
		rc = fd;
		goto cleanup;
	}
	rc = run_count(fd, &before) ?: bpf_prog_test_run_opts(fd, &opts) ?: run_count(fd, &after);
	close(fd);
	if (!rc)
		*on = after != before;
cleanup:
	if (rc)
		return errmsg__fail(
			err, rc, "cannot run a program to see whether the statistics are on: %s%s",
			errmsg__errno(rc, buf, sizeof(buf)),
			rc == -EPERM ? "; it needs CAP_BPF, for example: sudo" : "");
	return 0;
}
