/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_LAB_H
#define SELFTESTS_LAB_H

/*
 * The profiler's engine under test, without the command around it: a session, programs that it
 * measures, and windows that begin and end where a test says so.
 */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "ktap.h"
#include "session.h"
#include "window.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* For functions that return true when all was as expected, with a label `cleanup` and a variable
 * `ok`. What is not as expected is told with the values that were seen. */
#define CHECK(cond)                                                                \
	do {                                                                       \
		if (!(cond)) {                                                     \
			ktap_note("%s:%d: not so: %s", __func__, __LINE__, #cond); \
			ok = false;                                                \
			goto cleanup;                                              \
		}                                                                  \
	} while (0)

#define EQUAL(expected, seen)                                                                 \
	do {                                                                                  \
		double expected_ = (expected), seen_ = (seen);                                \
		if (fabs(expected_ - seen_) > 1e-6) {                                         \
			ktap_note("%s:%d: %s: expected %.12g, saw %.12g", __func__, __LINE__, \
				  #seen, expected_, seen_);                                   \
			ok = false;                                                           \
			goto cleanup;                                                         \
		}                                                                             \
	} while (0)

struct lab_test {
	const char *name;
	/* What there must be for this test: NULL, or what is missing. */
	const char *(*missing)(void);
	bool (*run)(void);
};

/* Runs them and returns the exit status. If this machine does not let itself be profiled, that is
 * the one result, a skip. */
int lab_main(const struct lab_test *tests, size_t n);

/* For struct lab_test. */
const char *lab_nothing(void);
/* An instruction takes a nanosecond: counts and times have no noise but interrupts. */
const char *lab_exact(void);
const char *lab_pmu(void);
const char *lab_exact_pmu(void);
const char *lab_two_cpus(void);
/* Other people's machines keep their CPUs. */
const char *lab_hotplug(void);

/* What all targets of one measurement share. */
struct lab_engine {
	struct errmsg err;
	struct ctx ctx;
	struct session session;
	const struct floor *floor;
};

/* @metrics ends with NULL. Returns 0 or a negative errno, which has been told in a note. The engine
 * must not be moved, and be closed in any case. */
int lab_engine__open(struct lab_engine *e, const char *const *metrics, unsigned int sample_every);
void lab_engine__close(struct lab_engine *e);

/* One program under the profiler. */
struct lab_target {
	struct lab_engine *engine;
	struct prog prog;
	struct profiler *profiler;
	struct sample from, to;
	struct window window; /* of the last lab_target__end() */
};

/* As lab_engine__open(). The program's fd stays the caller's. */
int lab_target__open(struct lab_target *t, struct lab_engine *e, int prog_fd);
int lab_target__begin(struct lab_target *t);
int lab_target__end(struct lab_target *t);
void lab_target__close(struct lab_target *t);

/* The kernel's count of the times that our entry or exit program was skipped, in the window. */
double lab_target__entry_misses(const struct lab_target *t);
double lab_target__exit_misses(const struct lab_target *t);

/* Runs a program that takes a packet @repeat times, at one go. 0 or negative errno. */
int lab_run(int prog_fd, unsigned int repeat);

/* The middle one: interrupts fall into few of them, and only make those larger. Sorts. */
double lab_median(double *v, size_t n);

/* The calling thread runs on this CPU only. 0 or negative errno. */
int lab_pin(int cpu);
int lab_pin_anywhere(void);

/* Turns a CPU on or off. 0 or negative errno. */
int lab_cpu_online(int cpu, bool on);

#endif
