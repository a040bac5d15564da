// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Real programs side by side: sysctl toggles as old tools did, bpftop and bpfcost hold fds,
 * bpftool reads, all at once, while known runs are counted. Each must see all of them.
 * Environment: BPFTOOL, BPFCOST, BPFTOP, SYSCTL name the programs; otherwise they are looked for
 * in PATH.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "btest.h"

#define KEY "kernel.bpf_stats_enabled"

enum tool {
	TOOL_SYSCTL,
	TOOL_BPFTOOL,
	TOOL_BPFCOST,
	TOOL_BPFTOP,
	TOOLS,
};

static const struct {
	const char *variable, *name, *package;
} tools[TOOLS] = {
	[TOOL_SYSCTL] = {"SYSCTL", "sysctl", "procps"},
	[TOOL_BPFTOOL] = {"BPFTOOL", "bpftool", "bpftool"},
	[TOOL_BPFCOST] = {"BPFCOST", "bpfcost", "bpfcost"},
	[TOOL_BPFTOP] = {"BPFTOP", "bpftop", "bpftop"},
};

/* The program's file, or NULL. */
static const char *find(enum tool tool, char *path, size_t size)
{
	static const char *const places[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
					     "/usr/bin",	"/sbin",	  "/bin"};
	const char *named = getenv(tools[tool].variable);

	if (named && *named)
		return access(named, X_OK) ? NULL : named;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, size, "%s/%s", places[i], tools[tool].name);
		if (!access(path, X_OK))
			return path;
	}
	return NULL;
}

static const char *must_find(struct btest *t, enum tool tool, char *path, size_t size)
{
	const char *found = find(tool, path, size);

	if (!found)
		btest_skip(t, "needs %s (package %s; or named by %s)", tools[tool].name,
			   tools[tool].package, tools[tool].variable);
	return found;
}

/* Starts a program with its output to @out, or thrown away if that is -1; on a terminal of its own
 * if it wants one. */
static pid_t start_to(struct btest *t, const char *path, char *const argv[], bool terminal, int out)
{
	int master = -1;
	char tty[64] = "";
	pid_t pid;

	if (terminal) {
		master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (master < 0 || grantpt(master) || unlockpt(master) ||
		    ptsname_r(master, tty, sizeof(tty)))
			btest_skip(t, "needs a pseudo-terminal: %s", strerror(errno));
	}
	fflush(stdout);
	pid = (pid_t)need(t, fork(), "fork");
	if (!pid) {
		int fd;

		if (terminal) {
			struct winsize size = {.ws_row = 40, .ws_col = 120};

			setsid();
			fd = open(tty, O_RDWR);
			ioctl(fd, TIOCSWINSZ, &size);
			setenv("TERM", "xterm", 1);
		} else {
			fd = open("/dev/null", O_RDWR);
		}
		if (fd < 0 || dup2(fd, 0) < 0 || dup2(out < 0 ? fd : out, 1) < 0 || dup2(fd, 2) < 0)
			_exit(126);
		execv(path, argv);
		_exit(127);
	}
	/* The terminal stays, and is never read: it takes a screen or two, and then the program may
	 * wait, which is fine for one that only has to hold. */
	return pid;
}

static pid_t start(struct btest *t, const char *path, char *const argv[], bool terminal)
{
	return start_to(t, path, argv, terminal, -1);
}

