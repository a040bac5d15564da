// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* CPUs that are possible and not present, present and not online, and those that come and go: the
 * runs on all of them are accounted for. */
#include <stdint.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "counted.h"
#include "counted.skel.h"
#include "lab.h"

#define RUNS 100

static const char *const *words(void)
{
	static const char *const all[] = {"cycles", "instructions", "ns", NULL};

	return lab_pmu() ? &all[2] : &all[0];
}

struct setup {
	struct lab_engine engine;
	struct lab_target target;
	struct counted_bpf *skel;
	int fd;
	uint64_t before[MAX_CPUS];
};

static bool setup(struct setup *s)
{
	bool ok = true;

	memset(s, 0, sizeof(*s));
	s->skel = counted_bpf__open_and_load();
	CHECK(s->skel);
	s->fd = bpf_program__fd(s->skel->progs.counted);
	CHECK(!lab_engine__open(&s->engine, words(), 0));
	CHECK(!lab_target__open(&s->target, &s->engine, s->fd));
cleanup:
	return ok;
}

static void setup_free(struct setup *s)
{
	lab_target__close(&s->target);
	lab_engine__close(&s->engine);
	counted_bpf__destroy(s->skel);
	lab_pin_anywhere();
}

/* RUNS runs on @cpu, all of them in the window; @read: their counters could be read. */
static bool run_on(struct setup *s, int cpu, bool read)
{
	const struct window *w = &s->target.window;
	uint64_t before = s->skel->bss->on_cpu[cpu].runs;
	bool ok = true;

	CHECK(!lab_pin(cpu));
	CHECK(!lab_target__begin(&s->target) && !lab_run(s->fd, RUNS));
	CHECK(!lab_target__end(&s->target));
	EQUAL(RUNS, s->skel->bss->on_cpu[cpu].runs - before);
	EQUAL(RUNS, w->run_cnt);
	EQUAL(RUNS, w->measured + w->switched + w->lost);
	EQUAL(read ? 0 : RUNS, w->lost);
	EQUAL(w->lost, w->lost_read);
	CHECK(!read || w->metric[0].value > 0);
cleanup:
	if (!ok)
		ktap_note("on CPU %d", cpu);
	return ok;
}

static bool refresh(struct setup *s)
{
	return !session__refresh(&s->engine.session, &s->engine.err);
}

static bool test_cpus(void)
{
	struct cpus possible = {}, present = {}, online = {};
	struct setup s = {};
	bool ok = true;
	int cpu;

	CHECK(!cpus__read(&possible, "/sys", "possible") &&
	      !cpus__read(&present, "/sys", "present"));
	CHECK(!cpus__read(&online, "/sys", "online"));
	ktap_note("%u CPUs possible, %u present, %u online", cpus__count(&possible),
		  cpus__count(&present), cpus__count(&online));
	CHECK(setup(&s));
	EQUAL(cpus__max(&possible) + 1, s.engine.session.opts.n_cpus);
	cpus__for_each(cpu, &online) CHECK(run_on(&s, cpu, true));
cleanup:
	setup_free(&s);
	cpus__free(&possible);
	cpus__free(&present);
	cpus__free(&online);
	return ok;
}

/* What the profiler's own process may run on is nothing to the programs that it measures. */
static bool test_affinity(void)
{
	struct setup s = {};
	bool ok = true;

	CHECK(!lab_pin(1));
	CHECK(setup(&s));
	CHECK(run_on(&s, 0, true));
	CHECK(run_on(&s, 1, true));
cleanup:
	setup_free(&s);
	return ok;
}

static bool test_offline_at_start(void)
{
	struct setup s = {};
	bool counters = !lab_pmu(), ok = true;

	CHECK(!lab_cpu_online(1, false));
	CHECK(setup(&s));
	CHECK(run_on(&s, 0, true));
	CHECK(!lab_cpu_online(1, true));
	/* Until the counters of the CPU are open, its runs are lost, not zero. */
	CHECK(run_on(&s, 1, !counters));
	CHECK(refresh(&s));
	CHECK(run_on(&s, 1, true));
	CHECK(run_on(&s, 0, true));
cleanup:
	lab_cpu_online(1, true);
	setup_free(&s);
	return ok;
}

static bool test_offline_meanwhile(void)
{
	struct setup s = {};
	bool counters = !lab_pmu(), ok = true;
	int i;

	CHECK(setup(&s));
	CHECK(run_on(&s, 1, true));
	for (i = 0; i < 2; i++) {
		CHECK(!lab_cpu_online(1, false));
		CHECK(refresh(&s));
		CHECK(run_on(&s, 0, true));
		CHECK(!lab_cpu_online(1, true));
		CHECK(run_on(&s, 1, !counters));
		CHECK(refresh(&s));
		CHECK(run_on(&s, 1, true));
	}
	/* Away and back before anybody looks. */
	CHECK(!lab_cpu_online(1, false) && !lab_cpu_online(1, true));
	CHECK(run_on(&s, 1, !counters));
	CHECK(refresh(&s));
	CHECK(run_on(&s, 1, true));
cleanup:
	lab_cpu_online(1, true);
	setup_free(&s);
	return ok;
}

static const struct lab_test tests[] = {
	{"each online CPU, of all that are possible", lab_nothing, test_cpus},
	{"an affinity mask on the caller", lab_two_cpus, test_affinity},
	{"a CPU that is offline at the start and comes", lab_hotplug, test_offline_at_start},
	{"a CPU that goes and comes", lab_hotplug, test_offline_meanwhile},
};

int main(void)
{
	return lab_main(tests, ARRAY_SIZE(tests));
}
