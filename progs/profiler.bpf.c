// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Entry and exit programs around one function of a BPF program: the target.
 *
 * entry reads the counters last, exit reads them first, so that what they do besides is not part of
 * what they measure, whichever way they take. An entry and its exit are paired by their context
 * pointer: both get the same address, on the stack of the trampoline that calls them, and no other
 * run in flight has it.
 *
 * A run keeps its CPU: migration is disabled while a BPF program runs, sleepable or not, so that
 * per-CPU state needs no more than care for what interrupts it.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "profiler_state.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What is needed of the kernel's types; the offsets are relocated when the program is loaded. */
struct task_struct {
	unsigned long nvcsw;
	unsigned long nivcsw;
} __attribute__((preserve_access_index));

/* Key: CPU * number of events + event. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} events SEC(".maps");

/* Runs by the net value of metric 0. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} histogram SEC(".maps");

/* Sums by process id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profiler_task);
} tasks SEC(".maps");

/* One for all targets. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profiler_calls);
} calls SEC(".maps");

#define param(which)                                                                       \
	({                                                                                 \
		__s64 __v;                                                                 \
		asm volatile("%0 = %1" : "=r"(__v) : "i"(PROFILER_PARAM_MAGIC + (which))); \
		__v;                                                                       \
	})

/*
 * The state of a CPU. It is in the only element of an array map, which plugin/profiler.c makes and
 * whose address it puts in here: half the instructions of a lookup, inlined as it is. A macro,
 * because a function would return NULL for a wrong CPU, and that would be looked at once more. The
 * product in asm, because verifiers before 6.9 know its bounds only if the factor on the right is
 * the constant.
 */
#define STATE(c, cpu)                                                                 \
	do {                                                                          \
		__u64 __at = (cpu);                                                   \
		void *__cpus;                                                         \
                                                                                      \
		if ((cpu) >= (__u64)param(PARAM_CPUS))                                \
			return 0;                                                     \
		asm volatile("%0 = %1 ll" : "=r"(__cpus) : "i"(PROFILER_CPUS_MAGIC)); \
		asm volatile("%0 *= %1" : "+r"(__at) : "r"(param(PARAM_STRIDE)));     \
		(c) = __cpus + __at;                                                  \
	} while (0)

/* How often the current task was switched out. A run in an interrupt sees the count of the task
 * that was interrupted, which cannot change before the interrupt ends. */
static __always_inline __u64 switches(void)
{
	struct task_struct *task;
	__u64 voluntary, involuntary;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) {
		task = bpf_get_current_task_btf();
		return (__u64)task->nvcsw + task->nivcsw;
	}
	task = (void *)bpf_get_current_task();
	voluntary = BPF_CORE_READ(task, nvcsw);
	involuntary = BPF_CORE_READ(task, nivcsw);
	return voluntary + involuntary;
}

#define unlikely(x) __builtin_expect(!!(x), 0)

/* bpf_perf_event_read() returns the counter or a small negative errno; a counter that begins at 0
 * never gets as far. */
static __always_inline int is_error(__u64 v)
{
	return unlikely((__s64)v < 0);
}

/*
 * Loops over the events are unrolled: each step that is left after the verifier has removed what
 * cannot be reached costs one instruction for its parameter, and the first one too many ends them.
 */
#define for_each_event(i)                                                         \
	_Pragma("clang loop unroll(full)") for (i = 0; i < PROFILER_MAX_EVENTS && \
						       i < param(PARAM_EVENTS);   \
						i++)

/* Loads that the compiler shall not do ahead: each register that it needs for them is saved and
 * restored by every run. */
#define ONCE(x) (*(volatile __u64 *)&(x))

/* Whole, because an interrupt's exit may come into an entry, and its entry into an exit. */
#define add(p, n) ((void)__sync_fetch_and_add(p, n))

/* The runs in the other slots did not come after the one that is about to take the first. */
static __always_inline void forget_after(struct profiler_cpu *c)
{
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 1; i < PROFILER_SLOTS; i++)
		ONCE(c->after[i]) = 0;
}

