// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pty ROWS COLUMNS COMMAND...
 *
 * Runs COMMAND on a terminal, as a job of a shell, and does what the lines of standard input say:
 *
 *   expect TEXT      waits until TEXT is on the screen
 *   absent TEXT      waits until it is not
 *   send TEXT        types it
 *   signal NUMBER    sends a signal to COMMAND
 *   resize ROWS COLUMNS
 *   stopped          waits until COMMAND is stopped
 *   foreground, background    as a shell does, with a SIGCONT
 *   taken            waits until keys arrive one by one, and the screen is the other one
 *   restored         is the terminal as it was?
 *   height N         are there at most N lines with something in it?
 *   colours, plain   were there any colours; no escape sequence at all
 *   end STATUS       waits for the end, by a signal: 128 + its number
 *   quiet MS         nothing is written for so long
 *
 * Ends with 1 and a picture of the screen when something is not so within 60 s.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROWS    200
#define MAX_COLUMNS 400
#define TIMEOUT_MS  60000

struct grid {
	char cell[MAX_ROWS][MAX_COLUMNS + 1];
	int row, column;
};

struct terminal {
	int master, slave;
	int control, report; /* to and from the shell */
	pid_t shell, job;
	bool stopped, continued, ended;
	int status;

	int rows, columns;
	struct grid grid[2]; /* the usual screen, and the other one */
	bool other, hidden;
	bool colours, escapes;
	char escape[64];
	int escape_len; /* 0: not in a sequence */
	struct termios old;
};

