// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * prog bench { PROG... | OBJ } [data_in FILE] [ctx_in FILE] [repeat N] [count N] [format go]
 *            [METRIC...] [-- COMMAND...]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "bench_view.h"
#include "caps.h"
#include "ctx.h"
#include "parse.h"

/* More than any test run takes (a page, or the 16 bits of a context's size); it ends /dev/zero. */
#define MAX_INPUT (1 << 20)

struct options {
	const char *data_in, *context_in; /* files */
	bool all;			  /* programs were named by `all` */
	bool go;
};

static int read_file(const char *what, const char *file, void **data, size_t *size,
		     struct errmsg *err)
{
	bool is_stdin = !strcmp(file, "-");
	int fd = is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC), rc = 0;
	char errno_text[128];
	size_t n = 0;
	ssize_t got;
	char *buf;

	if (fd < 0)
		return errmsg__usage(err, "%s: cannot open '%s': %s", what, file,
				     errmsg__errno(errno, errno_text, sizeof(errno_text)));
	buf = malloc(MAX_INPUT + 1);
	if (!buf) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	do {
		got = read(fd, buf + n, MAX_INPUT + 1 - n);
		if (got > 0)
			n += got;
	} while ((got > 0 && n <= MAX_INPUT) || (got < 0 && errno == EINTR));
	if (got < 0)
		rc = errmsg__usage(err, "%s: cannot read '%s': %s", what, file,
				   errmsg__errno(errno, errno_text, sizeof(errno_text)));
	else if (!n)
		rc = errmsg__usage(err, "%s: '%s' is empty", what, file);
	else if (n > MAX_INPUT)
		rc = errmsg__usage(err, "%s: '%s' has more than %d bytes", what, file, MAX_INPUT);
	if (rc)
		goto cleanup;
	*data = buf;
	*size = n;
	buf = NULL;
cleanup:
	free(buf);
	if (!is_stdin)
		close(fd);
	return rc;
}

static int parse_number(struct bench *b, const char *what, const char *word, __u64 max, __u64 *n)
{
	unsigned long long value;

	if (parse__number(word, 1, max, &value))
		return errmsg__usage(b->ctx->err, "%s: '%s' is not a number from 1 to %llu", what,
				     word, (unsigned long long)max);
	*n = value;
	return 0;
}

/* A word with a value: 1 if it was one, 0 if not, or a negative errno. */
static int parse_keyword(struct bench *b, struct options *o, const char *word, const char *value)
{
	struct errmsg *err = b->ctx->err;
	__u64 n = 0;
	int rc = 0;

	if (strcmp(word, "data_in") && strcmp(word, "ctx_in") && strcmp(word, "repeat") &&
	    strcmp(word, "count") && strcmp(word, "format"))
		return 0;
	if (!value)
		return errmsg__usage(err, "'%s' needs a value", word);
	if (!strcmp(word, "data_in")) {
		o->data_in = value;
	} else if (!strcmp(word, "ctx_in")) {
		o->context_in = value;
	} else if (!strcmp(word, "repeat")) {
		rc = parse_number(b, word, value, BENCH_MAX_REPEAT, &b->repeat);
	} else if (!strcmp(word, "count")) {
		rc = parse_number(b, word, value, BENCH_MAX_COUNT, &n);
		b->count = n;
	} else {
		if (strcmp(value, "go"))
			return errmsg__usage(err, "expected 'format go', got: 'format %s'", value);
		if (b->ctx->json)
			return errmsg__usage(err, "'format go' is no JSON: leave -j out");
		o->go = true;
	}
	return rc ? rc : 1;
}

static int parse_options(struct bench *b, struct options *o, int argc, char **argv)
{
	struct errmsg *err = b->ctx->err;
	int rc;

	while (argc) {
		rc = parse_keyword(b, o, argv[0], argc > 1 ? argv[1] : NULL);
		if (rc < 0)
			return rc;
		if (rc) {
			argc -= 2;
			argv += 2;
			continue;
		}
		rc = session__add_metric(&b->session, argv[0], err);
		if (rc)
			return rc;
		argc--, argv++;
	}
	if (o->data_in && o->context_in && !strcmp(o->data_in, "-") && !strcmp(o->context_in, "-"))
		return errmsg__usage(err, "standard input cannot be both data_in and ctx_in");
	if (b->ctx->command && !b->ctx->command[0])
		return errmsg__usage(err, "'--' needs a command behind it");
	b->command = b->ctx->command;
	return 0;
}

