// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "empty.skel.h"
#include "floor.h"
#include "window.h"

/*
 * Runs of one batch follow each other at once, and a batch ends before the next timer interrupt of
 * most machines. An interrupt that does fall into a batch moves it out of the middle: that is what
 * the median is for.
 */
#define BATCH_RUNS 50
#define BATCHES	   41

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void floor__free(struct floor *f)
{
	if (!f)
		return;
	free(f->value);
	free(f->low);
	free(f->high);
	memset(f, 0, sizeof(*f));
}

static int alloc(struct floor *f, size_t n_metrics)
{
	f->value = calloc(n_metrics, sizeof(*f->value));
	f->low = calloc(n_metrics, sizeof(*f->low));
	f->high = calloc(n_metrics, sizeof(*f->high));
	if (f->value && f->low && f->high)
		return 0;
	floor__free(f);
	return -ENOMEM;
}

int floor__copy(struct floor *to, const struct floor *from)
{
	size_t size = from->n_metrics * sizeof(double);

	memset(to, 0, sizeof(*to));
	if (alloc(to, from->n_metrics))
		return -ENOMEM;
	to->n_metrics = from->n_metrics;
	memcpy(to->value, from->value, size);
	memcpy(to->low, from->low, size);
	memcpy(to->high, from->high, size);
	return 0;
}

static int run_batch(int fd)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = BATCH_RUNS);

	return bpf_prog_test_run_opts(fd, &opts);
}

/* @reading: [metric * BATCHES + batch] */
static int read_batches(struct profiler *p, int fd, struct sample *s, double *reading,
			struct errmsg *err)
{
	struct window w = {};
	char buf[128];
	int i, rc;
	size_t m;

	for (i = -1; i < BATCHES; i++) { /* the first one warms up */
		rc = profiler__read(p, &s[0]) ?: run_batch(fd) ?: profiler__read(p, &s[1]);
		if (rc)
			return errmsg__fail(err, rc, "cannot run the empty program: %s",
					    errmsg__errno(rc, buf, sizeof(buf)));
		rc = window__init(&w, &s[0], &s[1], NULL);
		if (rc)
			return errmsg__fail(err, rc, "out of memory");
		if (!w.measured) {
			bool read_failed = w.lost_read;

			window__free(&w);
			return errmsg__fail(err, -EIO, "the empty program ran, but %s",
					    read_failed ? "the counters could not be read"
							: "no run of it was seen");
		}
		for (m = 0; i >= 0 && m < w.n_metrics; m++)
			reading[m * BATCHES + i] = w.metric[m].value / w.measured;
		window__free(&w);
	}
	return 0;
}

int floor__measure(struct floor *f, const struct profiler_opts *opts, unsigned args,
		   struct errmsg *err)
{
	struct profiler_opts every_run = *opts;
	struct sample s[2] = {};
	struct profiler *p = NULL;
	struct empty_bpf *skel = NULL;
	struct bpf_program *main_prog;
	struct prog prog = {.fd = -1};
	double *reading = NULL;
	char buf[128], name[16];
	size_t m, func;
	int rc, fd;

	memset(f, 0, sizeof(*f));
	/* With sampling, the same code, but no run left out. */
	if (opts->sample_every)
		every_run.sample_every = 1;

	skel = empty_bpf__open_and_load();
	if (!skel) {
		rc = -errno;
		errmsg__fail(err, rc, "cannot load the empty program: %s%s",
			     errmsg__errno(rc, buf, sizeof(buf)),
			     rc == -EPERM ? "; it needs CAP_BPF and CAP_PERFMON, for example: sudo"
					  : "");
		goto cleanup;
	}
	/* A main function has one argument, the context; the others are called by `callers`. */
	main_prog = args == 1 ? skel->progs.empty : skel->progs.empty_callers;
	fd = dup(bpf_program__fd(main_prog));
	if (fd < 0) {
		rc = errmsg__fail(err, -errno, "cannot duplicate an fd");
		goto cleanup;
	}
	rc = prog__open_fd(&prog, fd, err);
	if (rc)
		goto cleanup;
	snprintf(name, sizeof(name), "empty_args%u", args);
	for (func = 0; args != 1 && func < prog.n_funcs; func++)
		if (!strcmp(prog.funcs[func].name, name))
			break;
	if (args == 1)
		func = 0;
	if (func >= prog.n_funcs) {
		rc = errmsg__fail(err, -EINVAL, "no empty function with %u arguments", args);
		goto cleanup;
	}
	rc = profiler__open(&p, &every_run, &prog, func, err) ?: profiler__attach(p, err);
	if (rc)
		goto cleanup;

	reading = calloc(opts->n_metrics * BATCHES, sizeof(*reading));
	rc = alloc(f, opts->n_metrics) ?:
	     sample__init(&s[0], opts->n_cpus, opts->n_metrics) ?:
	     sample__init(&s[1], opts->n_cpus, opts->n_metrics);
	if (rc || !reading) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	rc = read_batches(p, prog.fd, s, reading, err);
	if (rc)
		goto cleanup;
	f->n_metrics = opts->n_metrics;
	for (m = 0; m < f->n_metrics; m++) {
		double *r = &reading[m * BATCHES];

		qsort(r, BATCHES, sizeof(*r), compare);
		f->value[m] = r[BATCHES / 2];
		f->low[m] = r[BATCHES / 10];
		f->high[m] = r[BATCHES - 1 - BATCHES / 10];
	}
cleanup:
	if (rc)
		floor__free(f);
	free(reading);
	sample__free(&s[0]);
	sample__free(&s[1]);
	profiler__close(p);
	prog__close(&prog);
	empty_bpf__destroy(skel);
	return rc;
}
