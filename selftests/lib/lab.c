// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cpus.h"
#include "empty.skel.h"
#include "lab.h"
#include "sysfs.h"

#define SYSFS_ROOT "/sys"

/* ---- the engine ---- */

/* main()'s, which no test has. */
void note(const struct ctx *ctx, const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	(void)ctx;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ktap_note("%s", text);
}

static int told(const struct lab_engine *e, int rc)
{
	if (rc)
		ktap_note("%s (%d)", e->err.text[0] ? e->err.text : "no message", rc);
	return rc;
}

int lab_engine__open(struct lab_engine *e, const char *const *metrics, unsigned int sample_every)
{
	int rc = 0;

	memset(e, 0, sizeof(*e));
	e->ctx = (struct ctx){
		.out = stdout, .msg = stderr, .sysfs_root = SYSFS_ROOT, .err = &e->err};
	session__init(&e->session, &e->ctx);
	e->session.opts.sample_every = sample_every;
	for (; !rc && *metrics; metrics++)
		rc = session__add_metric(&e->session, *metrics, &e->err);
	rc = rc ?: session__open(&e->session, &e->err) ?:
	     session__floor(&e->session, 1, &e->floor, &e->err);
	return told(e, rc);
}

void lab_engine__close(struct lab_engine *e)
{
	session__close(&e->session);
}

int lab_target__open(struct lab_target *t, struct lab_engine *e, int prog_fd)
{
	const struct profiler_opts *opts = &e->session.opts;
	int rc, fd;

	memset(t, 0, sizeof(*t));
	t->engine = e;
	t->prog.fd = -1;
	fd = dup(prog_fd);
	if (fd < 0) {
		rc = -errno;
		ktap_note("cannot duplicate an fd: %s", strerror(-rc));
		return rc;
	}
	rc = prog__open_fd(&t->prog, fd, &e->err) ?:
	     profiler__open(&t->profiler, opts, &t->prog, 0, &e->err) ?:
	     sample__init(&t->from, opts->n_cpus, opts->n_metrics) ?:
	     sample__init(&t->to, opts->n_cpus, opts->n_metrics) ?:
	     profiler__attach(t->profiler, &e->err);
	return told(e, rc);
}

int lab_target__begin(struct lab_target *t)
{
	return profiler__read(t->profiler, &t->from);
}

int lab_target__end(struct lab_target *t)
{
	int rc;

	rc = profiler__read(t->profiler, &t->to);
	if (rc)
		return rc;
	window__free(&t->window);
	return window__init(&t->window, &t->from, &t->to, t->engine->floor->value);
}

void lab_target__close(struct lab_target *t)
{
	window__free(&t->window);
	sample__free(&t->from);
	sample__free(&t->to);
	profiler__close(t->profiler);
	t->profiler = NULL;
	if (t->engine)
		prog__close(&t->prog);
	t->engine = NULL;
}

double lab_target__entry_misses(const struct lab_target *t)
{
	return t->to.entry_missed - t->from.entry_missed;
}

double lab_target__exit_misses(const struct lab_target *t)
{
	return t->to.exit_missed - t->from.exit_missed;
}

int lab_run(int prog_fd, unsigned int repeat)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = repeat);

	return bpf_prog_test_run_opts(prog_fd, &opts) ? -errno : 0;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double lab_median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

/* ---- CPUs ---- */

int lab_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int lab_pin_anywhere(void)
{
	cpu_set_t set;
	int cpu;

	CPU_ZERO(&set);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int lab_cpu_online(int cpu, bool on)
{
	char path[128];
	int rc = 0;
	FILE *f;

	snprintf(path, sizeof(path), SYSFS_ROOT "/devices/system/cpu/cpu%d/online", cpu);
	f = fopen(path, "w");
	if (!f)
		return -errno;
	if (fputs(on ? "1" : "0", f) < 0)
		rc = -errno;
	if (fclose(f) && !rc)
		rc = -errno;
	return rc;
}

/* ---- what there is ---- */

const char *lab_nothing(void)
{
	return NULL;
}

/* Two instructions an iteration, and no memory. */
static void spin(unsigned long n)
{
#if defined(__x86_64__)
	asm volatile("1: sub $1, %0\n\tjnz 1b" : "+r"(n)::"cc");
#elif defined(__aarch64__)
	asm volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(n)::"cc");
#endif
}

