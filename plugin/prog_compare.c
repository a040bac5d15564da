// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * prog compare OLD NEW [threshold P] [force]
 * prog compare history DIR [force]
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
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
	     bench_file__read(&c.old, ctx->argv[0], ctx->err) ?:
	     bench_file__read(&c.new, ctx->argv[1], ctx->err) ?:
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

static int is_json(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > 5 && !strcmp(entry->d_name + n - 5, ".json");
}

/* The files in the order of their names, in which 9 comes before 10. */
static int read_directory(struct history *h, const char *dir, char ***paths, size_t *n_paths,
			  struct errmsg *err)
{
	struct dirent **entry = NULL;
	char buf[128], **v = NULL;
	int n, i, rc = 0;

	n = scandir(dir, &entry, is_json, versionsort);
	if (n < 0)
		return errmsg__usage(err, "cannot read the directory '%s': %s", dir,
				     errmsg__errno(errno, buf, sizeof(buf)));
	if (!n) {
		rc = errmsg__usage(err, "there are no files *.json in '%s'", dir);
		goto cleanup;
	}
	v = calloc(n, sizeof(*v));
	h->file = calloc(n, sizeof(*h->file));
	if (!v || !h->file) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	*paths = v;
	for (i = 0; i < n && !rc; i++) {
		if (asprintf(&v[i], "%s/%s", dir, entry[i]->d_name) < 0) {
			v[i] = NULL;
			rc = errmsg__fail(err, -ENOMEM, "out of memory");
			break;
		}
		++*n_paths;
		rc = bench_file__read(&h->file[i], v[i], err);
		h->n_files += !rc;
	}
cleanup:
	if (!*paths)
		free(v);
	for (i = 0; i < n; i++)
		free(entry[i]);
	free(entry);
	return rc;
}

static int history(struct ctx *ctx)
{
	struct history h = {};
	char **paths = NULL;
	size_t n_paths = 0;
	int rc;

	if (ctx->argc < 2)
		return errmsg__usage(ctx->err, "'history' needs a directory");
	rc = parse(ctx, ctx->argc - 2, ctx->argv + 2, NULL, &h.force) ?:
	     read_directory(&h, ctx->argv[1], &paths, &n_paths, ctx->err) ?:
	     history__run(&h, ctx->err);
	if (rc)
		goto cleanup;
	if (!ctx->json)
		history_view__plain(ctx, &h);
	else if (history_view__json(ctx, &h))
		rc = errmsg__fail(ctx->err, -ENOMEM, "out of memory");
cleanup:
	history__close(&h);
	while (n_paths)
		free(paths[--n_paths]);
	free(paths);
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
