// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The COMMAND of `-- COMMAND`. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "ktap.h"
#include "lab.h"

static char *const command[] = {"sh", "-c", "exit 7", NULL};

static bool test_run(void)
{
	struct child c;
	bool ok = true;

	CHECK(!child__open(&c, (char **)command, false));
	CHECK(c.pid > 0 && !child__poll(&c));
	CHECK(!child__go(&c));
	child__wait(&c);
	CHECK(c.ended);
	CHECK(c.status == 7);
cleanup:
	child__close(&c);
	return ok;
}

static bool test_not_started(void)
{
	struct child c;
	bool ok = true;

	CHECK(!child__open(&c, (char **)command, false));
	child__close(&c);
	CHECK(c.ended && !c.pid && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
cleanup:
	return ok;
}

/* Nor does that end us. */
static bool test_killed_before(void)
{
	sigset_t pending;
	struct child c;
	siginfo_t info;
	bool ok = true;

	CHECK(!child__open(&c, (char **)command, false));
	CHECK(!kill(c.pid, SIGKILL) && !waitid(P_PID, c.pid, &info, WEXITED | WNOWAIT));
	CHECK(child__go(&c) == -EPIPE);
	CHECK(!sigpending(&pending) && !sigismember(&pending, SIGPIPE));
	child__wait(&c);
	CHECK(c.ended);
	CHECK(c.status == 128 + SIGKILL);
cleanup:
	child__close(&c);
	return ok;
}

/* Where our caller ignores what becomes of children, the kernel would throw the status away. */
static bool test_ignored(void)
{
	bool ok;

	signal(SIGCHLD, SIG_IGN);
	ok = test_run();
	signal(SIGCHLD, SIG_DFL);
	return ok;
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 4);
	ktap_ok(&k, test_run(), "its status");
	ktap_ok(&k, test_not_started(), "not started, it runs nothing and is no zombie");
	ktap_ok(&k, test_killed_before(), "killed before it was started");
	ktap_ok(&k, test_ignored(), "its status, with SIGCHLD ignored");
	return ktap_end(&k);
}
