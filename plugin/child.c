// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "errmsg.h"
#include "text.h"

static void run(int go, char **argv, bool quiet_stdout)
{
	char byte, name[256], buf[128];
	sigset_t none;
	ssize_t n;
	int err;

	do
		n = read(go, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(EXIT_FAILURE);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (quiet_stdout && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		close(STDOUT_FILENO);
	execvp(argv[0], argv);
	err = errno;
	fprintf(stderr, "Error: cannot run '%s': %s\n",
		text__printable(argv[0], name, sizeof(name)),
		errmsg__errno(-err, buf, sizeof(buf)));
	/* As shells do. */
	_exit(err == ENOENT ? 127 : 126);
}

int child__open(struct child *c, char **argv, bool quiet_stdout)
{
	int fds[2], rc;

	memset(c, 0, sizeof(*c));
	c->go = -1;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	c->pid = fork();
	if (c->pid < 0) {
		rc = -errno;
		c->pid = 0;
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	if (!c->pid) {
		close(fds[1]);
		run(fds[0], argv, quiet_stdout);
	}
	close(fds[0]);
	c->go = fds[1];
	/* Where our caller ignores it, a child's status is lost. The child has it as the caller. */
	signal(SIGCHLD, SIG_DFL);
	return 0;
}

int child__go(struct child *c)
{
	const struct timespec now = {};
	sigset_t pipe, old;
	ssize_t n;

	/* It may have been killed meanwhile: that shall not end us as well. */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe, &old);
	n = write(c->go, "", 1);
	if (n != 1 && !sigismember(&old, SIGPIPE))
		sigtimedwait(&pipe, NULL, &now);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(c->go);
	c->go = -1;
	return n == 1 ? 0 : -EPIPE;
}

static void reap(struct child *c, int options)
{
	int status;
	pid_t pid;

	if (!c->pid || c->ended)
		return;
	do
		pid = waitpid(c->pid, &status, options);
	while (pid < 0 && errno == EINTR);
	if (!pid)
		return;
	c->ended = true;
	if (pid < 0)
		c->status = EXIT_FAILURE;
	else
		c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool child__poll(struct child *c)
{
	reap(c, WNOHANG);
	return c->ended;
}

void child__wait(struct child *c)
{
	reap(c, 0);
}

void child__close(struct child *c)
{
	if (!c || !c->pid)
		return;
	if (c->go >= 0) {
		close(c->go);
		c->go = -1;
		child__wait(c);
	}
	c->pid = 0;
}