/* The slot of an entry, or PROFILER_SLOTS. */
static __always_inline __u32 find_free(struct profiler_cpu *c, __u64 *ctx)
{
	__u64 here, there;
	__u32 i;

	/* A slot with our own address is of a run that is gone: the kernel skipped its exit, and
	 * has counted that in the exit program's recursion_misses. */
	if ((ONCE(c->ctx[0]) & ~PROFILER_CTX_MARK) == (__u64)ctx) {
		forget_after(c);
		return 0;
	}
#pragma clang loop unroll(full)
	for (i = 1; i < PROFILER_SLOTS; i++)
		if (ONCE(c->ctx[i]) == (__u64)ctx)
			return i;
#pragma clang loop unroll(full)
	for (i = 0; i < PROFILER_SLOTS; i++)
		if (!ONCE(c->ctx[i]))
			return i;
	/* Gone as well is a run further down the stack that we are on, which grows downwards. By
	 * way of memory: the verifier lets nobody calculate with a context pointer. */
	ONCE(c->slot) = (__u64)ctx;
	here = ONCE(c->slot);
#pragma clang loop unroll(full)
	for (i = 0; i < PROFILER_SLOTS; i++) {
		there = ONCE(c->ctx[i]);
		if ((here ^ there) < PROFILER_STACK && there < here) {
			if (!i)
				forget_after(c);
			return i;
		}
	}
	return PROFILER_SLOTS;
}

/*
 * The run in the first slot ends, and others came after it. If its task was not switched out
 * meanwhile, they were inside it, and have ended: those that are still there lost their exits. They
 * must not stay, or an exit at the same address that lost its entry would find them.
 */
static __always_inline void end_inner(struct profiler_cpu *c, int whole)
{
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 1; i < PROFILER_SLOTS; i++) {
		if (whole && c->after[i] && c->ctx[i]) {
			c->ctx[i] = 0;
			add(&c->deep, -1);
		}
		c->after[i] = 0;
	}
}

/* The slot of an exit, or PROFILER_SLOTS. */
static __always_inline __u32 find_run(struct profiler_cpu *c, __u64 *ctx)
{
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 1; i < PROFILER_SLOTS; i++)
		if (ONCE(c->ctx[i]) == (__u64)ctx)
			return i;
	return PROFILER_SLOTS;
}

/* What is kept by slot is in arrays of 8 bytes a slot. Seen from here, the slot has index 0: with
 * the first slot, which nearly every run gets, there is no index to add. */
static __always_inline struct profiler_cpu *run_of(struct profiler_cpu *c, __u32 slot)
{
	/* By way of memory, so that the verifier forgets which slot it is, and does not look at all
	 * that follows for each of them. */
	ONCE(c->slot) = slot;
	return (void *)c + (ONCE(c->slot) & PROFILER_SLOT_MASK) * sizeof(__u64);
}

/* Puts a call on top of those under way on this CPU. */
static __always_inline void push(__u64 *ctx)
{
	struct profiler_frame *frame;
	struct profiler_calls *on_cpu;
	__u32 zero = 0;
	__u64 depth;
	int i;

	if (!param(PARAM_CALLS))
		return;
	on_cpu = bpf_map_lookup_elem(&calls, &zero);
	if (!on_cpu)
		return;
	depth = on_cpu->depth;
	if (depth >= PROFILER_FRAMES)
		return;
	on_cpu->depth = depth + 1;
	frame = &on_cpu->frame[depth];
	frame->ctx = (__u64)ctx;
	frame->task = bpf_get_current_pid_tgid();
	for_each_event (i)
		frame->inner[i] = frame->overhead[i] = 0;
	frame->inner[PROFILER_MAX_EVENTS] = frame->overhead[PROFILER_MAX_EVENTS] = 0;
}

/* Takes a call off again, and with it those above it, whose exits were skipped or whose task has
 * gone to sleep in them. Returns where it was, or PROFILER_FRAMES. */
