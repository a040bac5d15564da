// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * prog compare OLD NEW [threshold P] [force]
 * prog compare history DIR [force]
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "compare_view.h"
#include "ctx.h"

static int parse_threshold(const char *word, double *percent, struct errmsg *err)
{
	char *end = NULL;

	if (word[0] && strspn(word, "0123456789.") == strlen(word))
		*percent = strtod(word, &end);
	if (!end || *end || end == word || !isfinite(*percent))
		return errmsg__usage(err, "threshold: '%s' is not a number of percent (2, or 0.5)",
				     word);
	return 0;
}

/* Words behind the files. */
static int parse(const struct ctx *ctx, int argc, char **argv, struct compare *c, bool *force)
{
	int rc;

	while (argc) {
		if (!strcmp(argv[0], "force")) {
			*force = true;
			argc--, argv++;
			continue;
		}
		if (!c)
			return errmsg__usage(ctx->err, "expected 'force', got: '%s'", argv[0]);
		if (strcmp(argv[0], "threshold"))
			return errmsg__usage(ctx->err, "expected 'threshold' or 'force', got: '%s'",
					     argv[0]);
		if (argc < 2)
			return errmsg__usage(ctx->err, "'threshold' needs a value");
		rc = parse_threshold(argv[1], &c->threshold, ctx->err);
		if (rc)
			return rc;
		c->has_threshold = true;
		argc -= 2;
		argv += 2;
	}
	if (ctx->command)
		return errmsg__usage(ctx->err, "prog compare runs no command; got: '--'");
	return 0;
}

static int compare(struct ctx *ctx)
{
	struct compare c = {};
	int rc, status = EXIT_DONE;

	if (ctx->argc < 2)
		return errmsg__usage(ctx->err, "two files of 'bpfcost -j prog bench' are missing: "
					       "OLD NEW, or: history DIR");
	rc = parse(ctx, ctx->argc - 2, ctx->argv + 2, &c, &c.force) ?:
	     bench_file__read_side(&c.old, ctx->argv[0], ctx->err) ?:
	     bench_file__read_side(&c.new, ctx->argv[1], ctx->err) ?:
	     compare__run(&c, ctx->err);
	if (rc)
		goto cleanup;
	if (!ctx->json)
		compare_view__plain(ctx, &c);
	else if (compare_view__json(ctx, &c))
		rc = errmsg__fail(ctx->err, -ENOMEM, "out of memory");
	/* That is a result, and no error. */
	if (c.n_slower)
		status = EXIT_NOT_MEASURED;
cleanup:
	compare__close(&c);
	return rc ?: status;
}

static int read_files(struct history *h, char **paths, size_t n, struct errmsg *err)
{
	int rc = 0;

	h->file = calloc(n, sizeof(*h->file));
	if (!h->file)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	while (h->n_files < n && !rc) {
		rc = bench_file__read(&h->file[h->n_files], paths[h->n_files], err);
		h->n_files += !rc;
	}
	return rc;
}

static int history(struct ctx *ctx)
{
	struct history h = {};
	char **paths = NULL;
	size_t n = 0;
	int rc;

	if (ctx->argc < 2)
		return errmsg__usage(ctx->err, "'history' needs a directory");
	rc = parse(ctx, ctx->argc - 2, ctx->argv + 2, NULL, &h.force) ?:
	     bench_file__list(ctx->argv[1], &paths, &n, ctx->err) ?:
	     read_files(&h, paths, n, ctx->err) ?:
	     history__run(&h, ctx->err);
	if (rc)
		goto cleanup;
	if (!ctx->json)
		history_view__plain(ctx, &h);
	else if (history_view__json(ctx, &h))
		rc = errmsg__fail(ctx->err, -ENOMEM, "out of memory");
cleanup:
	history__close(&h);
	bench_file__free_list(paths, n);
	return rc;
}

int cmd_prog_compare(struct ctx *ctx)
{
	int rc;

	/* A file of that name is ./history. */
	if (ctx->argc && !strcmp(ctx->argv[0], "history"))
		rc = history(ctx);
	else
		rc = compare(ctx);
	return rc < 0 ? (int)ctx->err->status : rc;
}
