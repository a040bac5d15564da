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

/*
 * Where events share counters, a batch tells nothing of an event that had none meanwhile. All have
 * had one after some turns of 4 ms each (kernel/events/core.c, PERF_CPU_HRTIMER), unless somebody
 * else keeps it: then there is nothing to take a floor off.
 */
#define MAX_NS 1000000000ULL

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

/* What the batch in @w says of the metrics that have not enough readings, of which each has @n.
 * Returns how many have enough. */
static size_t keep_batch(const struct window *w, double *reading, unsigned *n)
{
	size_t m, enough = 0;

	for (m = 0; m < w->n_metrics; m++) {
		if (n[m] < BATCHES && !w->metric[m].estimate)
			reading[m * BATCHES + n[m]++] = w->metric[m].value / w->measured;
		enough += n[m] == BATCHES;
	}
	return enough;
}

/* @reading: [metric * BATCHES + batch] */
static int read_batches(struct profiler *p, int fd, struct sample *s, double *reading,
			struct errmsg *err)
{
	unsigned n[SAMPLE_MAX_METRICS] = {}, k;
	struct window w = {};
	__u64 begin = 0;
	char buf[128];
	size_t m, enough = 0;
	int rc;

	do {
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
		if (begin) /* the first one warms up */
			enough = keep_batch(&w, reading, n);
		else
			begin = s[0].time_ns;
		window__free(&w);
	} while (enough < s[0].n_metrics && s[1].time_ns - begin < MAX_NS);

	for (m = 0; m < s[0].n_metrics; m++)
		for (k = n[m]; k < BATCHES; k++)
			reading[m * BATCHES + k] = n[m] ? reading[m * BATCHES + k % n[m]] : 0;
	return 0;
}

/* An empty function: a main one has one argument, the context; others are @called by `callers`. */
static int open_function(struct empty_bpf *skel, unsigned args, bool called, struct prog *prog,
			 size_t *func, struct errmsg *err)
{
	struct bpf_program *program = called ? skel->progs.empty_callers : skel->progs.empty;
	char name[16];
	int fd, rc;

	fd = dup(bpf_program__fd(program));
	if (fd < 0)
		return errmsg__fail(err, -errno, "cannot duplicate an fd: %s", strerror(errno));
	rc = prog__open_fd(prog, fd, err);
	if (rc)
		return rc;
	*func = 0;
	if (!called)
		return 0;
	snprintf(name, sizeof(name), "empty_args%u", args);
	for (*func = 0; *func < prog->n_funcs; ++*func)
		if (!strcmp(prog->funcs[*func].name, name))
			return 0;
	return errmsg__fail(err, -EINVAL, "no empty function with %u arguments", args);
}

static struct empty_bpf *open_empty(struct errmsg *err)
{
	struct empty_bpf *skel = empty_bpf__open_and_load();
	char buf[128];
	int rc;

	if (skel)
		return skel;
	rc = -errno;
	errmsg__fail(err, rc, "cannot load the empty program: %s%s",
		     errmsg__errno(rc, buf, sizeof(buf)),
		     rc == -EPERM ? "; it needs CAP_BPF and CAP_PERFMON, for example: sudo" : "");
	return NULL;
}

/* Reads all batches, and sorts the readings of each metric. */
static int sorted_batches(struct profiler *p, const struct profiler_opts *opts, int fd,
			  double *reading, struct errmsg *err)
{
	struct sample s[2] = {};
	size_t m;
	int rc;

	rc = sample__init(&s[0], opts->n_cpus, opts->n_metrics)
		     ?: sample__init(&s[1], opts->n_cpus, opts->n_metrics);
	if (rc)
		errmsg__fail(err, rc, "out of memory");
	else
		rc = read_batches(p, fd, s, reading, err);
	for (m = 0; !rc && m < opts->n_metrics; m++)
		qsort(&reading[m * BATCHES], BATCHES, sizeof(*reading), compare);
	sample__free(&s[0]);
	sample__free(&s[1]);
	return rc;
}

int floor__measure(struct floor *f, const struct profiler_opts *opts, unsigned args,
		   struct errmsg *err)
{
	struct profiler_opts every_run = *opts;
	struct prog prog = {.fd = -1};
	struct profiler *p = NULL;
	struct empty_bpf *skel;
	double *reading = NULL;
	size_t m, func;
	int rc;

	memset(f, 0, sizeof(*f));
	/* With sampling, the same code, but no run left out. */
	if (opts->sample_every)
		every_run.sample_every = 1;