static __always_inline __u32 pop(__u64 *ctx)
{
	struct profiler_calls *on_cpu;
	__u32 zero = 0;
	int k, depth;

	if (!param(PARAM_CALLS))
		return PROFILER_FRAMES;
	on_cpu = bpf_map_lookup_elem(&calls, &zero);
	if (!on_cpu)
		return PROFILER_FRAMES;
	depth = on_cpu->depth;
	for (k = PROFILER_FRAMES - 1; k >= 0; k--) {
		if (k < depth && on_cpu->frame[k].ctx == (__u64)ctx) {
			/* By way of memory, as in run_of(). */
			ONCE(on_cpu->depth) = k;
			return ONCE(on_cpu->depth);
		}
	}
	return PROFILER_FRAMES;
}

/* What both entry programs do but for reading: a macro, as the one for the exit programs. */
#define ENTRY(before, read)                             \
	__u64 cpu = bpf_get_smp_processor_id(), now;    \
	struct profiler_cpu *c, *run;                   \
	__u32 slot;                                     \
	int i;                                          \
                                                        \
	STATE(c, cpu);                                  \
	if (param(PARAM_SAMPLE)) {                      \
		__u64 n = c->entries;                   \
                                                        \
		c->entries = n + 1;                     \
		if (n != c->next)                       \
			return 0;                       \
		c->next = n + param(PARAM_SAMPLE);      \
	}                                               \
	now = switches();                               \
	run = c;                                        \
	if (unlikely(ONCE(c->ctx[0]))) {                \
		slot = find_free(c, ctx);               \
		if (slot >= PROFILER_SLOTS) {           \
			c->full++;                      \
			return 0;                       \
		}                                       \
		run = run_of(c, slot);                  \
		if (slot) {                             \
			if (!ONCE(run->ctx[0]))         \
				add(&c->deep, 1);       \
			run->after[0] = 1;              \
			c->ctx[0] |= PROFILER_CTX_MARK; \
		}                                       \
	}                                               \
	ONCE(run->ctx[0]) = (__u64)ctx;                 \
	run->switches[0] = now;                         \
	before;                                         \
	for_each_event (i)                              \
		read;                                   \
	if (param(PARAM_CLOCK))                         \
	run->clock.start[0] = bpf_ktime_get_ns()

SEC("fentry/target")
int bpfcost_entry(__u64 *ctx)
{
	ENTRY(/* nothing */,
	      run->event[i].start[0] = bpf_perf_event_read(&events, run->key[0] + i));
	return 0;
}

/* With calls. */
SEC("fentry/target")
int bpfcost_entry_more(__u64 *ctx)
{
	ENTRY(push(ctx), run->event[i].start[0] = bpf_perf_event_read(&events, run->key[0] + i));
	return 0;
}

/* For events that share counters: keeps enabled and running times. */
SEC("fentry/target")
int bpfcost_entry_mx(__u64 *ctx)
{
	ENTRY(push(ctx), ({
		      struct bpf_perf_event_value v = {};
		      long err = bpf_perf_event_read_value(&events, run->key[0] + i, &v, sizeof(v));

		      run->event[i].start[0] = err ? err : v.counter;
		      run->event[i].start_enabled[0] = v.enabled;
		      run->event[i].start_running[0] = v.running;
	      }));
	return 0;
}

/*
 * What both exit programs do but for reading. The readings are kept in the state of the CPU, since
 * a stack costs more instructions; no other exit program of this target can run on the CPU before
 * this one has ended, because the kernel guards against it. Before 5.12 it did not: there,
 * PARAM_UNGUARDED, a run whose readings another one has replaced is lost.
 */
