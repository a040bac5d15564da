/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_PROFILER_STATE_H
#define BPFCOST_PROFILER_STATE_H

/*
 * What the profiler's BPF programs (progs/profiler.bpf.c) and plugin/profiler.c share.
 *
 * All state is per CPU and per target function, in one mmap()able array map of one element: struct
 * profiler_cpu for each CPU, which ends in a struct profiler_event for each event.
 */

/* Runs of one target that can be in flight on one CPU: nested by interrupts or by themselves, or
 * interleaved by preemption or sleeping. One more is lost, and counted. */
#define PROFILER_SLOTS	   8
#define PROFILER_SLOT_MASK (PROFILER_SLOTS - 1)

/* Addresses that differ in lower bits only are on one stack: x86-64's and arm64's have this size at
 * least, and are aligned to it (THREAD_SIZE, THREAD_ALIGN). */
#define PROFILER_STACK 16384

/* Of the stack's 512 bytes a multiplexed read takes 24 a metric. */
#define PROFILER_MAX_EVENTS 16

/* Addresses of contexts are multiples of 8. */
#define PROFILER_CTX_MARK 1ULL

struct profiler_event {
	/* Sums over the measured runs. enabled and running are kept when events are multiplexed. */
	__u64 value;
	__u64 enabled;
	__u64 running;
	/* With PARAM_CALLS: value less that of the calls in it, and what measuring these cost. */
	__u64 self;
	__u64 overhead;
	/* Set by user space: what measuring a call of this function costs its caller, and how much
	 * of that is outside of value. */
	__u64 added;
	__u64 rest;
	/* At the exit that is under way. */
	__u64 end;
	__u64 end_enabled;
	__u64 end_running;
	/* At entry, by slot. */
	__u64 start[PROFILER_SLOTS];
	__u64 start_enabled[PROFILER_SLOTS];
	__u64 start_running[PROFILER_SLOTS];
};

struct profiler_clock {
	__u64 value; /* ns */
	__u64 self;  /* these four as in struct profiler_event */
	__u64 overhead;
	__u64 added;
	__u64 rest;
	__u64 end;
	__u64 start[PROFILER_SLOTS];
};

struct profiler_cpu {
	__u64 measured;	 /* whole pairs in one piece: the only ones in the sums */
	__u64 switched;	 /* the task was switched out between entry and exit */
	__u64 lost_pair; /* an exit without its entry: too deep, or the entry was skipped */
	__u64 lost_read; /* a counter could not be read */
	__u64 full;	 /* entries that found no slot (their exits are in lost_pair) */
	__u64 with_self; /* measured runs that are in self (PARAM_CALLS) */
	/* Sampling only: */
	__u64 entries; /* all entries */
	__u64 next;    /* the value of entries at which the next run is measured */
	__u64 deep;    /* slots other than the first that are taken */
	__u64 exiting; /* context of the last exit (PARAM_UNGUARDED only) */
	__u64 slot;    /* scratch */

	__u64 key[PROFILER_SLOTS]; /* of the first event on this CPU, the same for each slot */
	/* The context address of the run in the slot; 0: free. In the first slot it has the bit
	 * PROFILER_CTX_MARK when runs came after it that took other slots. */
	__u64 ctx[PROFILER_SLOTS];
	__u64 after[PROFILER_SLOTS];	/* the run came after the one that is in the first slot */
	__u64 switches[PROFILER_SLOTS]; /* context switches of the task at entry */
	struct profiler_clock clock;
	struct profiler_event event[];
};

/*
 * Parameters are immediate operands that plugin/profiler.c replaces before the load. A read of a
 * constant from .rodata stays in the program (5 instructions on arm64), even where the verifier
 * has removed the branch that it decides; a move of an immediate is one.
 */
enum profiler_param {
	PARAM_EVENTS,	 /* number of metrics that are perf events */
	PARAM_CLOCK,	 /* the clock is a metric as well */
	PARAM_UNGUARDED, /* the kernel lets an exit program interrupt itself (before 5.12) */
	PARAM_SAMPLE,	 /* 0: every run; N: every Nth run of each CPU */
	PARAM_TASKS,	 /* keep sums per process */
	PARAM_HISTOGRAM, /* keep the distribution of metric 0 */
	PARAM_FLOOR,	 /* floor of metric 0, taken off in the histogram */
	PARAM_CALLS,	 /* all functions of a program are targets: keep who called whom */
	PARAM_ROOT,	 /* the main function: nobody called it */
	PARAM_CPUS,	 /* highest possible CPU id + 1 */
	PARAM_STRIDE,	 /* size of one CPU's state */
	PARAM_MAX,
};

#define PROFILER_PARAM_MAGIC 0x6bc05700
/* In the same way, the operand of the 64-bit move that gets the address of the state. */
#define PROFILER_CPUS_MAGIC 0x6bc05800

/* Histogram of metric 0: values below 8 have a bucket each, above each power of two is cut into 8
 * equal parts, so that a bucket is at most an eighth of its value wide. */
#define PROFILER_HIST_SUB_BITS 3
#define PROFILER_HIST_SUB      (1 << PROFILER_HIST_SUB_BITS)
#define PROFILER_HIST_BUCKETS  ((64 - PROFILER_HIST_SUB_BITS + 1) * PROFILER_HIST_SUB)

/* Sums per process. What finds no room in the map goes to the key PROFILER_TASK_OTHER. */
#define PROFILER_TASKS	    1024
#define PROFILER_TASK_OTHER 0xffffffff

struct profiler_task {
	__u64 measured;
	char comm[16];
	__u64 value[PROFILER_MAX_EVENTS + 1]; /* the clock is the last */
};

/* Calls under way on a CPU, of all targets together: who called whom. */
#define PROFILER_FRAMES 16

struct profiler_frame {
	__u64 ctx; /* as in struct profiler_cpu */
	__u64 task;
	/* Of the calls that it has made so far, by metric, the clock last: what they took, and how
	 * much of that is measuring. */
	__u64 inner[PROFILER_MAX_EVENTS + 1];
	__u64 overhead[PROFILER_MAX_EVENTS + 1];
};

struct profiler_calls {
	__u64 depth;
	__u64 caller; /* scratch */
	struct profiler_frame frame[PROFILER_FRAMES];
};

#endif