static void die(const char *what)
{
	fprintf(stderr, "pty: %s: %s\n", what, strerror(errno));
	exit(2);
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* ---- the screen ---- */

static struct grid *grid(struct terminal *t)
{
	return &t->grid[t->other];
}

static void clear_line(struct terminal *t, int row, int from)
{
	memset(grid(t)->cell[row] + from, ' ', MAX_COLUMNS - from);
}

static void clear_screen(struct terminal *t, int row, int column)
{
	clear_line(t, row, column);
	while (++row < MAX_ROWS)
		clear_line(t, row, 0);
}

static void line_feed(struct terminal *t)
{
	struct grid *g = grid(t);

	if (g->row < t->rows - 1) {
		g->row++;
		return;
	}
	memmove(g->cell[0], g->cell[1], (MAX_ROWS - 1) * sizeof(g->cell[0]));
	clear_line(t, MAX_ROWS - 1, 0);
}

/* What plugin/screen.c uses, and no other. */
static void run_escape(struct terminal *t, const char *e)
{
	struct grid *g = grid(t);

	t->escapes = true;
	if (!strcmp(e, "[H"))
		g->row = g->column = 0;
	else if (!strcmp(e, "[K"))
		/* As in xterm: behind the last column it still is in it. */
		clear_line(t, g->row, g->column < t->columns ? g->column : t->columns - 1);
	else if (!strcmp(e, "[J"))
		clear_screen(t, g->row, g->column);
	else if (!strcmp(e, "[2J"))
		clear_screen(t, 0, 0);
	else if (!strcmp(e, "[?1049h") || !strcmp(e, "[?1049l"))
		t->other = e[6] == 'h';
	else if (!strcmp(e, "[?25h") || !strcmp(e, "[?25l"))
		t->hidden = e[4] == 'l';
	else if (e[strlen(e) - 1] == 'm')
		t->colours = true;
	else
		fprintf(stderr, "pty: unknown escape sequence: %s\n", e);
}

static void put(struct terminal *t, char c)
{
	struct grid *g = grid(t);

	if (t->escape_len) {
		t->escape[t->escape_len++ - 1] = c;
		t->escape[t->escape_len - 1] = '\0';
		if ((c >= '@' && c != '[') || t->escape_len == sizeof(t->escape) - 1) {
			t->escape_len = 0;
			run_escape(t, t->escape);
		}
		return;
	}
	switch (c) {
	case '\033':
		t->escape_len = 1;
		return;
	case '\r':
		g->column = 0;
		return;
	case '\n':
		line_feed(t);
		return;
	}
	if (g->column == t->columns) {
		g->column = 0;
		line_feed(t);
	}
	g->cell[g->row][g->column++] = c;
}

static bool has(struct terminal *t, const char *text)
{
	int row;

	for (row = 0; row < t->rows; row++)
		if (strstr(grid(t)->cell[row], text))
			return true;
	return false;
}

static int width(struct terminal *t, int row)
{
	int n = MAX_COLUMNS;

	while (n && grid(t)->cell[row][n - 1] == ' ')
		n--;
	return n;
}

static void picture(struct terminal *t)
{
	int row;

	fprintf(stderr, "the screen%s, %d x %d:\n", t->other ? " (the other one)" : "", t->rows,
		t->columns);
	for (row = 0; row < t->rows; row++)
		fprintf(stderr, "|%.*s\n", width(t, row), grid(t)->cell[row]);
}

/* ---- the shell and its job ---- */

static void run_shell(struct terminal *t, int control, int report, char **argv)
{
	struct pollfd p = {.fd = control, .events = POLLIN};
	int status, message[2];
	char c;
	pid_t pid;

	if (setsid() < 0 || ioctl(t->slave, TIOCSCTTY, 0))
		die("controlling terminal");
	/* As a shell does: the terminal can be given away from the background. */
	signal(SIGTTOU, SIG_IGN);
	t->job = fork();
	if (t->job < 0)
		die("fork");
	if (!t->job) {
		setpgid(0, 0);
		tcsetpgrp(t->slave, getpid());
		signal(SIGTTOU, SIG_DFL);
		signal(SIGTSTP, SIG_DFL);
		if (dup2(t->slave, 0) < 0 || dup2(t->slave, 1) < 0 || dup2(t->slave, 2) < 0)
			_exit(126);
		execvp(argv[0], argv);
		_exit(127);
	}
	setpgid(t->job, t->job);
	message[0] = -1;
	message[1] = t->job;
	if (write(report, message, sizeof(message)) != sizeof(message))
		_exit(1);
	for (;;) {
		pid = waitpid(t->job, &status, WNOHANG | WUNTRACED | WCONTINUED);
		if (pid == t->job) {
			message[0] = 0;
			message[1] = status;
			if (write(report, message, sizeof(message)) != sizeof(message))
				_exit(1);
			if (WIFEXITED(status) || WIFSIGNALED(status))
				_exit(0);
			continue;
		}
		if (poll(&p, 1, 20) <= 0)
			continue;
		if (read(control, &c, 1) != 1)
			_exit(0);
		tcsetpgrp(t->slave, c == 'f' ? t->job : getpid());
		kill(-t->job, SIGCONT);
	}
}

static void start(struct terminal *t, char **argv)
{
	struct winsize size = {.ws_row = t->rows, .ws_col = t->columns};
	int to[2], from[2];
	char name[128];

	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->master < 0 || grantpt(t->master) || unlockpt(t->master) ||
	    ptsname_r(t->master, name, sizeof(name)))
		die("pseudo-terminal");
	/* Held open, or else what the last one wrote is lost, and its modes cannot be seen. */
	t->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->slave < 0 || ioctl(t->slave, TIOCSWINSZ, &size) || tcgetattr(t->slave, &t->old))
		die(name);
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		die("pipe");
	t->shell = fork();
	if (t->shell < 0)
		die("fork");
	if (!t->shell) {
		close(to[1]);
		close(from[0]);
		run_shell(t, to[0], from[1], argv);
	}
	close(to[0]);
	close(from[1]);
	t->control = to[1];
	t->report = from[0];
}

static void hear(struct terminal *t)
{
	int message[2];

	if (read(t->report, message, sizeof(message)) != sizeof(message)) {
		close(t->report);
		t->report = -1;
		return;
	}
	if (message[0] < 0) {
		t->job = message[1];
		return;
	}
	t->stopped = WIFSTOPPED(message[1]);
	t->continued = WIFCONTINUED(message[1]);
	if (WIFEXITED(message[1]) || WIFSIGNALED(message[1])) {
		t->ended = true;
		t->status = WIFEXITED(message[1]) ? WEXITSTATUS(message[1])
						  : 128 + WTERMSIG(message[1]);
	}
}

/* Takes what there is, and waits for it at most so long. Whether something was written. */
static bool take(struct terminal *t, int ms)
{
	struct pollfd p[] = {
		{.fd = t->master, .events = POLLIN},
		{.fd = t->report, .events = POLLIN},
	};
	char buf[4096];
	ssize_t n, i;

	if (poll(p, 2, ms) <= 0)
		return false;
	if (p[1].revents)
		hear(t);
	if (!(p[0].revents & POLLIN))
		return false;
	n = read(t->master, buf, sizeof(buf));
	for (i = 0; i < n; i++)
		put(t, buf[i]);
	return n > 0;
}