#define EXIT(read, after)                                                                         \
	__u64 cpu = bpf_get_smp_processor_id(), error = 0, now;                                   \
	struct profiler_cpu *c, *run;                                                             \
	__u32 slot;                                                                               \
	int i;                                                                                    \
                                                                                                  \
	STATE(c, cpu);                                                                            \
	/* Most exits that sampling left without an entry end here. */                            \
	if (param(PARAM_SAMPLE) && (c->ctx[0] & ~PROFILER_CTX_MARK) != (__u64)ctx && !c->deep)    \
		return 0;                                                                         \
	if (param(PARAM_UNGUARDED))                                                               \
		c->exiting = (__u64)ctx;                                                          \
	if (param(PARAM_CLOCK))                                                                   \
		c->clock.end = bpf_ktime_get_ns();                                                \
	for_each_event (i)                                                                        \
		read;                                                                             \
	now = switches();                                                                         \
	after;                                                                                    \
                                                                                                  \
	run = c;                                                                                  \
	if (unlikely(c->ctx[0] != (__u64)ctx)) {                                                  \
		slot = 0;                                                                         \
		if ((c->ctx[0] & ~PROFILER_CTX_MARK) == (__u64)ctx)                               \
			end_inner(c, c->switches[0] == now);                                      \
		else                                                                              \
			slot = find_run(c, ctx);                                                  \
		if (slot >= PROFILER_SLOTS) {                                                     \
			/* With sampling, the usual exit of a run that was left out. */           \
			if (!param(PARAM_SAMPLE))                                                 \
				c->lost_pair++;                                                   \
			return 0;                                                                 \
		}                                                                                 \
		run = run_of(c, slot);                                                            \
		if (slot)                                                                         \
			add(&c->deep, -1);                                                        \
	}                                                                                         \
	run->ctx[0] = 0;                                                                          \
	if (unlikely(run->switches[0] != now)) {                                                  \
		c->switched++;                                                                    \
		return 0;                                                                         \
	}                                                                                         \
	if (param(PARAM_UNGUARDED) && c->exiting != (__u64)ctx) {                                 \
		c->lost_pair++;                                                                   \
		return 0;                                                                         \
	}                                                                                         \
	/* Negative: an errno at entry, or one at exit, or a counter that went back, which was */ \
	/* exchanged because its CPU was offline meanwhile. */                                    \
	for_each_event (i) {                                                                      \
		__u64 start = run->event[i].start[0], value = ONCE(c->event[i].end) - start;      \
                                                                                                  \
		error |= value | start;                                                           \
		c->event[i].value += value;                                                       \
	}                                                                                         \
	if (is_error(error)) {                                                                    \
		for_each_event (i)                                                                \
			c->event[i].value -= c->event[i].end - run->event[i].start[0];            \
		c->lost_read++;                                                                   \
		return 0;                                                                         \
	}                                                                                         \
	c->measured++;                                                                            \
	if (param(PARAM_CLOCK))                                                                   \
	c->clock.value += c->clock.end - run->clock.start[0]

/* The number of the highest bit; @v is not 0. */
static __always_inline __u32 highest_bit(__u64 v)
{
	__u32 bit = 0, step;

#pragma clang loop unroll(full)
	for (step = 32; step; step /= 2) {
		if (v >> step) {
			v >>= step;
			bit += step;
		}
	}
	return bit;
}

/* Counts a run in the bucket of its net value of metric 0. */
static __always_inline void count_bucket(struct profiler_cpu *c, struct profiler_cpu *run)
{
	__u64 v, floor = param(PARAM_FLOOR), *count;
	__u32 bucket, bit;

	if (param(PARAM_EVENTS))
		v = c->event[0].end - run->event[0].start[0];
	else
		v = c->clock.end - run->clock.start[0];
	v = v > floor ? v - floor : 0;
	bucket = v;
	if (v >= PROFILER_HIST_SUB) {
		bit = highest_bit(v) - PROFILER_HIST_SUB_BITS;
		bucket = (bit + 1) * PROFILER_HIST_SUB + ((v >> bit) & (PROFILER_HIST_SUB - 1));
	}
	count = bpf_map_lookup_elem(&histogram, &bucket);
	if (count)
		*count += 1;
}

/* Adds a run to the sums of the process that it ran in: in an interrupt, the one interrupted. */
static __always_inline void count_task(struct profiler_cpu *c, struct profiler_cpu *run)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, other = PROFILER_TASK_OTHER;
	struct profiler_task *t;
	int i;

	t = bpf_map_lookup_elem(&tasks, &tgid);
	if (!t) {
		struct profiler_task new = {};

		bpf_get_current_comm(new.comm, sizeof(new.comm));
		bpf_map_update_elem(&tasks, &tgid, &new, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&tasks, &tgid);
		if (!t)
			t = bpf_map_lookup_elem(&tasks, &other);
		if (!t)
			return;
	}
	/* Threads of a process run on several CPUs at once. */
	__sync_fetch_and_add(&t->measured, 1);
	for_each_event (i)
		__sync_fetch_and_add(&t->value[i], c->event[i].end - run->event[i].start[0]);
	if (param(PARAM_CLOCK))
		__sync_fetch_and_add(&t->value[PROFILER_MAX_EVENTS],
				     c->clock.end - run->clock.start[0]);
}