	skel = open_empty(err);
	if (!skel)
		return -EPERM;
	rc = open_function(skel, args, args != 1, &prog, &func, err) ?:
	     profiler__open(&p, &every_run, &prog, func, err) ?:
	     profiler__attach(p, err);
	if (rc)
		goto cleanup;
	reading = calloc(opts->n_metrics * BATCHES, sizeof(*reading));
	if (!reading || alloc(f, opts->n_metrics)) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	rc = sorted_batches(p, opts, prog.fd, reading, err);
	if (rc)
		goto cleanup;
	f->n_metrics = opts->n_metrics;
	for (m = 0; m < f->n_metrics; m++) {
		double *r = &reading[m * BATCHES];

		f->value[m] = r[BATCHES / 2];
		f->low[m] = r[BATCHES / 10];
		f->high[m] = r[BATCHES - 1 - BATCHES / 10];
	}
cleanup:
	if (rc)
		floor__free(f);
	free(reading);
	profiler__close(p);
	prog__close(&prog);
	empty_bpf__destroy(skel);
	return rc;
}

int floor__added(double *added, const struct profiler_opts *opts, unsigned args, struct errmsg *err)
{
	struct profiler *caller = NULL, *callee = NULL;
	struct prog prog = {.fd = -1};
	struct empty_bpf *skel;
	double *reading = NULL;
	size_t m, func;
	int rc;

	skel = open_empty(err);
	if (!skel)
		return -EPERM;
	rc = open_function(skel, args, true, &prog, &func, err);
	if (rc)
		goto cleanup;
	reading = calloc(opts->n_metrics * BATCHES, sizeof(*reading));
	if (!reading) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	rc = profiler__open(&caller, opts, &prog, 0, err) ?:
	     profiler__attach(caller, err) ?:
	     sorted_batches(caller, opts, prog.fd, reading, err);
	if (rc)
		goto cleanup;
	for (m = 0; m < opts->n_metrics; m++)
		added[m] = -reading[m * BATCHES + BATCHES / 2];
	rc = profiler__open(&callee, opts, &prog, func, err) ?:
	     profiler__attach(callee, err) ?:
	     sorted_batches(caller, opts, prog.fd, reading, err);
	if (rc)
		goto cleanup;
	for (m = 0; m < opts->n_metrics; m++)
		added[m] += reading[m * BATCHES + BATCHES / 2];
cleanup:
	free(reading);
	profiler__close(callee);
	profiler__close(caller);
	prog__close(&prog);
	empty_bpf__destroy(skel);
	return rc;
}

static int read_statistics(int fd, __u64 *ns, __u64 *runs)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int rc;

	rc = bpf_obj_get_info_by_fd(fd, &info, &len);
	*ns = info.run_time_ns;
	*runs = info.run_cnt;
	return rc;
}

int floor__statistics(struct floor *f, int fd, struct errmsg *err)
{
	double ns[BATCHES];
	__u64 t[2], n[2];
	char buf[128];
	int i, rc;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < BATCHES; i++) {
		rc = read_statistics(fd, &t[0], &n[0]) ?: run_batch(fd) ?:
		     read_statistics(fd, &t[1], &n[1]);
		if (rc)
			return errmsg__fail(err, rc, "cannot run the empty program: %s",
					    errmsg__errno(rc, buf, sizeof(buf)));
		if (n[1] == n[0])
			return errmsg__fail(err, -EIO,
					    "the statistics are on, but nothing was counted");
		ns[i] = (double)(t[1] - t[0]) / (n[1] - n[0]);
	}
	if (alloc(f, 1))
		return errmsg__fail(err, -ENOMEM, "out of memory");
	qsort(ns, BATCHES, sizeof(*ns), compare);
	f->n_metrics = 1;
	f->value[0] = ns[BATCHES / 2];
	f->low[0] = ns[BATCHES / 10];
	f->high[0] = ns[BATCHES - 1 - BATCHES / 10];
	return 0;
}

int floor__measure_statistics(struct floor *f, struct errmsg *err)
{
	char buf[128];
	int fd, rc;

	memset(f, 0, sizeof(*f));
	fd = prog__load_empty(BPF_PROG_TYPE_SOCKET_FILTER, "bpfcost_empty");
	if (fd < 0)
		return errmsg__fail(err, fd, "cannot load the empty program: %s%s",
				    errmsg__errno(fd, buf, sizeof(buf)),
				    fd == -EPERM ? "; it needs CAP_BPF, for example: sudo" : "");
	rc = floor__statistics(f, fd, err);
	close(fd);
	return rc;
}