/* The first word is an object file, or begins the PROGs. */
static int parse(struct bench *b, struct options *o, const char **path, struct progs *progs)
{
	struct errmsg *err = b->ctx->err;
	int argc = b->ctx->argc, rc;
	char **argv = b->ctx->argv;
	size_t handles = 0;

	if (!argc)
		return errmsg__usage(err, "a program is missing: { id ID | tag TAG | name NAME | "
					  "pinned FILE } or all, or an object file");
	if (!progs__is_handle(argv[0])) {
		*path = argv[0];
		return parse_options(b, o, argc - 1, argv + 1);
	}
	while (argc && progs__is_handle(argv[0])) {
		o->all |= !strcmp(argv[0], "all");
		rc = progs__parse(progs, &argc, &argv, err);
		if (rc < 0)
			return rc;
		handles++;
	}
	if (!o->all && handles == 1 && progs->n > 1)
		return errmsg__usage(err,
				     "%zu programs match this handle, such as %u and %u; name one "
				     "by id",
				     progs->n, progs->v[0].id, progs->v[1].id);
	return parse_options(b, o, argc, argv);
}

/* Test runs are bpf(2), counters are perf's, and the switch of the statistics wants the last. A
 * command gets what its caller has. */
static int drop_privileges(const struct bench *b, struct errmsg *err)
{
	const cap_value_t keep[] = {CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN};
	char buf[128];
	int rc;

	if (b->command)
		return 0;
	rc = caps__keep_only(keep, sizeof(keep) / sizeof(keep[0]));
	if (rc)
		return errmsg__fail(err, rc, "cannot drop privileges: %s",
				    errmsg__errno(rc, buf, sizeof(buf)));
	return 0;
}

static int open_bench(struct bench *b, const struct options *o, const char *path,
		      struct progs *progs, struct errmsg *err)
{
	size_t i;
	int rc = 0;

	if (o->data_in)
		rc = read_file("data_in", o->data_in, &b->input.data, &b->input.data_size, err);
	if (!rc && o->context_in)
		rc = read_file("ctx_in", o->context_in, &b->input.context, &b->input.context_size,
			       err);
	if (rc)
		return rc;
	if (path)
		rc = bench__open_object(b, path, err);
	for (i = 0; !rc && i < progs->n; i++)
		/* What another bpfcost measures with is nothing to measure. */
		if (!o->all || strncmp(progs->v[i].name, "bpfcost_", 8))
			rc = bench__add(b, &progs->v[i], err);
	return rc ?: drop_privileges(b, err);
}

static int show(struct bench *b, const struct options *o)
{
	struct machine machine;

	machine__read(&machine, b->ctx->proc_root, b->ctx->sysfs_root);
	if (b->ctx->json && bench_view__json(b->ctx, b, &machine))
		return errmsg__fail(b->ctx->err, -ENOMEM, "out of memory");
	if (o->go)
		bench_view__go(b->ctx, b, &machine);
	else if (!b->ctx->json)
		bench_view__plain(b->ctx, b, &machine);
	return 0;
}

int cmd_prog_bench(struct ctx *ctx)
{
	struct bench b = {.ctx = ctx, .count = BENCH_DEFAULT_COUNT};
	struct wait wait = {.signal_fd = -1};
	struct options options = {};
	struct progs progs = {};
	const char *path = NULL;
	char buf[128];
	int rc;

	session__init(&b.session, ctx);
	rc = wait__open(&wait);
	if (rc) {
		errmsg__fail(ctx->err, rc, "cannot wait for signals: %s",
			     errmsg__errno(rc, buf, sizeof(buf)));
		goto cleanup;
	}
	b.wait = &wait;
	rc = parse(&b, &options, &path, &progs) ?:
	     open_bench(&b, &options, path, &progs, ctx->err) ?:
	     bench__run(&b, ctx->err) ?:
	     show(&b, &options);
cleanup:
	progs__close(&progs);
	bench__close(&b);
	wait__close(&wait);
	if (b.command_status)
		return b.command_status;
	return rc ? (int)ctx->err->status : EXIT_DONE;
}
