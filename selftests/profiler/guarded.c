// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs whose entry or exit program the kernel skipped, because it was running on the CPU already:
 * lost, and as many as the kernel has counted. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "guarded.skel.h"
#include "lab.h"
#include "replaced.skel.h"

static const char *no_kprobes(void)
{
	return access("/sys/bus/event_source/devices/kprobe/type", R_OK)
		       ? "no kprobes (CONFIG_KPROBE_EVENTS)"
		       : NULL;
}

static const char *no_kprobes_or_pmu(void)
{
	return no_kprobes() ?: lab_pmu();
}

struct setup {
	struct guarded_bpf *skel;
	struct replaced_bpf *replaced;
	struct bpf_link *link[4];
	int target;
};

static bool setup(struct setup *s, const char *func)
{
	bool ok = true;
	size_t i;

	memset(s, 0, sizeof(*s));
	s->skel = guarded_bpf__open_and_load();
	s->replaced = replaced_bpf__open();
	CHECK(s->skel && s->replaced);
	CHECK(!bpf_program__set_attach_target(s->replaced->progs.target,
					      bpf_program__fd(s->skel->progs.outer), "hook"));
	CHECK(!replaced_bpf__load(s->replaced));
	s->target = bpf_program__fd(s->replaced->progs.target);
	s->link[0] = bpf_program__attach(s->replaced->progs.target);
	s->link[1] = bpf_program__attach_freplace(s->replaced->progs.target,
						  bpf_program__fd(s->skel->progs.inner), "hook");
	s->link[2] = bpf_program__attach(s->skel->progs.inner);
	s->link[3] = bpf_program__attach_kprobe(s->skel->progs.again, false, func);
	for (i = 0; i < ARRAY_SIZE(s->link); i++)
		CHECK(s->link[i]);
cleanup:
	return ok;
}

static void setup_free(struct setup *s)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(s->link); i++)
		bpf_link__destroy(s->link[i]);
	replaced_bpf__destroy(s->replaced);
	guarded_bpf__destroy(s->skel);
}

static int run_outer(struct setup *s)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	return bpf_prog_test_run_opts(bpf_program__fd(s->skel->progs.outer), &opts) ? -errno : 0;
}

/* @reads: how often a profiler's program calls @func to read @metrics. The target runs once more in
 * each of these calls, by the entry program and by the exit program. */
static bool guarded(const char *const *metrics, const char *func, unsigned int reads)
{
	const unsigned int runs = 10;
	struct setup s = {};
	struct lab_engine e = {};
	struct lab_target t = {};
	bool ok = true, has_guard;
	unsigned int i, armed;
	uint64_t before;
	__u64 misses;

	CHECK(setup(&s, func));
	CHECK(!lab_engine__open(&e, metrics, 0));
	CHECK(!lab_target__open(&t, &e, s.target));
	CHECK(!prog__recursion_misses(s.target, &misses, &has_guard));
	for (armed = 0; armed < 4; armed++) {
		before = s.replaced->bss->runs;
		s.skel->bss->pid = armed & 1 ? getpid() : 0;
		CHECK(!lab_target__begin(&t));
		for (i = 0; i < runs; i++)
			CHECK(!run_outer(&s));
		s.skel->bss->pid = 0;
		CHECK(!lab_target__end(&t));
		if (!(armed & 1)) {
			EQUAL(runs, s.replaced->bss->runs - before);
			EQUAL(runs, t.window.measured);
			EQUAL(runs, t.window.run_cnt);
			continue;
		}
		EQUAL((1 + 2 * reads) * runs, s.replaced->bss->runs - before);
		EQUAL((1 + 2 * reads) * runs, t.window.run_cnt);
		EQUAL(0, t.window.switched);
		if (!has_guard) {
			/* A kernel without the guard: what is nested is whole, but its readings
			 * take the place of those of the exit program around it. */
			EQUAL(2 * reads * runs, t.window.measured);
			EQUAL(runs, t.window.lost);
			continue;
		}
		EQUAL(runs, t.window.measured);
		EQUAL(reads * runs, lab_target__entry_misses(&t));
		EQUAL(reads * runs, lab_target__exit_misses(&t));
		EQUAL(reads * runs, t.window.lost_entry);
		EQUAL(reads * runs, t.window.lost_exit);
		EQUAL(2 * reads * runs, t.window.lost);
	}
cleanup:
	lab_target__close(&t);
	lab_engine__close(&e);
	setup_free(&s);
	return ok;
}