/* Runs a program to its end, which must be a success; what it printed is in @text. */
static void ask(struct btest *t, const char *path, char *const argv[], char *text, size_t size)
{
	int fds[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	need(t, pipe2(fds, O_CLOEXEC), "pipe2");
	pid = start_to(t, path, argv, false, fds[1]);
	close(fds[1]);
	while (used < size - 1 && (n = read(fds[0], text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(fds[0]);
	need(t, waitpid(pid, &status, 0), "waitpid");
	expect_eq(t, 0, status, "wait status of '%s %s %s %s'", argv[0], argv[1], argv[2], argv[3]);
}

/* The first number of that name in a tool's JSON. */
static long long number_of(struct btest *t, const char *text, const char *key)
{
	char quoted[64];
	const char *at;
	long long value;

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(text, quoted);
	if (!at || sscanf(at + strlen(quoted), "%lld", &value) != 1)
		btest_failed(t, "a run_cnt in the tool's output", "%s", text);
	return value;
}

static void end(struct btest *t, pid_t pid, int sig)
{
	int status;

	kill(pid, sig);
	need(t, waitpid(pid, &status, 0), "waitpid");
}

/* Runs the sysctl program once. */
static void set_by_tool(struct btest *t, const char *path, int value)
{
	char text[64];
	char *argv[] = {"sysctl", "-w", text, NULL};
	int status;
	pid_t pid;

	snprintf(text, sizeof(text), KEY "=%d", value);
	pid = start(t, path, argv, false);
	need(t, waitpid(pid, &status, 0), "waitpid");
	expect_eq(t, 0, status, "wait status of 'sysctl -w %s'", text);
}

/* Did it end by itself? Only bpftop may: after it holds, it wants more of the kernel than its
 * statistics (an iterator, and trampolines for it). */
static bool ended(struct btest *t, pid_t pid, enum tool tool)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	if (tool != TOOL_BPFTOP)
		btest_failed(t, "a tool that holds a stats fd", "%s ended with wait status 0x%x",
			     tools[tool].name, (unsigned int)status);
	return true;
}

/* Waits for a program to hold a stats fd, which takes it a moment to get to. Returns false if it
 * ended by itself. */
static bool wait_holder(struct btest *t, pid_t pid, enum tool tool)
{
	for (int i = 0; i < 1500; i++) {
		/* The fd is there a moment before its reference is. */
		if (bstats_fds_of(pid) > 0 && bstats_is_on(t->observer) == 1)
			return true;
		if (ended(t, pid, tool))
			return false;
		sleep_ms(10);
	}
	btest_failed(t, "a tool that holds a stats fd", "%s holds none after 15 s",
		     tools[tool].name);
}

static void all_counted(struct btest *t, int runs, const char *beside)
{
	struct bstats before = must_info(t, t->observer), after;

	must_run(t, t->observer, (unsigned int)runs);
	after = must_info(t, t->observer);
	expect_eq(t, runs, (long long)(after.run_cnt - before.run_cnt),
		  "runs counted of %d beside %s", runs, beside);
}

static void by_sysctl(struct btest *t)
{
	char buf[128];
	const char *path = must_find(t, TOOL_SYSCTL, buf, sizeof(buf));
	int fd;

	set_by_tool(t, path, 1);
	expect_on(t, "after 'sysctl -w " KEY "=1'");
	set_by_tool(t, path, 0);
	expect_off(t, "after 'sysctl -w " KEY "=0'");
	fd = must_open(t);
	for (int i = 0; i < 6; i++) {
		set_by_tool(t, path, i & 1);
		all_counted(t, 50, "the sysctl program");
	}
	set_by_tool(t, path, 0);
	all_counted(t, 50, "the sysctl program");
	close(fd);
	expect_off(t, "after I closed my fd");
}

static void holder(struct btest *t, enum tool tool, char *const argv[], bool terminal)
{
	char buf[128], sysctl_buf[128];
	const char *path = must_find(t, tool, buf, sizeof(buf));
	const char *sysctl = find(TOOL_SYSCTL, sysctl_buf, sizeof(sysctl_buf));
	pid_t pid = start(t, path, argv, terminal);
	bool holds = wait_holder(t, pid, tool);

	/* For a second, to see whether it stays. */
	for (int i = 0; holds && tool == TOOL_BPFTOP && i < 100; i++) {
		sleep_ms(10);
		holds = !ended(t, pid, tool);
	}
	if (!holds)
		btest_skip(t, "needs a %s that works here: it ended by itself", tools[tool].name);
	expect_on(t, "while %s holds a stats fd", tools[tool].name);
	all_counted(t, 100, tools[tool].name);
	for (int i = 0; sysctl && i < 4; i++) {
		set_by_tool(t, sysctl, i & 1);
		all_counted(t, 100, "sysctl and a tool that holds");
	}
	must_set(t, 0);
	all_counted(t, 100, tools[tool].name);
	end(t, pid, SIGKILL);
	expect_off_soon(t, "after SIGKILL of the tool that held it");
}

static void bpftop(struct btest *t)
{
	holder(t, TOOL_BPFTOP, (char *[]){"bpftop", NULL}, true);
}

/* Both ways to hold with it: for some time, and while a command runs. */
static void bpfcost(struct btest *t)
{
	holder(t, TOOL_BPFCOST, (char *[]){"bpfcost", "stats", "enable", "duration", "60", NULL},
	       false);
	holder(t, TOOL_BPFCOST, (char *[]){"bpfcost", "stats", "enable", "--", "sleep", "60", NULL},
	       false);
}

/* Old and new tools in a loop, for as long as they live. */
static void toggles(struct btest *t, struct peer *me, void *arg)
{
	peer_say(t, me, 0);
	for (int i = 1;; i++)
		set_by_tool(t, arg, i & 1);
}

static void shows(struct btest *t, struct peer *me, void *arg)
{
	peer_say(t, me, 0);
	for (;;) {
		int status;
		pid_t pid = start(t, arg, (char *[]){"bpftool", "-j", "prog", "show", NULL}, false);

		need(t, waitpid(pid, &status, 0), "waitpid");
	}
}

static void show_id(struct btest *t, int prog, char *text, size_t size)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	need(t, bpf_obj_get_info_by_fd(prog, &info, &len), "BPF_OBJ_GET_INFO_BY_FD");
	snprintf(text, size, "%u", info.id);
}

/* Runs that bpftool makes while bpfcost measures and the sysctl program toggles: how many there
 * were is known to whoever asked for them, and all three see as many. */
static void seen_by_all(struct btest *t)
{
	char buf[TOOLS][128], id[16], command[256], text[8192];
	const char *sysctl = must_find(t, TOOL_SYSCTL, buf[0], sizeof(buf[0]));
	const char *cost = must_find(t, TOOL_BPFCOST, buf[1], sizeof(buf[1]));
	const char *tool = must_find(t, TOOL_BPFTOOL, buf[2], sizeof(buf[2]));
	int prog = (int)need(t, bstats_observer(), "a program"), rounds = time_is_exact() ? 2 : 3;
	struct peer p = peer_start(t, toggles, (void *)sysctl);

	peer_hear(t, &p);
	show_id(t, prog, id, sizeof(id));
	snprintf(command, sizeof(command),
		 "exec %s prog run id %s data_in /proc/version repeat 1000 >/dev/null", tool, id);
	for (int i = 0; i < rounds; i++) {
		struct bstats before = must_info(t, prog), after;

		ask(t, cost,
		    (char *[]){"bpfcost", "-j", "prog", "stats", "id", id, "--", "sh", "-c",
			       command, NULL},
		    text, sizeof(text));
		after = must_info(t, prog);
		expect_eq(t, 1000, (long long)(after.run_cnt - before.run_cnt),
			  "runs counted of 1000");
		expect_eq(t, 1000, number_of(t, text, "run_cnt"),
			  "runs that 'bpfcost prog stats' saw of 1000");
		ask(t, tool, (char *[]){"bpftool", "-j", "prog", "show", "id", id, NULL}, text,
		    sizeof(text));
		expect_eq(t, (long long)after.run_cnt, number_of(t, text, "run_cnt"),
			  "run_cnt that 'bpftool prog show' says");
	}
	peer_kill(t, &p, SIGKILL);
	/* A sysctl program that outlived its starter may still write. */
	sleep_ms(200);
	must_set(t, 0);
	expect_off_soon(t, "after every tool ended and 0 was written");
}

static void everyone(struct btest *t)
{
	char buf[TOOLS][128], names[128] = "";
	const char *path[TOOLS];
	struct peer p[TOOLS];
	int peers = 0, fd, rounds = 0;
	pid_t held[TOOLS] = {};
	long long stop;

	for (int i = 0; i < TOOLS; i++)
		path[i] = find(i, buf[i], sizeof(buf[i]));
	if (!path[TOOL_SYSCTL])
		btest_skip(t, "needs sysctl (package procps)");
	if (path[TOOL_BPFTOP])
		held[TOOL_BPFTOP] = start(t, path[TOOL_BPFTOP], (char *[]){"bpftop", NULL}, true);
	if (path[TOOL_BPFCOST])
		held[TOOL_BPFCOST] = start(
			t, path[TOOL_BPFCOST],
			(char *[]){"bpfcost", "stats", "enable", "duration", "60", NULL}, false);
	/* Those who are still starting do not take part. */
	for (int i = 0; i < TOOLS; i++)
		if (held[i] && !wait_holder(t, held[i], i))
			held[i] = 0;
	p[peers++] = peer_start(t, toggles, (void *)path[TOOL_SYSCTL]);
	if (path[TOOL_BPFTOOL])
		p[peers++] = peer_start(t, shows, (void *)path[TOOL_BPFTOOL]);
	for (int i = 0; i < peers; i++)
		peer_hear(t, &p[i]);
	/* A busy second takes ten where time is counted in instructions. */
	for (stop = now_ns() + (time_is_exact() ? 200 : 2000) * 1000000LL; now_ns() < stop;
	     rounds++) {
		fd = must_open(t);
		all_counted(t, 200, "all tools");
		close(fd);
	}
	for (int i = 0; i < peers; i++)
		peer_kill(t, &p[i], SIGKILL);
	for (int i = 0; i < TOOLS; i++) {
		bool holds = i == TOOL_BPFTOP || i == TOOL_BPFCOST;

		if (held[i] && ended(t, held[i], i))
			held[i] = 0;
		if (held[i])
			end(t, held[i], SIGKILL);
		if (holds ? held[i] > 0 : path[i] != NULL)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s",
				 tools[i].name);
	}
	/* A sysctl program that outlived its starter may still write. */
	sleep_ms(200);
	must_set(t, 0);
	expect_off_soon(t, "after every tool was killed and 0 was written");
	btest_note(t, "%d times 200 runs beside%s", rounds, names);
}

static const char together[] =
	"an old tool with the sysctl and any number of new ones with fds share the switch";

static const struct btest_case cases[] = {
	{.name = "sysctl", .rule = together, .run = by_sysctl, .tags = "tools"},
	{.name = "bpftop", .rule = together, .run = bpftop, .tags = "tools"},
	{.name = "bpfcost", .rule = together, .run = bpfcost, .tags = "tools"},
	{.name = "seen-by-all", .rule = together, .run = seen_by_all, .tags = "tools"},
	{.name = "everyone", .rule = together, .run = everyone, .tags = "tools"},
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
