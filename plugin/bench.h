/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_BENCH_H
#define BPFCOST_BENCH_H

#include "child.h"
#include "progs.h"
#include "session.h"
#include "wait.h"

struct bpf_link;
struct bpf_object;
struct bpf_program;

/*
 * Measures programs again and again, so that what is measured can be compared: by BPF_PROG_TEST_RUN
 * on one CPU or, where the kernel has none for a type, while a command runs. What it takes is a
 * struct bench; it prints nothing.
 */

#define BENCH_DEFAULT_COUNT 10
#define BENCH_MAX_COUNT	    10000
/* BPF_PROG_TEST_RUN takes an int, and 2N runs are tried; a call cannot be interrupted. */
#define BENCH_MAX_REPEAT 100000000ULL
/* What a measurement lasts if the number of its runs is not given. */
#define BENCH_MEASUREMENT_NS 10000000ULL
/* The same where events take turns, which last 4 ms or a tick each: that all have some. */
#define BENCH_MULTIPLEXED_NS 100000000ULL

/* How BPF_PROG_TEST_RUN takes programs of a type (kernel, net/bpf/test_run.c and others). */
enum bench_how {
	BENCH_DATA,    /* data, and for some a context; repeats by itself */
	BENCH_CONTEXT, /* a context, no data; repeats by itself */
	BENCH_ONCE,    /* the same, but one run a call */
	BENCH_COMMAND, /* not at all: a command must make it run */
	BENCH_LOADED,  /* the same, and it takes more to load and attach it than an object file */
};

enum bench_how bench__how(__u32 prog_type);

/* What programs are run on. Owned; NULL is the default. */
struct bench_input {
	void *data, *context;
	size_t data_size, context_size;
};

/* One measurement. */
struct bench_reading {
	__u64 runs;
	double value; /* a run, gross: the median of the bursts, so that interrupts drop out */
	double mean;  /* a run, gross, of all runs */
};

/* One metric of one program. */
struct bench_metric {
	const char *name, *unit; /* not owned */
	bool has_floor;
	double floor, low, high; /* a run; the spread as in struct floor */
	bool estimate;		 /* scaled: events were multiplexed */
	bool shared;		 /* others ran the program all the time, their runs are in it */
	struct bench_reading *v; /* bench.count, or NULL */
};

struct bench_prog {
	struct prog prog;
	enum bench_how how;
	bool empty;    /* our own, for the floor */
	__u64 repeat;  /* runs of a measurement, with nothing attached */
	__u32 retval;  /* of the last run */
	__u64 call_ns; /* of the last call, where it is dearer than its runs; else 0 */
	double ratio;  /* of the time of 2N runs to that of N; 0: not known */
	struct bench_metric *metric;
	size_t n_metrics;
	struct bpf_program *object_prog; /* of bench.object; NULL: it was loaded already */
	struct bpf_link *link;		 /* attached for the command's time; owned */
	struct errmsg why;		 /* status not EXIT_DONE: why it could not be measured */
};

/* 2N runs take twice as long as N, within 5 %. */
bool bench_prog__reliable(const struct bench_prog *p);

struct bench {
	/* Set by the caller before bench__run(). */
	struct ctx *ctx;
	struct session session; /* with the metrics that were asked for */
	struct bench_input input;
	__u64 repeat;	   /* 0: chosen */
	unsigned count;	   /* measurements of each program */
	char **command;	   /* or NULL */
	struct wait *wait; /* signals end it */

	/* bench__open_object(), bench__add() */
	struct bpf_object *object; /* or NULL */
	char *object_name;	   /* the file's, without its directory; or NULL */
	struct bench_prog **v;
	size_t n;

	/* bench__run() */
	int cpu;	    /* that test runs were on; -1: none */
	bool statistics;    /* they were on already, and so are in the wall time */
	int command_status; /* of the command that failed, or 0 */
};

/*
 * Loads the programs of an object file that can be run (with @b->command: that can be attached,
 * too), and its maps. Nothing is pinned. Bad input is a file that is no such object; of programs
 * that the verifier refuses, the message has its last lines.
 */
int bench__open_object(struct bench *b, const char *path, struct errmsg *err);

/* Takes a loaded program over, also when that fails. -ENOMEM. */
int bench__add(struct bench *b, struct prog *prog, struct errmsg *err);

/*
 * Measures. Programs that cannot be measured have `why` set; it is an error if none can, or if a
 * signal comes (-EINTR). The CPU affinity of the process is put back.
 */
int bench__run(struct bench *b, struct errmsg *err);

/* NULL-safe; the session is closed as well. */
void bench__close(struct bench *b);

#endif