/* ---- what is asked ---- */

static bool is_raw(struct terminal *t)
{
	struct termios now;

	return !tcgetattr(t->slave, &now) && !(now.c_lflag & (ICANON | ECHO)) && now.c_lflag & ISIG;
}

static bool is_restored(struct terminal *t)
{
	struct termios now;

	return !tcgetattr(t->slave, &now) && now.c_lflag == t->old.c_lflag &&
	       now.c_iflag == t->old.c_iflag && now.c_oflag == t->old.c_oflag && !t->other &&
	       !t->hidden;
}

static bool is_low(struct terminal *t, int height)
{
	int row, n = 0;

	for (row = 0; row < t->rows; row++)
		n += width(t, row) != 0;
	return n <= height;
}

/* -1: there is no such word. */
static int holds(struct terminal *t, const char *word, const char *rest)
{
	if (!strcmp(word, "expect"))
		return has(t, rest);
	if (!strcmp(word, "absent"))
		return !has(t, rest);
	if (!strcmp(word, "stopped"))
		return t->stopped;
	if (!strcmp(word, "taken"))
		return t->other && t->hidden && is_raw(t);
	if (!strcmp(word, "restored"))
		return is_restored(t);
	if (!strcmp(word, "height"))
		return is_low(t, atoi(rest));
	if (!strcmp(word, "colours"))
		return t->colours;
	if (!strcmp(word, "plain"))
		return !t->escapes;
	if (!strcmp(word, "end"))
		return t->ended && t->status == atoi(rest);
	return -1;
}

static void resize(struct terminal *t, const char *rest)
{
	struct winsize size = {};

	if (sscanf(rest, "%d %d", &t->rows, &t->columns) != 2)
		die("resize");
	size.ws_row = t->rows;
	size.ws_col = t->columns;
	if (ioctl(t->master, TIOCSWINSZ, &size))
		die("resize");
}

/* Does something at once; false if there is no such word. */
static bool act(struct terminal *t, const char *word, const char *rest)
{
	size_t len = strlen(rest);
	long long end;

	if (!strcmp(word, "send")) {
		if (write(t->master, rest, len) != (ssize_t)len)
			die("send");
	} else if (!strcmp(word, "signal")) {
		kill(t->job, atoi(rest));
	} else if (!strcmp(word, "resize")) {
		resize(t, rest);
	} else if (!strcmp(word, "foreground") || !strcmp(word, "background")) {
		t->continued = !t->stopped;
		if (write(t->control, word, 1) != 1)
			die(word);
		/* A signal that is to stop it again is lost if it comes before this one. */
		for (end = now_ms() + TIMEOUT_MS; !t->continued && now_ms() < end;)
			take(t, 50);
	} else if (!strcmp(word, "quiet")) {
		for (end = now_ms() + atoi(rest); now_ms() < end;) {
			if (take(t, 20)) {
				fprintf(stderr, "pty: something was written\n");
				picture(t);
				exit(1);
			}
		}
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct terminal *t = calloc(1, sizeof(*t));
	char line[512], *word, *rest;
	long long end;
	int rc = 0, state, i;

	if (argc < 4 || !t)
		return 2;
	t->rows = atoi(argv[1]);
	t->columns = atoi(argv[2]);
	for (i = 0; i < 2; i++) {
		t->other = !i;
		clear_screen(t, 0, 0);
	}
	start(t, argv + 3);
	while (!rc && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		word = line + strspn(line, " \t");
		rest = word + strcspn(word, " ");
		if (*rest)
			*rest++ = '\0';
		if (!*word || act(t, word, rest))
			continue;
		for (end = now_ms() + TIMEOUT_MS; (state = holds(t, word, rest)) == 0;) {
			if (now_ms() > end)
				break;
			take(t, 50);
		}
		if (state != 1) {
			fprintf(stderr, "pty: not so%s: %s %s (ended %d, status %d)\n",
				state < 0 ? ", and no word of mine" : "", word, rest, t->ended,
				t->status);
			picture(t);
			rc = 1;
		}
	}
	if (!t->ended && t->job > 0)
		kill(t->job, SIGKILL);
	free(t);
	return rc;
}
