// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "cost.h"

#define PAIRS	   41
#define SHORT_RUNS 64
#define LONG_RUNS  256

struct reading {
	uint64_t ns, instructions, cycles;
};

static int open_counter(uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
		.exclude_user = 1,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

void cost_meter__open(struct cost_meter *m)
{
	m->instructions_fd = open_counter(PERF_COUNT_HW_INSTRUCTIONS);
	m->cycles_fd = open_counter(PERF_COUNT_HW_CPU_CYCLES);
}

void cost_meter__close(struct cost_meter *m)
{
	if (m->instructions_fd >= 0)
		close(m->instructions_fd);
	if (m->cycles_fd >= 0)
		close(m->cycles_fd);
	m->instructions_fd = m->cycles_fd = -1;
}

static int read_all(const struct cost_meter *m, struct reading *r)
{
	struct timespec t;

	memset(r, 0, sizeof(*r));
	if (m->instructions_fd >= 0 &&
	    read(m->instructions_fd, &r->instructions, sizeof(uint64_t)) != sizeof(uint64_t))
		return -EIO;
	if (m->cycles_fd >= 0 &&
	    read(m->cycles_fd, &r->cycles, sizeof(uint64_t)) != sizeof(uint64_t))
		return -EIO;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	r->ns = t.tv_sec * 1000000000ULL + t.tv_nsec;
	return 0;
}

static int burst(const struct cost_meter *m, int fd, unsigned runs, struct reading *r)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = runs);
	struct reading before;
	int rc;

	rc = read_all(m, &before) ?: bpf_prog_test_run_opts(fd, &opts) ?: read_all(m, r);
	if (rc)
		return rc;
	r->ns -= before.ns;
	r->instructions -= before.instructions;
	r->cycles -= before.cycles;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v)
{
	qsort(v, PAIRS, sizeof(*v), compare);
	return v[PAIRS / 2];
}

int cost__measure(struct cost *cost, const struct cost_meter *m, int prog_fd, unsigned step,
		  struct errmsg *err)
{
	unsigned few = (SHORT_RUNS + step - 1) / step * step;
	unsigned many = (LONG_RUNS + step - 1) / step * step;
	double ns[PAIRS], instructions[PAIRS], cycles[PAIRS], runs;
	struct reading a, b;
	char buf[128];
	int i, rc;

	if (many == few)
		many += step;
	runs = many - few;
	for (i = -1; i < PAIRS; i++) { /* the first one warms up */
		rc = burst(m, prog_fd, few, &a) ?: burst(m, prog_fd, many, &b);
		if (rc)
			return errmsg__fail(err, rc, "cannot run the empty program: %s",
					    errmsg__errno(rc, buf, sizeof(buf)));
		if (i < 0)
			continue;
		ns[i] = ((double)b.ns - a.ns) / runs;
		instructions[i] = ((double)b.instructions - a.instructions) / runs;
		cycles[i] = ((double)b.cycles - a.cycles) / runs;
	}
	memset(cost, 0, sizeof(*cost));
	cost->ns = median(ns);
	cost->has_instructions = m->instructions_fd >= 0;
	cost->has_cycles = m->cycles_fd >= 0;
	if (cost->has_instructions)
		cost->instructions = median(instructions);
	if (cost->has_cycles)
		cost->cycles = median(cycles);
	return 0;
}
