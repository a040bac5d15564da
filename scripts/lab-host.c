// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lab-host: the part of scripts/lab that runs on the host and wants to be quick and exact.
 *
 *	lab-host pack FILE=GUESTPATH...  > ARCHIVE
 *	lab-host run [OPTION]... -- QEMU ARG...
 *
 * `pack` writes an archive for a guest's initial file system. `run` puts such archives together,
 * starts the emulator, takes apart what comes over the guest's console, and ends as the guest's
 * command ended. Nothing survives it, even when it is killed: the initial file system is memory,
 * and the emulator dies with its parent.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lab-frame.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Exit statuses of our own; Documentation/lab.rst names them for users. */
enum {
	STATUS_USAGE = 2,
	STATUS_REPORT = 123,
	STATUS_TIMEOUT = 124,
	STATUS_LAB = 125,
};

#define TAIL_LINES   40	 /* of console or log, where only the last ones are shown */
#define REPORT_LINES 400 /* of log, from the first report on */

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("lab: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

__attribute__((format(printf, 2, 3))) static _Noreturn void die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("lab: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

static void *xrealloc(void *p, size_t n)
{
	p = realloc(p, n);
	if (!p)
		die(STATUS_LAB, "out of memory");
	return p;
}

/*
 * Archives: cpio's "newc" format, the one that the kernel unpacks.
 */

struct archive {
	FILE *f;
	unsigned int ino;
	uint64_t pos;
};

static void put(struct archive *a, const void *data, size_t len)
{
	if (len && fwrite(data, len, 1, a->f) != 1)
		die(STATUS_LAB, "cannot write the guest's files: %s", strerror(errno));
	a->pos += len;
}

static void align(struct archive *a, unsigned int to)
{
	static const char zeros[512];

	put(a, zeros, (to - a->pos % to) % to);
}

static void put_header(struct archive *a, const char *name, mode_t mode, time_t mtime,
		       uint64_t size)
{
	size_t len = strlen(name) + 1;
	char h[111];

	if (size > UINT32_MAX)
		die(STATUS_LAB, "%s: too large for a guest's initial file system", name);
	/* Every file belongs to root in the guest, whoever runs the lab. */
	snprintf(h, sizeof(h), "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		 ++a->ino, mode, 0, 0, 1, (unsigned int)mtime, (unsigned int)size, 0, 0, 0, 0,
		 (unsigned int)len, 0);
	put(a, h, 110);
	put(a, name, len);
	align(a, 4);
}

static void put_data(struct archive *a, const char *name, mode_t mode, const void *data, size_t len)
{
	put_header(a, name, mode, 0, len);
	put(a, data, len);
	align(a, 4);
}

static void put_file(struct archive *a, const char *path, const char *name, const struct stat *st)
{
	uint64_t left = st->st_size;
	char buf[1 << 16];
	FILE *f;

	f = fopen(path, "re");
	if (!f) {
		/* Somebody may be building in the directory at this very moment. */
		if (errno == ENOENT)
			return;
		die(STATUS_LAB, "%s: %s", path, strerror(errno));
	}
	put_header(a, name, st->st_mode, st->st_mtime, left);
	while (left) {
		size_t n = fread(buf, 1, left < sizeof(buf) ? left : sizeof(buf), f);

		if (!n)
			die(STATUS_LAB, "%s: changed while it was read", path);
		put(a, buf, n);
		left -= n;
	}
	fclose(f);
	align(a, 4);
}

static void put_link(struct archive *a, const char *path, const char *name, const struct stat *st)
{
	char buf[4096];
	ssize_t n = readlink(path, buf, sizeof(buf));

	if (n < 0)
		die(STATUS_LAB, "%s: %s", path, strerror(errno));
	put_header(a, name, st->st_mode, st->st_mtime, n);
	put(a, buf, n);
	align(a, 4);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Dependency files of the compiler are of no use in a guest. */
static bool unwanted(const char *name)
{
	size_t len = strlen(name);

	return len > 2 && !strcmp(name + len - 2, ".d");
}

/* Adds what is at path under the name guest, "" for the root. */
static void put_tree(struct archive *a, const char *path, const char *guest)
{
	char *roots[] = {(char *)path, NULL};
	size_t skip = strlen(path);
	FTSENT *e;
	FTS *fts;

	fts = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	if (!fts)
		die(STATUS_LAB, "%s: %s", path, strerror(errno));
	while ((e = fts_read(fts))) {
		char name[4096];

		if (e->fts_pathlen == skip)
			snprintf(name, sizeof(name), "%s", guest);
		else
			snprintf(name, sizeof(name), "%s%s%s", guest, *guest ? "/" : "",
				 e->fts_path + skip + 1);
		switch (e->fts_info) {
		case FTS_D:
			if (*name)
				put_header(a, name, e->fts_statp->st_mode, e->fts_statp->st_mtime,
					   0);
			break;
		case FTS_F:
			if (!unwanted(e->fts_name))
				put_file(a, e->fts_accpath, name, e->fts_statp);
			break;
		case FTS_SL:
		case FTS_SLNONE:
			put_link(a, e->fts_accpath, name, e->fts_statp);
			break;
		case FTS_DNR:
		case FTS_ERR:
		case FTS_NS:
			if (e->fts_errno != ENOENT || e->fts_level == FTS_ROOTLEVEL)
				die(STATUS_LAB, "%s: %s", e->fts_path, strerror(e->fts_errno));
			break;
		}
	}
	fts_close(fts);
}

/* FILE=GUESTPATH */
static void put_spec(struct archive *a, char *spec)
{
	char *eq = strrchr(spec, '=');
	size_t len;

	if (!eq)
		die(STATUS_USAGE, "%s: not of the form FILE=GUESTPATH", spec);
	*eq = '\0';
	len = strlen(spec);
	while (len > 1 && spec[len - 1] == '/')
		spec[--len] = '\0';
	put_tree(a, spec, eq[1] == '/' ? eq + 2 : eq + 1);
}

static void put_end(struct archive *a)
{
	put_header(a, "TRAILER!!!", 0, 0, 0);
	align(a, 512);
}

static void put_archive(struct archive *a, const char *path)
{
	char buf[1 << 16];
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		die(STATUS_LAB, "%s: %s", path, strerror(errno));
	while ((n = fread(buf, 1, sizeof(buf), f)))
		put(a, buf, n);
	if (ferror(f))
		die(STATUS_LAB, "%s: %s", path, strerror(errno));
	fclose(f);
	align(a, 512);
}

static int pack(int argc, char **argv)
{
	struct archive a = {.f = stdout};

	for (int i = 0; i < argc; i++)
		put_spec(&a, argv[i]);
	put_end(&a);
	if (fflush(stdout) == EOF)
		die(STATUS_LAB, "cannot write the archive: %s", strerror(errno));
	return 0;
}

/*
 * Lines: text that may have to be shown later.
 */

struct lines {
	char **line;
	size_t n;
};

static void lines__add(struct lines *l, const char *text, size_t len)
{
	l->line = xrealloc(l->line, (l->n + 1) * sizeof(*l->line));
	l->line[l->n] = strndup(text, len);
	if (!l->line[l->n++])
		die(STATUS_LAB, "out of memory");
}

static void lines__show(const struct lines *l, size_t from, size_t max)
{
	for (size_t i = from; i < l->n && i - from < max; i++)
		fprintf(stderr, "lab| %s\n", l->line[i]);
	if (l->n > from && l->n - from > max)
		say("%zu more lines", l->n - from - max);
}

static void lines__show_tail(const struct lines *l)
{
	lines__show(l, l->n > TAIL_LINES ? l->n - TAIL_LINES : 0, TAIL_LINES);
}

/*
 * What a kernel writes when something is wrong with it. None of it appears in a log in which all is
 * well, so the text alone decides, not the level.
 */
static bool is_report(const char *text)
{
	static const char *const begin[] = {
		"WARNING: ",
		"BUG: ",
		"INFO: task ",
		"INFO: rcu",
		"INFO: possible ",
		"INFO: inconsistent ",
		"INFO: suspicious ",
		"INFO: trying to register non-static key",
		"INFO: HARDIRQ-safe",
		"INFO: SOFTIRQ-safe",
		"Oops",
		"UBSAN: ",
		"general protection fault",
	};
	static const char *const within[] = {
		"------------[ cut here ]------------",
		"kernel BUG at ",
		"BUG: ",
		"Kernel panic",
		"Internal error: ",
		"Unable to handle kernel",
		"Oops: ",
		"rcu: INFO: ",
		"detected stall",
		"detected expedited stall",
		"DEBUG_LOCKS_WARN_ON",
		"possible recursive locking detected",
		"possible circular locking dependency",
		"possible irq lock inversion",
		"inconsistent lock state",
		"bad unlock balance detected",
		"lock held when returning to user space",
		"lock held at task exit",
		"held lock freed",
		"suspicious RCU usage",
		"Invalid wait context",
		"double fault",
	};

	for (size_t i = 0; i < ARRAY_SIZE(begin); i++)
		if (!strncmp(text, begin[i], strlen(begin[i])))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(within); i++)
		if (strstr(text, within[i]))
			return true;
	return false;
}

/*
 * The guest
 */

struct guest {
	pid_t qemu;
	int console;  /* what the guest writes */
	int messages; /* what the emulator itself has to say */
	int signals;  /* that end us */
	int timeout;
	bool debug;
	bool started;
	bool disturbed; /* a frame was lost */
	int status;	/* -1 until the guest has sent one */
	struct timespec begin;

	unsigned char *frame; /* encoded, without BEGIN */
	size_t frame_len, frame_cap;
	bool in_frame;

	char text[512]; /* a console line that is not complete yet */
	size_t text_len;

	struct lines console_text, log, qemu_text;
	ssize_t report; /* first line of the log that is a report, or -1 */
	bool console_report;
};

static double elapsed(const struct guest *g)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - g->begin.tv_sec + (now.tv_nsec - g->begin.tv_nsec) / 1e9;
}

static int verdict(struct guest *g, bool timeout);

static void end_text(struct guest *g)
{
	if (!g->text_len)
		return;
	g->text[g->text_len] = '\0';
	if (g->debug)
		fprintf(stderr, "lab| %s\n", g->text);
	if (is_report(g->text))
		g->console_report = true;
	lines__add(&g->console_text, g->text, g->text_len);
	g->text_len = 0;
}

static void text_byte(struct guest *g, unsigned char c)
{
	if (c == '\n') {
		end_text(g);
		return;
	}
	/* Nothing of what firmware does to a terminal. */
	if (c != '\t' && (c < ' ' || c == 0x7f))
		return;
	if (g->text_len == sizeof(g->text) - 1)
		end_text(g);
	g->text[g->text_len++] = c;
}

static _Noreturn void finish(struct guest *g, int status)
{
	kill(g->qemu, SIGKILL);
	waitpid(g->qemu, NULL, 0);
	exit(status);
}

/* Waits for one of fds, of which the last one is ours to fill; ends us when it is time to end. */
static void wait_for(struct guest *g, struct pollfd *fds, int n)
{
	double left = g->timeout - elapsed(g);
	struct signalfd_siginfo si;

	if (left <= 0)
		finish(g, verdict(g, true));
	fds[n - 1].fd = g->signals;
	fds[n - 1].events = POLLIN;
	if (poll(fds, n, (int)(left * 1000) + 1) < 0) {
		if (errno != EINTR)
			die(STATUS_LAB, "poll: %s", strerror(errno));
		for (int i = 0; i < n; i++)
			fds[i].revents = 0;
	}
	if (fds[n - 1].revents && read(g->signals, &si, sizeof(si)) == sizeof(si)) {
		say("ended by signal %u", si.ssi_signo);
		finish(g, 128 + si.ssi_signo);
	}
}

static void output(struct guest *g, int fd, const unsigned char *p, size_t len)
{
	while (len) {
		struct pollfd fds[2] = {{.fd = fd, .events = POLLOUT}};
		ssize_t n;

		/* Whoever reads may be slow, or not read at all; so much never blocks. */
		wait_for(g, fds, ARRAY_SIZE(fds));
		if (!fds[0].revents)
			continue;
		n = write(fd, p, len < PIPE_BUF ? len : PIPE_BUF);
		if (n < 0) {
			if (errno == EINTR || errno == EAGAIN)
				continue;
			say("cannot write the command's output: %s", strerror(errno));
			finish(g, STATUS_LAB);
		}
		p += n;
		len -= n;
	}
}

/* "priority,sequence,microseconds,flags;message" */
static void log_record(struct guest *g, const char *p, size_t len)
{
	const char *text = memchr(p, ';', len), *end = p + len;
	unsigned long long us = 0;
	char line[FRAME_MAX + 32];
	int head;

	if (!text || sscanf(p, "%*u,%*u,%llu", &us) != 1)
		return;
	text++;
	head = snprintf(line, sizeof(line), "[%5llu.%06llu] ", us / 1000000, us % 1000000);
	snprintf(line + head, sizeof(line) - head, "%.*s", (int)(end - text), text);
	if (g->debug)
		fprintf(stderr, "lab| %s\n", line);
	if (g->report < 0 && is_report(line + head))
		g->report = g->log.n;
	lines__add(&g->log, line, strlen(line));
}

static void frame(struct guest *g, unsigned char type, const unsigned char *data, size_t len)
{
	char buf[16];

	switch (type) {
	case FRAME_START:
		end_text(g);
		g->started = true;
		/* What the kernel thinks of the emulated machine is not the command's doing. */
		g->console_report = false;
		if (g->debug)
			say("the command starts, after %.1f s", elapsed(g));
		break;
	case FRAME_OUT:
		output(g, STDOUT_FILENO, data, len);
		break;
	case FRAME_ERR:
		output(g, STDERR_FILENO, data, len);
		break;
	case FRAME_LOG:
		log_record(g, (const char *)data, len);
		break;
	case FRAME_NOTE:
		say("guest: %.*s", (int)len, data);
		break;
	case FRAME_EXIT:
		snprintf(buf, sizeof(buf), "%.*s", (int)len, data);
		g->status = atoi(buf);
		if (g->debug)
			say("the command ended, after %.1f s", elapsed(g));
		break;
	}
}

/* Decodes in place. False if it is no frame: the kernel wrote into it, or it is noise. */
static bool end_frame(struct guest *g)
{
	unsigned char *p = g->frame, *out = g->frame;
	uint32_t sum = 0;
	size_t len;

	for (size_t i = 0; i < g->frame_len; i++) {
		unsigned char c = p[i];

		if (c == FRAME_ESC) {
			if (++i == g->frame_len)
				return false;
			c = p[i] ^ FRAME_FLIP;
		}
		*out++ = c;
	}
	len = out - g->frame;
	if (len < 5 || len > FRAME_MAX + 5)
		return false;
	len -= 5;
	for (int i = 0; i < 4; i++)
		sum |= (uint32_t)p[1 + len + i] << 8 * i;
	if (sum != frame_checksum(p[0], p + 1, len))
		return false;
	frame(g, p[0], p + 1, len);
	return true;
}

/* What looked like a frame is shown as text. */
static void drop_frame(struct guest *g)
{
	g->disturbed |= g->started;
	for (size_t i = 0; i < g->frame_len; i++)
		text_byte(g, g->frame[i]);
	end_text(g);
}

static void console_byte(struct guest *g, unsigned char c)
{
	if (c == FRAME_BEGIN) {
		if (g->in_frame)
			drop_frame(g);
		g->in_frame = true;
		g->frame_len = 0;
	} else if (!g->in_frame) {
		text_byte(g, c);
	} else if (c == FRAME_END) {
		g->in_frame = false;
		if (!end_frame(g))
			drop_frame(g);
	} else {
		if (g->frame_len == g->frame_cap) {
			g->frame_cap = g->frame_cap ? 2 * g->frame_cap : FRAME_ENCODED_MAX;
			g->frame = xrealloc(g->frame, g->frame_cap);
		}
		g->frame[g->frame_len++] = c;
	}
}

static bool read_console(struct guest *g)
{
	unsigned char buf[1 << 16];
	ssize_t n = read(g->console, buf, sizeof(buf));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	for (ssize_t i = 0; i < n && g->status < 0; i++)
		console_byte(g, buf[i]);
	return n > 0;
}

static bool read_messages(struct guest *g)
{
	char buf[4096], *p = buf, *nl;
	ssize_t n = read(g->messages, buf, sizeof(buf) - 1);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	buf[n] = '\0';
	for (; *p; p = nl) {
		nl = strchrnul(p, '\n');
		lines__add(&g->qemu_text, p, nl - p);
		if (g->debug)
			fprintf(stderr, "lab| %.*s\n", (int)(nl - p), p);
		nl += *nl == '\n';
	}
	return n > 0;
}

static void start_qemu(struct guest *g, char **argv, int initrd, const sigset_t *mask)
{
	int out[2], err[2];
	pid_t parent = getpid();

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		die(STATUS_LAB, "pipe: %s", strerror(errno));
	clock_gettime(CLOCK_MONOTONIC, &g->begin);
	g->qemu = fork();
	if (g->qemu < 0)
		die(STATUS_LAB, "fork: %s", strerror(errno));
	if (g->qemu == 0) {
		/* Killed outright, we could not end the emulator; then the kernel does. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(STATUS_LAB);
		sigprocmask(SIG_SETMASK, mask, NULL);
		dup2(open("/dev/null", O_RDONLY), 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		fcntl(initrd, F_SETFD, 0);
		execvp(argv[0], argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(STATUS_LAB);
	}
	close(out[1]);
	close(err[1]);
	g->console = out[0];
	g->messages = err[0];
}

static void show_report(const struct guest *g)
{
	size_t from = g->report > 2 ? g->report - 2 : 0;

	say("the kernel reported a problem:");
	lines__show(&g->log, from, REPORT_LINES);
}

/* The guest is gone, or is to be. Says what happened; as what do we end? */
static int verdict(struct guest *g, bool timeout)
{
	/* A crash can fall into a frame. */
	if (g->in_frame)
		drop_frame(g);
	end_text(g);
	if (g->disturbed && g->status >= 0)
		say("the kernel wrote to the console; output of the command may be missing");
	if (g->status == FRAME_STATUS_LAB)
		return STATUS_LAB;
	if (g->status >= 0) {
		if (g->report < 0 && !g->console_report)
			return g->disturbed ? STATUS_LAB : g->status;
		if (g->report >= 0) {
			show_report(g);
		} else {
			say("the kernel reported a problem:");
			lines__show_tail(&g->console_text);
		}
		say("the command itself ended with status %d", g->status);
		return STATUS_REPORT;
	}

	/* A panic is on the console only: nobody was left to read the log. */
	if (g->console_report) {
		say("the kernel %s:",
		    timeout ? "reported a problem, and the guest hangs" : "crashed");
		if (!g->debug)
			lines__show(&g->console_text, 0, REPORT_LINES);
		return STATUS_REPORT;
	}
	if (timeout && !g->started)
		say("timed out after %d s: the guest did not come up%s", g->timeout,
		    g->debug ? "" : " (--debug shows its boot)");
	else if (timeout)
		say("timed out after %d s", g->timeout);
	else if (g->started)
		say("the guest was switched off or restarted before the command ended");
	else
		say("the guest did not come up%s", g->debug ? "" : " (--debug shows its boot)");
	if (!g->debug) {
		if (g->console_text.n)
			say("the last lines on its console:");
		lines__show_tail(&g->console_text);
		if (g->log.n)
			say("the last lines of its kernel's log:");
		lines__show_tail(&g->log);
		lines__show_tail(&g->qemu_text);
	}
	if (g->report >= 0) {
		show_report(g);
		return STATUS_REPORT;
	}
	return timeout ? STATUS_TIMEOUT : STATUS_LAB;
}

static int watch(struct guest *g)
{
	struct pollfd fds[3] = {
		{.fd = g->console, .events = POLLIN},
		{.fd = g->messages, .events = POLLIN},
	};

	while (g->status < 0 && fds[0].fd >= 0) {
		wait_for(g, fds, ARRAY_SIZE(fds));
		if (fds[1].revents && !read_messages(g))
			fds[1].fd = -1;
		if (fds[0].revents && !read_console(g))
			fds[0].fd = -1;
		/* The emulator writes byte by byte; to be woken for each would slow it down. */
		usleep(500);
	}
	while (g->status < 0 && fds[1].fd >= 0 && read_messages(g))
		;
	return verdict(g, false);
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{"timeout", required_argument, NULL, 't'},
		{"archive", required_argument, NULL, 'a'},
		{"file", required_argument, NULL, 'f'},
		{"arg", required_argument, NULL, 'c'},
		{"debug", no_argument, NULL, 'd'},
		{},
	};
	struct guest g = {.status = -1, .report = -1};
	struct archive a = {};
	char *args = NULL, **qemu, initrd[32];
	size_t args_len = 0;
	sigset_t mask, old;
	int opt, fd, n;

	fd = memfd_create("initrd", MFD_CLOEXEC);
	if (fd < 0)
		die(STATUS_LAB, "memfd_create: %s", strerror(errno));
	a.f = fdopen(fd, "w");
	if (!a.f)
		die(STATUS_LAB, "fdopen: %s", strerror(errno));

	while ((opt = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (opt) {
		case 't':
			g.timeout = atoi(optarg);
			break;
		case 'a':
			put_archive(&a, optarg);
			break;
		case 'f':
			put_spec(&a, optarg);
			put_end(&a);
			break;
		case 'c':
			n = strlen(optarg) + 1;
			args = xrealloc(args, args_len + n);
			memcpy(args + args_len, optarg, n);
			args_len += n;
			break;
		case 'd':
			g.debug = true;
			break;
		default:
			return STATUS_USAGE;
		}
	}
	if (optind == argc || !args || g.timeout <= 0)
		die(STATUS_USAGE, "lab-host is not to be called directly; see scripts/lab");

	put_header(&a, "lab", S_IFDIR | 0755, 0, 0);
	put_data(&a, "lab/argv", S_IFREG | 0644, args, args_len);
	put_end(&a);
	if (fflush(a.f) == EOF)
		die(STATUS_LAB, "cannot write the guest's files: %s", strerror(errno));

	n = argc - optind;
	qemu = xrealloc(NULL, (n + 3) * sizeof(*qemu));
	memcpy(qemu, argv + optind, n * sizeof(*qemu));
	snprintf(initrd, sizeof(initrd), "/proc/self/fd/%d", fd);
	qemu[n++] = "-initrd";
	qemu[n++] = initrd;
	qemu[n] = NULL;

	sigemptyset(&mask);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, &old);
	g.signals = signalfd(-1, &mask, SFD_CLOEXEC);
	if (g.signals < 0)
		die(STATUS_LAB, "signalfd: %s", strerror(errno));
	start_qemu(&g, qemu, fd, &old);
	fclose(a.f);
	finish(&g, watch(&g));
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "pack"))
		return pack(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], "run"))
		return run(argc - 1, argv + 1);
	die(STATUS_USAGE, "lab-host is not to be called directly; see scripts/lab");
}
