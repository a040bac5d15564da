/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_COST_H
#define BPFCOST_COST_H

#include <stdbool.h>

#include "errmsg.h"

/*
 * What a run of a program costs as seen from outside, by BPF_PROG_TEST_RUN: everything that
 * attaching to it or counting it adds is in there. With and without, and the difference is the
 * added cost.
 */
struct cost {
	double ns;
	double instructions; /* kernel mode; only with has_instructions */
	double cycles;
	bool has_instructions;
	bool has_cycles;
};

struct cost_meter {
	int instructions_fd; /* counters of this thread; -1: the machine has none */
	int cycles_fd;
};

void cost_meter__open(struct cost_meter *m);
void cost_meter__close(struct cost_meter *m);

/*
 * Measures a run of the program behind @prog_fd. A short and a long burst are compared, so that
 * what the system call costs falls out; the median of many such pairs, so that interrupts do.
 * @step: bursts are multiples of it (a sampled run is one in @step).
 */
int cost__measure(struct cost *cost, const struct cost_meter *m, int prog_fd, unsigned step,
		  struct errmsg *err);

#endif
