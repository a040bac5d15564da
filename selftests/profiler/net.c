// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Gross minus floor: N instructions more than an empty program cost N more, whatever is measured
 * beside them.
 */
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "lab.h"
#include "straight.skel.h"

/* A burst ends long before the next timer interrupt, so that few bursts have one inside: the middle
 * one of them has none. */
#define RUNS   50
#define BURSTS 7

static const char *const metrics[] = {"cycles", "instructions", "ns"};

struct straight {
	struct straight_bpf *skel;
	struct {
		int fd;
		unsigned int n;
	} prog[5];
};

static bool load(struct straight *s)
{
	memset(s, 0, sizeof(*s));
	s->skel = straight_bpf__open_and_load();
	if (!s->skel)
		return false;
#define ADD(i, count)                                                    \
	s->prog[i].fd = bpf_program__fd(s->skel->progs.straight##count); \
	s->prog[i].n = count
	ADD(0, 0);
	ADD(1, 1);
	ADD(2, 10);
	ADD(3, 100);
	ADD(4, 1000);
	return true;
}

/* With @e's metrics, net is the number of instructions for each of the programs. */
static bool all_exact(struct lab_engine *e, const struct straight *s)
{
	double net[SESSION_MAX_METRICS][BURSTS];
	struct lab_target t = {};
	size_t i, b, m, n = e->session.n_metrics;
	bool ok = true;

	for (m = 0; m < n; m++)
		EQUAL(e->floor->low[m], e->floor->value[m]);
	for (i = 0; i < ARRAY_SIZE(s->prog); i++) {
		CHECK(!lab_target__open(&t, e, s->prog[i].fd));
		for (b = 0; b < BURSTS; b++) {
			CHECK(!lab_target__begin(&t) && !lab_run(s->prog[i].fd, RUNS) &&
			      !lab_target__end(&t));
			EQUAL(RUNS, t.window.run_cnt);
			EQUAL(RUNS, t.window.measured);
			for (m = 0; m < n; m++) {
				CHECK(!t.window.metric[m].estimate);
				net[m][b] = t.window.metric[m].net;
			}
		}
		for (m = 0; m < n; m++) {
			/* The clock and the counters of the lab tick once an instruction. */
			if (lab_median(net[m], BURSTS) == s->prog[i].n * RUNS)
				continue;
			ktap_note("%u instructions: %s: net of the bursts of %d: %g to %g",
				  s->prog[i].n, e->session.order[m]->name, RUNS, net[m][0],
				  net[m][BURSTS - 1]);
			ok = false;
		}
		lab_target__close(&t);
	}
cleanup:
	lab_target__close(&t);
	return ok;
}

static bool combination(unsigned int which, const struct straight *s)
{
	const char *words[ARRAY_SIZE(metrics) + 1];
	struct lab_engine e;
	size_t i, n = 0;
	bool ok = true;

	for (i = 0; i < ARRAY_SIZE(metrics); i++)
		if (which & 1U << i)
			words[n++] = metrics[i];
	words[n] = NULL;
	CHECK(!lab_engine__open(&e, words, 0));
	ok = all_exact(&e, s);
cleanup:
	if (!ok)
		for (i = 0; i < n; i++)
			ktap_note("with: %s", words[i]);
	lab_engine__close(&e);
	return ok;
}

static bool test_ns(void)
{
	struct straight s;
	bool ok = true;

	CHECK(load(&s));
	ok = combination(1U << 2, &s);
cleanup:
	straight_bpf__destroy(s.skel);
	return ok;
}

static bool test_combinations(void)
{
	unsigned int which;
	struct straight s;
	bool ok = true;

	CHECK(load(&s));
	for (which = 1; which < 1U << ARRAY_SIZE(metrics); which++)
		ok &= combination(which, &s);
cleanup:
	straight_bpf__destroy(s.skel);
	return ok;
}

/* As many as the machine has counters for, with raw events: still pinned, still exact. */
static bool test_full(void)
{
	const char *words[SESSION_MAX_METRICS + 1] = {"cycles", "instructions", "ns"};
	static const char *const more[] = {"r8", "r11", "r0", "r23", "r24", "r3c"};
	struct lab_engine e = {};
	struct straight s;
	bool ok = true;
	size_t n = 3;

	CHECK(load(&s));
	for (; n - 3 < ARRAY_SIZE(more); n++) {
		words[n] = more[n - 3];
		CHECK(!lab_engine__open(&e, words, 0));
		if (e.session.opts.multiplexed)
			break;
		lab_engine__close(&e);
	}
	lab_engine__close(&e);
	words[n] = NULL;
	ktap_note("%zu events and the clock", n - 1);
	CHECK(!lab_engine__open(&e, words, 0));
	CHECK(!e.session.opts.multiplexed);
	{
		struct lab_target t = {};
		double net[2][BURSTS];
		int b;

		CHECK(!lab_target__open(&t, &e, s.prog[3].fd));
		for (b = 0; b < BURSTS; b++) {
			CHECK(!lab_target__begin(&t) && !lab_run(s.prog[3].fd, RUNS) &&
			      !lab_target__end(&t));
			net[0][b] = t.window.metric[0].net;
			net[1][b] = t.window.metric[1].net;
		}
		lab_target__close(&t);
		EQUAL(100 * RUNS, lab_median(net[0], BURSTS));
		EQUAL(100 * RUNS, lab_median(net[1], BURSTS));
	}
cleanup:
	lab_engine__close(&e);
	straight_bpf__destroy(s.skel);
	return ok;
}

/* Every Nth run is measured, all are counted, and what is measured is as exact. */
static bool sampled(const char *const *words, unsigned int every)
{
	double net[SESSION_MAX_METRICS][BURSTS];
	unsigned int runs = every * 10, b;
	struct lab_engine e;
	struct lab_target t = {};
	struct straight s;
	bool ok = true;
	size_t m;

	memset(&e, 0, sizeof(e));
	CHECK(load(&s));
	CHECK(!lab_engine__open(&e, words, every));
	CHECK(!lab_target__open(&t, &e, s.prog[3].fd));
	for (b = 0; b < BURSTS; b++) {
		CHECK(!lab_target__begin(&t) && !lab_run(s.prog[3].fd, runs) &&
		      !lab_target__end(&t));
		EQUAL(runs, t.window.run_cnt);
		EQUAL(10, t.window.measured);
		EQUAL(runs - 10, t.window.skipped);
		EQUAL(0, t.window.switched + t.window.lost);
		for (m = 0; m < t.window.n_metrics; m++) {
			CHECK(t.window.metric[m].estimate);
			net[m][b] = t.window.metric[m].net;
		}
	}
	for (m = 0; m < t.window.n_metrics; m++)
		if (!lab_exact())
			EQUAL(100.0 * runs, lab_median(net[m], BURSTS));
	/* A burst that is no multiple: the next run to be measured is not forgotten. */
	CHECK(!lab_target__begin(&t) && !lab_run(s.prog[3].fd, every - 1) && !lab_target__end(&t));
	EQUAL(every - 1, t.window.run_cnt);
	EQUAL(1, t.window.measured);
	CHECK(!lab_target__begin(&t) && !lab_run(s.prog[3].fd, 2) && !lab_target__end(&t));
	EQUAL(2, t.window.run_cnt);
	EQUAL(1, t.window.measured);
	EQUAL(1, t.window.skipped);
cleanup:
	lab_target__close(&t);
	lab_engine__close(&e);
	straight_bpf__destroy(s.skel);
	return ok;
}

static bool test_sample_ns(void)
{
	static const char *const words[] = {"ns", NULL};

	return sampled(words, 4) && sampled(words, 64);
}

static bool test_sample(void)
{
	static const char *const words[] = {"cycles", "instructions", NULL};

	return sampled(words, 4) && sampled(words, 64);
}

static const struct lab_test tests[] = {
	{"N instructions take N ns", lab_exact, test_ns},
	{"N instructions in every combination of metrics", lab_exact_pmu, test_combinations},
	{"all counters of the machine at once", lab_exact_pmu, test_full},
	{"sample N: ns", lab_nothing, test_sample_ns},
	{"sample N: cycles and instructions", lab_pmu, test_sample},
};

int main(void)
{
	return lab_main(tests, ARRAY_SIZE(tests));
}
