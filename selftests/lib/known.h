/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_KNOWN_H
#define SELFTESTS_KNOWN_H

/*
 * Programs with known costs (progs/cost): which families there are, what a step of each costs by
 * rule, and what it costs by measurement, in several ways.
 */
#include <stdbool.h>
#include <stddef.h>

#include "image.h"
#include "lab.h"

/* What a step costs by construction. */
enum known_rule {
	/* Nothing is known, but that a step costs the same each time. */
	KNOWN_LINEAR,
	/* Each instruction that the step makes the image longer is run once, but for those that a
	 * branch skips. */
	KNOWN_STRAIGHT,
	/* As KNOWN_STRAIGHT, and a subprogram that is run from its first instruction to its ret. */
	KNOWN_CALL,
	/* A subprogram with a call in it, run from its first instruction to its ret. */
	KNOWN_DEEP,
	/* A helper: without a call in the image it was inlined, and the step costs what the image
	 * is longer, but for what branches skip; with one it costs more than that. */
	KNOWN_HELPER,
	/* An iteration of the only loop of the image, and the subprogram that it calls; with a call
	 * of the kernel in it, it costs more than that. */
	KNOWN_LOOP,
	/* The image of the program "stage", from where a tail call enters it to its own. */
	KNOWN_TAIL,
};

/* "linear", "straight", "call", "deep", "helper", "loop", "tail" */
extern const char *const known_rule_name[];

enum known_arch { KNOWN_ARM64, KNOWN_AMD64, KNOWN_ARCHES };

struct known_family {
	const char *name;
	const char *object; /* progs/cost/OBJECT.bpf.o */
	const char *step;   /* what a step is, in words */
	/* What not every kernel of the lab has, and since when; NULL: all take the programs. */
	const char *needs;
	enum known_rule rule;
	/* Instructions of a step where they are known without looking; 0: they are not. */
	unsigned int insns[KNOWN_ARCHES];
	unsigned int branches; /* KNOWN_STRAIGHT: in the image of a step */
	/* KNOWN_STRAIGHT, and inlined KNOWN_HELPER: instructions that branches jump over */
	unsigned int skipped;
};

/* Ends with an entry without a name. */
extern const struct known_family known_families[];

/* The ways to measure. */
enum known_method {
	KNOWN_RUN_TIME, /* the kernel's run_time_ns */
	KNOWN_TEST_RUN, /* the time of BPF_PROG_TEST_RUN, in ns */
	KNOWN_NS,	/* the profiler's metrics */
	KNOWN_INSTRUCTIONS,
	KNOWN_CYCLES,
	KNOWN_METHODS,
};

/* "run_time_ns", "test_run_ns", "ns", "instructions", "cycles" */
extern const char *const known_method_name[KNOWN_METHODS];

/* N, 2N and 3N steps. */
#define KNOWN_SIZES 3

struct known_result {
	const struct known_family *family;
	char skip
		[512]; /* why this kernel, which lacks something, did not; empty: it was measured */
	unsigned int n; /* steps in the first program */
	bool has[KNOWN_METHODS];
	double cost[KNOWN_METHODS][KNOWN_SIZES]; /* of a run */
	bool has_image;
	struct image image[KNOWN_SIZES];
	struct image stage; /* KNOWN_TAIL */
	/* The object has a program FAMILY_beyond, which does more than a kernel allows; it ran, and
	 * returned that it was cut short. */
	bool has_limit, limited;
};

/* What measuring needs once. */
struct known {
	bool exact;    /* an instruction takes a nanosecond */
	bool emulated; /* the lab without exact time: no time means anything */
	char objects[4096];
	bool profiles; /* entry and exit programs are allowed here; else engine.err says why not */
	struct lab_engine engine;
};

/* Finds the objects beside the program that runs, and out what this machine can do. The struct must
 * not be moved. Returns 0 or a negative errno; known__close() in any case. */
int known__open(struct known *k);
void known__close(struct known *k);

/* Measures @family. A kernel that refuses programs that need something new is no error but
 * result->skip. Returns 0, or a negative errno with a message. */
int known__measure(struct known *k, const struct known_family *family, struct known_result *result,
		   struct errmsg *err);

/* (cost(2N) - cost(N)) / N */
double known__step(const struct known_result *r, enum known_method m);
/* The same as a result: without the instructions that load a map's address, where the image shows
 * them (it depends on the boot how many it takes); where only the clock's rounding
 * (known__rounding()) keeps it from being whole instructions in exact time, it is whole; else in
 * hundredths. */
double known__result(const struct known *k, const struct known_result *r, enum known_method m);
/* The same of the image: bytes, instructions, calls. */
double known__image_bytes(const struct known_result *r);
double known__image_insns(const struct known_result *r);
double known__image_calls(const struct known_result *r);

/* What a step has to cost here. False: no number is known. */
bool known__expected(const struct known_result *r, double *insns);
/* How many of these instructions load a map's address. */
unsigned int known__address(const struct known_result *r);

/* By how many ns a run's cost may be wrong here: by none where time is exact, but on x86 the clock
 * rounds at both ends. */
double known__rounding(void);

/* Whether all is as it has to be: the methods agree, the cost is linear, the rule holds. Returns
 * the number of things that are not, each told by @tell. */
unsigned int known__check(const struct known *k, const struct known_result *r,
			  void (*tell)(const char *fmt, ...));

#endif