/*
 * The kernel skips the exit of runs at more addresses than there are slots, while no other run is
 * in flight. Each of them keeps its slot until a run is known to be further up the same stack;
 * they must not cost others theirs.
 */
static bool test_many_left_out(void)
{
	static const char *const ns[] = {"ns", NULL};
	const unsigned int runs = 10, depths = 10;
	struct setup s = {};
	struct lab_engine e = {};
	struct lab_target t = {};
	bool ok = true, has_guard;
	unsigned int i, most = 0;
	__u64 misses;

	/* The exit program looks into its map of processes when it is done with the slot. */
	CHECK(setup(&s, "__htab_map_lookup_elem"));
	CHECK(!lab_engine__open(&e, ns, 0));
	e.session.opts.tasks = true;
	CHECK(!lab_target__open(&t, &e, s.target));
	CHECK(!prog__recursion_misses(s.target, &misses, &has_guard));
	CHECK(!lab_pin(0));
	/* The first run of a process looks more than once. */
	CHECK(!run_outer(&s));
	CHECK(!lab_target__begin(&t));
	for (i = 0; i <= depths; i++) {
		s.skel->bss->depth = i;
		s.skel->bss->pid = getpid();
		CHECK(!run_outer(&s));
		s.skel->bss->pid = 0;
	}
	CHECK(!lab_target__end(&t));
	EQUAL(depths + 1, s.skel->bss->fired);
	EQUAL(2 * (depths + 1), t.window.run_cnt);
	for (i = 0; i < t.to.n_cpus; i++)
		most = t.to.cpu[i].in_flight > most ? t.to.cpu[i].in_flight : most;
	if (has_guard) {
		EQUAL(PROFILER_SLOTS, most);
		EQUAL(depths + 1, t.window.lost_exit);
		EQUAL(depths + 1, t.window.lost);
		EQUAL(depths + 1, t.window.measured);
	} else {
		EQUAL(0, most);
	}
	/* Undisturbed again, nothing is lost. */
	CHECK(!lab_target__begin(&t));
	for (i = 0; i < runs; i++)
		CHECK(!run_outer(&s));
	CHECK(!lab_target__end(&t));
	EQUAL(runs, t.window.run_cnt);
	EQUAL(runs, t.window.measured);
cleanup:
	lab_pin_anywhere();
	lab_target__close(&t);
	lab_engine__close(&e);
	setup_free(&s);
	return ok;
}

static bool test_guarded_ns(void)
{
	static const char *const ns[] = {"ns", NULL};

	return guarded(ns, "bpf_ktime_get_ns", 1);
}

static bool test_guarded(void)
{
	static const char *const one[] = {"instructions", NULL};
	static const char *const two[] = {"cycles", "instructions", NULL};
	static const char *const three[] = {"cycles", "instructions", "ns", NULL};

	return guarded(one, "perf_event_read_local", 1) &&
	       guarded(two, "perf_event_read_local", 2) && guarded(three, "bpf_ktime_get_ns", 1);
}

static const struct lab_test tests[] = {
	{"left out while the clock is read", no_kprobes, test_guarded_ns},
	{"left out at more addresses than there are slots", no_kprobes, test_many_left_out},
	{"left out while counters are read", no_kprobes_or_pmu, test_guarded},
};

int main(void)
{
	return lab_main(tests, ARRAY_SIZE(tests));
}
