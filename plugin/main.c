// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bpfcost [OPTIONS] OBJECT { COMMAND | help }
 *
 * What is not ours goes to bpftool, with the arguments as they came.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <json-c/json.h>

#include "bpftool.h"
#include "ctx.h"
#include "help.h"
#include "parse.h"
#include "text.h"
#include "view.h"

/* The only state outside of a function: libbpf's print callback gets no argument. */
static bool libbpf_debug;

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	return libbpf_debug ? vfprintf(stderr, fmt, ap) : 0;
}

/* Names that others chose, and words from the command line, may be any bytes. */
static void say(const struct ctx *ctx, const char *fmt, va_list ap)
{
	char text[4096], shown[4 * sizeof(text)];

	vsnprintf(text, sizeof(text), fmt, ap);
	fprintf(ctx->msg, "%s\n", text__message(text, shown, sizeof(shown)));
}

void note(const struct ctx *ctx, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(ctx, fmt, ap);
	va_end(ap);
}

void debug(const struct ctx *ctx, const char *fmt, ...)
{
	va_list ap;

	if (!ctx->debug)
		return;
	va_start(ap, fmt);
	say(ctx, fmt, ap);
	va_end(ap);
}

/*
 * A command of ours is found by a beginning of its words, unless bpftool has another one that
 * begins so and comes first there: @min is the shortest beginning that is ours.
 */
struct cmd {
	const char *object;
	size_t object_min;
	const char *command; /* NULL: the object is the command */
	size_t command_min;
	command_fn fn;
};

static const struct cmd cmds[] = {
	/* bpftool: `p` is prog, `prog p` is pin. */
	{"prog", 1, "profile", 2, cmd_prog_profile},
	/* bpftool: `prog s` is show. */
	{"prog", 1, "stats", 2, cmd_prog_stats},
	/* bpftool has no `prog b` and no `prog c`. */
	{"prog", 1, "bench", 1, cmd_prog_bench},
	{"prog", 1, "compare", 1, cmd_prog_compare},
	/* bpftool: `m` is map. */
	{"metric", 2, "list", 1, cmd_metric_list},
	/* bpftool: `s` and `st` are struct_ops. */
	{"stats", 3, "show", 1, cmd_stats_show},
	{"stats", 3, "enable", 1, cmd_stats_enable},
	/* bpftool: `c` is cgroup. */
	{"calibrate", 2, NULL, 0, cmd_calibrate},
	{}};

static bool is_word(const char *word, const char *full, size_t min)
{
	return strlen(word) >= min && parse__is_prefix(word, full);
}

static const struct cmd *find(const char *object, const char *command)
{
	const struct cmd *c;

	for (c = cmds; c->object; c++)
		if (is_word(object, c->object, c->object_min) &&
		    (!c->command || is_word(command, c->command, c->command_min)))
			return c;
	return NULL;
}

static bool is_own_object(const char *object)
{
	const struct cmd *c;

	for (c = cmds; c->object; c++)
		if (strcmp(c->object, "prog") && is_word(object, c->object, c->object_min))
			return true;
	return false;
}

/* `OBJECT COMMAND help`, or `COMMAND help` for what is no object. */
static bool has_help(const struct cmd *cmd, int n, char **words)
{
	int at = cmd->command ? 2 : 1;

	return n > at && !strcmp(words[at], "help");
}

static int version(const struct ctx *ctx)
{
	struct json_object *doc;
	int rc = EXIT_DONE;

	if (!ctx->json) {
		fprintf(ctx->out, "bpfcost v" BPFCOST_VERSION "\nusing libbpf v%u.%u\n",
			libbpf_major_version(), libbpf_minor_version());
		return rc;
	}
	doc = json_object_new_object();
	if (!doc ||
	    json_object_object_add(doc, "version", json_object_new_string(BPFCOST_VERSION)) ||
	    json_object_object_add(doc, "libbpf_version",
				   json_object_new_string(libbpf_version_string() + 1)))
		rc = EXIT_NOT_MEASURED;
	else
		fprintf(ctx->out, "%s\n",
			json_object_to_json_string_ext(doc, ctx->pretty ? JSON_C_TO_STRING_PRETTY
									: JSON_C_TO_STRING_PLAIN));
	json_object_put(doc);
	return rc;
}

/* Help is no result: it goes to stderr. A parser gets what it gets from bpftool: null. */
static int own_help(const struct ctx *ctx)
{
	if (ctx->json)
		fputs("null\n", ctx->out);
	else
		fputs(help__text(), ctx->msg);
	return EXIT_DONE;
}

/* Our part, then bpftool's. Without a bpftool ours is all there is. */
static int help(const struct ctx *ctx, int argc, char **argv)
{
	if (!bpftool__has())
		return own_help(ctx);
	if (!ctx->json)
		fputs(help__text(), ctx->msg);
	fflush(ctx->msg);
	return bpftool__exec(ctx, argc, argv);
}

