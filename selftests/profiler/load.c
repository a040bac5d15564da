// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Many runs on several CPUs at once: each is in exactly one of the sums. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "counted.h"
#include "counted.skel.h"
#include "lab.h"

#define MAX_THREADS 4
#define RUNS	    100000

struct worker {
	pthread_t thread;
	bool started;
	int fd, cpu, rc;
	unsigned int calls, repeat;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	LIBBPF_OPTS(bpf_test_run_opts, plain);
	unsigned int i;

	w->rc = lab_pin(w->cpu);
	for (i = 0; !w->rc && i < w->calls; i++) {
		if (w->repeat)
			w->rc = lab_run(w->fd, w->repeat);
		else
			w->rc = bpf_prog_test_run_opts(w->fd, &plain) ? -errno : 0;
	}
	return NULL;
}

/* Up to four CPUs, and on each a thread that makes its part of @calls. */
static int work_everywhere(int fd, unsigned int calls, unsigned int repeat)
{
	struct worker w[MAX_THREADS] = {};
	struct cpus online = {};
	int n = 0, i, cpu, rc;

	rc = cpus__read(&online, "/sys", "online");
	if (rc)
		return rc;
	cpus__for_each(cpu, &online)
	{
		if (n < MAX_THREADS)
			w[n++].cpu = cpu;
	}
	cpus__free(&online);
	for (i = 0; !rc && i < n; i++) {
		w[i].fd = fd;
		w[i].calls = calls / n;
		w[i].repeat = repeat;
		rc = -pthread_create(&w[i].thread, NULL, work, &w[i]);
		w[i].started = !rc;
	}
	for (i = 0; i < n; i++) {
		if (!w[i].started)
			continue;
		pthread_join(w[i].thread, NULL);
		rc = rc ?: w[i].rc;
	}
	ktap_note("on %d CPUs", n);
	return rc;
}

static const char *const *words(void)
{
	static const char *const all[] = {"cycles", "instructions", "ns", NULL};

	return lab_pmu() ? &all[2] : &all[0];
}

/* Each run is in one sum, CPU by CPU, and there are as many as the program itself has counted. */
static bool accounted(struct lab_target *t, const struct counted_bpf *skel)
{
	const struct window *w = &t->window;
	uint64_t runs = counted_runs(skel->bss->on_cpu), on_cpu;
	const struct sample_cpu *c;
	bool ok = true;
	size_t i;

	ktap_note("%llu measured, %llu switched, %llu lost, %llu skipped",
		  (unsigned long long)w->measured, (unsigned long long)w->switched,
		  (unsigned long long)w->lost, (unsigned long long)w->skipped);
	EQUAL(runs, w->run_cnt);
	EQUAL(runs, w->measured + w->switched + w->lost + w->skipped);
	EQUAL(0, w->lost_read);
	for (i = 0; i < t->to.n_cpus; i++) {
		c = &t->to.cpu[i];
		on_cpu = c->measured + c->switched + c->lost_pair + c->lost_read;
		if (t->engine->session.opts.sample_every)
			on_cpu = c->entries;
		if (!t->to.entry_missed && !t->to.exit_missed)
			EQUAL(skel->bss->on_cpu[i].runs, on_cpu);
	}
cleanup:
	return ok;
}

static bool everywhere(unsigned int every)
{
	struct lab_engine e = {};
	struct lab_target t = {};
	struct counted_bpf *skel;
	bool ok = true;
	int fd;

	skel = counted_bpf__open_and_load();
	CHECK(skel);
	fd = bpf_program__fd(skel->progs.counted);
	CHECK(!lab_engine__open(&e, words(), every));
	CHECK(!lab_target__open(&t, &e, fd));
	CHECK(!lab_target__begin(&t));
	CHECK(!work_everywhere(fd, RUNS / 100, 100));
	CHECK(!lab_target__end(&t));
	EQUAL(RUNS, counted_runs(skel->bss->on_cpu));
	CHECK(accounted(&t, skel));
	EQUAL(0, t.window.lost);
cleanup:
	lab_target__close(&t);
	lab_engine__close(&e);
	counted_bpf__destroy(skel);
	return ok;
}

static bool test_load(void)
{
	return everywhere(0);
}

static bool test_load_sampled(void)
{
	return everywhere(16);
}

/* Timers' interrupts run the program that they interrupt, or the profiler's programs around it. */
static bool test_interrupts(void)
{
	static const char *const places[] = {"hrtimer_expire_entry", "sched_switch", "sys_enter"};
	int link[ARRAY_SIZE(places)] = {-1, -1, -1};
	struct lab_engine e = {};
	struct lab_target t = {};
	struct counted_bpf *skel;
	bool ok = true;
	size_t i;
	int fd;

	skel = counted_bpf__open_and_load();
	CHECK(skel);
	fd = bpf_program__fd(skel->progs.counted_anywhere);
	CHECK(!lab_engine__open(&e, words(), 0));
	CHECK(!lab_target__open(&t, &e, fd));
	CHECK(!lab_target__begin(&t));
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		link[i] = bpf_raw_tracepoint_open(places[i], fd);
		CHECK(link[i] >= 0);
	}
	CHECK(!work_everywhere(fd, RUNS / 20, 0));
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		close(link[i]);
		link[i] = -1;
	}
	profiler__settle();
	CHECK(!lab_target__end(&t));
	CHECK(counted_runs(skel->bss->on_cpu) > RUNS / 20);
	CHECK(accounted(&t, skel));
cleanup:
	for (i = 0; i < ARRAY_SIZE(places); i++)
		if (link[i] >= 0)
			close(link[i]);
	lab_target__close(&t);
	lab_engine__close(&e);
	counted_bpf__destroy(skel);
	return ok;
}

static const struct lab_test tests[] = {
	{"100,000 runs on up to 4 CPUs at once", lab_nothing, test_load},
	{"100,000 runs on up to 4 CPUs at once, sampled", lab_nothing, test_load_sampled},
	{"runs in tasks and in interrupts", lab_nothing, test_interrupts},
};

int main(void)
{
	return lab_main(tests, ARRAY_SIZE(tests));
}
