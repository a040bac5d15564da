// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What prog bench says of what it has measured, and which programs it runs by itself. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>

#include "bench.h"
#include "bench_view.h"
#include "ktap.h"
#include "machine.h"

/* 2N runs take twice as long as N within 5 %: from 1.9 to 2.1 times. */
static bool test_reliable(void)
{
	static const struct {
		double ratio;
		bool reliable;
	} rows[] = {
		{2, true},	{1.901, true}, {2.099, true}, {1.899, false},
		{2.101, false}, {1, false},    {4, false},    {0, true}, /* not known: a command */
	};
	bool ok = true;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct bench_prog p = {.ratio = rows[i].ratio};

		if (bench_prog__reliable(&p) == rows[i].reliable)
			continue;
		ktap_note("a ratio of %g: expected %d", p.ratio, rows[i].reliable);
		ok = false;
	}
	return ok;
}

static bool test_how(void)
{
	static const struct {
		__u32 type;
		enum bench_how how;
	} rows[] = {
		{BPF_PROG_TYPE_XDP, BENCH_DATA},
		{BPF_PROG_TYPE_SCHED_CLS, BENCH_DATA},
		{BPF_PROG_TYPE_SOCKET_FILTER, BENCH_DATA},
		{BPF_PROG_TYPE_SK_LOOKUP, BENCH_CONTEXT},
		{BPF_PROG_TYPE_RAW_TRACEPOINT, BENCH_ONCE},
		{BPF_PROG_TYPE_SYSCALL, BENCH_ONCE},
		{BPF_PROG_TYPE_KPROBE, BENCH_COMMAND},
		{BPF_PROG_TYPE_TRACEPOINT, BENCH_COMMAND},
		{BPF_PROG_TYPE_TRACING, BENCH_COMMAND},
		{BPF_PROG_TYPE_EXT, BENCH_LOADED},
		{BPF_PROG_TYPE_STRUCT_OPS, BENCH_LOADED},
		{1000, BENCH_COMMAND}, /* newer than we are */
	};
	bool ok = true;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (bench__how(rows[i].type) == rows[i].how)
			continue;
		ktap_note("type %u: %d, expected %d", rows[i].type, bench__how(rows[i].type),
			  rows[i].how);
		ok = false;
	}
	return ok;
}

/* What `format go` prints of programs with these names, and a metric. */
static bool go_is(const char *const *names, size_t n, const char *metric, unsigned cpus,
		  const char *expected)
{
	struct bench_reading reading = {.runs = 50, .value = 12.5};
	struct bench_metric m[] = {
		{.name = "run_time_ns", .unit = "ns", .has_floor = true, .floor = 2, .v = &reading},
		{.name = metric, .unit = metric, .v = &reading},
	};
	const struct machine machine = {.arch = "x86_64", .kernel = "6.1", .n_online = cpus};
	struct bench_prog prog[4] = {}, *v[4];
	struct bench b = {.count = 1, .v = v, .n = n};
	struct errmsg err = {};
	struct ctx ctx = {.msg = stderr, .err = &err};
	char *text = NULL;
	size_t i, size;
	bool ok;

	for (i = 0; i < n; i++) {
		prog[i].prog.name = (char *)names[i];
		prog[i].metric = m;
		prog[i].n_metrics = 2;
		v[i] = &prog[i];
	}
	ctx.out = open_memstream(&text, &size);
	if (!ctx.out)
		return false;
	bench_view__go(&ctx, &b, &machine);
	fclose(ctx.out);
	ok = !strcmp(text, expected);
	if (!ok)
		ktap_note("'%s', expected '%s'", text, expected);
	free(text);
	return ok;
}

#define HEAD   "goos: linux\ngoarch: amd64\nkernel: 6.1\n"
#define VALUES "         50        10.50 ns/op        12.50 "

/* Names of any kind: what would end one does not. Others' letters are left. */
static bool test_go(void)
{
	static const char *const names[] = {"xdp_fw", "two words", "xdp_fw", "a-2/\t\n#\xc3\xa9"};

	return go_is(names, 4, "instructions", 2,
		     HEAD "BenchmarkBPF/xdp_fw-2" VALUES "insns/op\n"
			  "BenchmarkBPF/two_words-2" VALUES "insns/op\n"
			  "BenchmarkBPF/xdp_fw#01-2" VALUES "insns/op\n"
			  "BenchmarkBPF/a_2____\xc3\xa9-2" VALUES "insns/op\n") &&
	       /* One CPU is not said; a unit is one word. */
	       go_is(names, 1, "power/energy pkg/", 1,
		     HEAD "BenchmarkBPF/xdp_fw" VALUES "power_energy_pkg_/op\n");
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 3);
	ktap_ok(&k, test_reliable(), "bench: reliable within 5 %");
	ktap_ok(&k, test_how(), "bench: which types the kernel runs by itself");
	ktap_ok(&k, test_go(), "bench: names and units in format go");
	return ktap_end(&k);
}