static double time_spin(unsigned long n)
{
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	spin(n);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec);
}

const char *lab_exact(void)
{
	double few[21], many[21];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(few); i++) {
		few[i] = time_spin(1000);
		many[i] = time_spin(6000);
	}
	return lab_median(many, ARRAY_SIZE(many)) - lab_median(few, ARRAY_SIZE(few)) == 10000
		       ? NULL
		       : "an instruction does not take a nanosecond here (lab --exact)";
}

static bool can_count(const char *word)
{
	struct metric m = {};
	bool can;

	can = !metrics__parse(word, SYSFS_ROOT, &m, NULL) && m.n_events &&
	      !counters__probe(&m.events[0], SYSFS_ROOT);
	metrics__free(&m);
	return can;
}

const char *lab_pmu(void)
{
	return can_count("instructions") && can_count("cycles") ? NULL : "no PMU";
}

const char *lab_exact_pmu(void)
{
	return lab_pmu() ?: lab_exact();
}

const char *lab_two_cpus(void)
{
	struct cpus online = {};
	bool two;

	two = !cpus__read(&online, SYSFS_ROOT, "online") && cpus__count(&online) > 1;
	cpus__free(&online);
	return two ? NULL : "there is one CPU only";
}

const char *lab_hotplug(void)
{
	const char *where = getenv("WHERE");

	if (!where || strncmp(where, "lab", 3))
		return "only the lab's CPUs are switched off";
	if (!sysfs__exists("%s/devices/system/cpu/cpu1/online", SYSFS_ROOT))
		return "there is no CPU 1 that can be switched off";
	return NULL;
}

/* Why nothing can be profiled here: NULL if it can, else in @why. */
static const char *refused(char *why, size_t size)
{
	static const char *const ns[] = {"ns", NULL};
	struct lab_engine e = {};
	struct empty_bpf *skel;
	const char *reason = NULL;
	int rc;

	skel = empty_bpf__open_and_load();
	if (!skel) {
		snprintf(why, size, "programs cannot be loaded: %s", strerror(errno));
		return why;
	}
	e.ctx = (struct ctx){.out = stdout, .msg = stderr, .sysfs_root = SYSFS_ROOT, .err = &e.err};
	session__init(&e.session, &e.ctx);
	rc = session__add_metric(&e.session, ns[0], &e.err) ?: session__open(&e.session, &e.err) ?:
	     session__floor(&e.session, 1, &e.floor, &e.err);
	if (rc) {
		snprintf(why, size, "%s", e.err.text);
		reason = why;
	}
	session__close(&e.session);
	empty_bpf__destroy(skel);
	return reason;
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

static int notes(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char text[4096];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), fmt, ap);
	ktap_note("%s", text);
	return 0;
}

int lab_main(const struct lab_test *tests, size_t n)
{
	const char *missing;
	char why[2048];
	struct ktap k;
	size_t i;

	libbpf_set_print(quiet);
	if (refused(why, sizeof(why))) {
		printf("KTAP version 1\n1..0 # SKIP %s\n", why);
		return KTAP_EXIT_SKIP;
	}
	libbpf_set_print(notes);
	ktap_begin(&k, n);
	for (i = 0; i < n; i++) {
		missing = tests[i].missing();
		if (missing)
			ktap_result(&k, KTAP_SKIP, tests[i].name, missing);
		else
			ktap_ok(&k, tests[i].run(), tests[i].name);
	}
	return ktap_end(&k);
}