static int finish(struct ctx *ctx, int status)
{
	if (ctx->err->status != EXIT_DONE) {
		view__error(ctx, ctx->err);
		if (status == EXIT_DONE)
			status = ctx->err->status;
	}
	if (fflush(ctx->out) || ferror(ctx->out)) {
		fprintf(ctx->msg, "Error: cannot write the result: %s\n", strerror(errno));
		if (status == EXIT_DONE)
			status = EXIT_NOT_MEASURED;
	}
	return status;
}

/*
 * Where a standard stream is closed, the next file that is opened would get its place, and what is
 * printed. So the place is taken, by something that cannot be read or written as the stream would
 * be: that is still an error. A command that we run finds the stream closed, as we did.
 */
static void fill_standard_fds(void)
{
	int fd, other;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		other = open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		/* It is the lowest that is free. */
		if (other >= 0 && other != fd)
			close(other);
	}
}

int main(int argc, char **argv)
{
	/* bpftool's, those that are its own affair included. */
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},	{"help", no_argument, NULL, 'h'},
		{"pretty", no_argument, NULL, 'p'},	{"version", no_argument, NULL, 'V'},
		{"bpffs", no_argument, NULL, 'f'},	{"mapcompat", no_argument, NULL, 'm'},
		{"nomount", no_argument, NULL, 'n'},	{"debug", no_argument, NULL, 'd'},
		{"use-loader", no_argument, NULL, 'L'}, {"base-btf", required_argument, NULL, 'B'},
		{"legacy", no_argument, NULL, 'l'},	{}};
	struct errmsg err = {};
	struct ctx ctx = {
		.out = stdout,
		.msg = stderr,
		.sysfs_root = "/sys",
		.proc_root = "/proc",
		.err = &err,
	};
	bool show_version = false, show_help = false;
	char short_option[] = "-?";
	const char *unknown = NULL;
	const struct cmd *cmd;
	char **words;
	int n, opt, status;

	libbpf_set_print(print_libbpf);

	/* getopt_long() sorts the words, so it works on a copy, up to "--": what follows belongs to
	 * a command. */
	for (n = 0; n < argc && strcmp(argv[n], "--"); n++)
		;
	if (n < argc)
		ctx.command = &argv[n + 1];
	words = calloc(n + 1, sizeof(*words));
	if (!words) {
		fputs("Error: out of memory\n", stderr);
		return EXIT_NOT_MEASURED;
	}
	memcpy(words, argv, n * sizeof(*words));

	opterr = 0;
	while ((opt = getopt_long(n, words, "VhpjfLmndB:l", options, NULL)) >= 0) {
		switch (opt) {
		case 'V':
			show_version = true;
			break;
		case 'h':
			show_help = true;
			break;
		case 'p':
			ctx.pretty = true;
			ctx.json = true;
			break;
		case 'j':
			ctx.json = true;
			break;
		case 'd':
			ctx.debug = libbpf_debug = true;
			break;
		case '?':
			if (unknown)
				break;
			/* A cluster of letters is not left until the last of them is read. */
			short_option[1] = optopt;
			unknown = optopt ? short_option : words[optind - 1];
			break;
		default: /* bpftool's own affair */
			break;
		}
	}
	n -= optind;
	ctx.argv = words + optind;

	cmd = n > 0 ? find(ctx.argv[0], n > 1 ? ctx.argv[1] : "") : NULL;
	if (show_version && !unknown) {
		status = version(&ctx);
	} else if (!n && (ctx.command || unknown)) {
		/* `-- prog show` is fine with bpftool, and a wrong option its to refuse. */
		status = bpftool__exec(&ctx, argc, argv);
	} else if ((show_help && !cmd) || !n || is_word(ctx.argv[0], "help", 1) ||
		   (is_word(ctx.argv[0], "prog", 1) && n > 1 && is_word(ctx.argv[1], "help", 2))) {
		status = help(&ctx, argc, argv);
	} else if (cmd && (show_help || has_help(cmd, n, ctx.argv))) {
		status = own_help(&ctx);
	} else if (cmd && unknown) {
		errmsg__usage(&err, "unknown option '%s'; see 'bpfcost help'", unknown);
		status = EXIT_USAGE;
	} else if (cmd) {
		ctx.argc = n - (cmd->command ? 2 : 1);
		ctx.argv += cmd->command ? 2 : 1;
		fill_standard_fds();
		status = cmd->fn(&ctx);
	} else if (is_own_object(ctx.argv[0])) {
		status = EXIT_USAGE;
		if (n > 1 && strcmp(ctx.argv[1], "help"))
			errmsg__usage(&err, "'%s' has no command '%s'", ctx.argv[0], ctx.argv[1]);
		else if (n > 1)
			status = own_help(&ctx);
		else
			errmsg__usage(&err, "'%s' needs a command; see 'bpfcost help'",
				      ctx.argv[0]);
	} else {
		status = bpftool__exec(&ctx, argc, argv);
	}
	status = finish(&ctx, status);
	free(words);
	return status;
}