/* What of a run is its own, and what its caller has to take off for it. */
static __always_inline void count_calls(struct profiler_cpu *c, struct profiler_cpu *run, __u32 at)
{
	struct profiler_frame *frame, *caller = NULL;
	struct profiler_calls *on_cpu;
	__u32 zero = 0;
	__u64 value, which;
	int i, k;

	on_cpu = bpf_map_lookup_elem(&calls, &zero);
	if (!on_cpu || at >= PROFILER_FRAMES)
		return;
	frame = &on_cpu->frame[at & (PROFILER_FRAMES - 1)];
	ONCE(on_cpu->caller) = PROFILER_FRAMES;
	if (!param(PARAM_ROOT)) {
		for (k = PROFILER_FRAMES - 2; k >= 0; k--) {
			if (k < (int)at && on_cpu->frame[k].task == frame->task) {
				ONCE(on_cpu->caller) = k;
				break;
			}
		}
		which = ONCE(on_cpu->caller);
		if (which < PROFILER_FRAMES)
			caller = &on_cpu->frame[which & (PROFILER_FRAMES - 1)];
	}
	c->with_self++;
	for_each_event (i) {
		value = c->event[i].end - run->event[i].start[0];
		c->event[i].self += value - frame->inner[i];
		c->event[i].overhead += frame->overhead[i];
		if (caller) {
			caller->inner[i] += value + c->event[i].rest;
			caller->overhead[i] += frame->overhead[i] + c->event[i].added;
		}
	}
	if (param(PARAM_CLOCK)) {
		i = PROFILER_MAX_EVENTS;
		value = c->clock.end - run->clock.start[0];
		c->clock.self += value - frame->inner[i];
		c->clock.overhead += frame->overhead[i];
		if (caller) {
			caller->inner[i] += value + c->clock.rest;
			caller->overhead[i] += frame->overhead[i] + c->clock.added;
		}
	}
}

static __always_inline void count_more(struct profiler_cpu *c, struct profiler_cpu *run,
				       __u32 frame)
{
	if (param(PARAM_CALLS))
		count_calls(c, run, frame);
	if (param(PARAM_HISTOGRAM))
		count_bucket(c, run);
	if (param(PARAM_TASKS))
		count_task(c, run);
}

SEC("fexit/target")
int bpfcost_exit(__u64 *ctx)
{
	EXIT(c->event[i].end = bpf_perf_event_read(&events, c->key[0] + i), /* nothing */);
	return 0;
}

/* With a histogram or sums per process. */
SEC("fexit/target")
int bpfcost_exit_more(__u64 *ctx)
{
	__u32 frame = PROFILER_FRAMES;

	EXIT(c->event[i].end = bpf_perf_event_read(&events, c->key[0] + i), frame = pop(ctx));
	count_more(c, run, frame);
	return 0;
}

/* For events that share counters: keeps enabled and running times. */
SEC("fexit/target")
int bpfcost_exit_mx(__u64 *ctx)
{
	__u32 frame = PROFILER_FRAMES;

	EXIT(({
		     struct bpf_perf_event_value v = {};
		     long err = bpf_perf_event_read_value(&events, c->key[0] + i, &v, sizeof(v));

		     c->event[i].end = err ? err : v.counter;
		     c->event[i].end_enabled = v.enabled;
		     c->event[i].end_running = v.running;
	     }),
	     frame = pop(ctx));
	for_each_event (i) {
		struct profiler_event *e = &c->event[i];

		e->enabled += e->end_enabled - run->event[i].start_enabled[0];
		e->running += e->end_running - run->event[i].start_running[0];
	}
	count_more(c, run, frame);
	return 0;
}
