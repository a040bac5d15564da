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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profiler_cpu);
} cpus SEC(".maps");

/* Key: CPU * number of events + event. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} events SEC(".maps");

#define param(which)                                                                       \
	({                                                                                 \
		__s64 __v;                                                                 \
		asm volatile("%0 = %1" : "=r"(__v) : "i"(PROFILER_PARAM_MAGIC + (which))); \
		__v;                                                                       \
	})

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
#define for_each_event(i)                                                                          \
	_Pragma("clang loop unroll(full)") for (i = 0; i < PROFILER_MAX_EVENTS &&                  \
						       i < param(PARAM_EVENTS);                    \
						i++)

/* The slot of an entry, or PROFILER_SLOTS. */
static __always_inline __u32 find_free(struct profiler_cpu *c, __u64 *ctx)
{
	__u32 i;

	/* A slot with our own address is of a run that is gone: the kernel skipped its exit, and
	 * has counted that in the exit program's recursion_misses. */
#pragma clang loop unroll(full)
	for (i = 0; i < PROFILER_SLOTS; i++)
		if (c->ctx[i] == (__u64)ctx)
			return i;
#pragma clang loop unroll(full)
	for (i = 0; i < PROFILER_SLOTS; i++)
		if (!c->ctx[i])
			return i;
	return PROFILER_SLOTS;
}

/* The slot of an exit, or PROFILER_SLOTS. */
static __always_inline __u32 find_run(struct profiler_cpu *c, __u64 *ctx)
{
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 1; i < PROFILER_SLOTS; i++)
		if (c->ctx[i] == (__u64)ctx)
			return i;
	return PROFILER_SLOTS;
}

/* What is kept by slot is in arrays of 8 bytes a slot. Seen from here, the slot has index 0: with
 * the first slot, which nearly every run gets, there is no index to add. */
static __always_inline struct profiler_cpu *run_of(struct profiler_cpu *c, __u32 slot)
{
	return (void *)c + (slot & PROFILER_SLOT_MASK) * sizeof(__u64);
}

/* Entry, but for the readings: the place for them, or NULL if this run is not measured. */
static __always_inline struct profiler_cpu *begin(__u64 *ctx, __u32 cpu)
{
	struct profiler_cpu *c, *run;
	__u32 slot;

	c = bpf_map_lookup_elem(&cpus, &cpu);
	if (!c)
		return NULL;
	if (param(PARAM_SAMPLE)) {
		__u64 n = c->entries;

		c->entries = n + 1;
		if (n != c->next)
			return NULL;
		c->next = n + param(PARAM_SAMPLE);
	}
	run = c;
	if (unlikely(c->ctx[0])) {
		slot = find_free(c, ctx);
		if (slot >= PROFILER_SLOTS) {
			c->full++;
			return NULL;
		}
		run = run_of(c, slot);
	}
	if (param(PARAM_SAMPLE) && !run->ctx[0])
		c->in_flight++;
	run->ctx[0] = (__u64)ctx;
	run->switches[0] = switches();
	return run;
}

SEC("fentry/target")
int bpfcost_entry(__u64 *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id(), key;
	struct profiler_cpu *run;
	int i;

	run = begin(ctx, cpu);
	if (!run)
		return 0;
	if (param(PARAM_EVENTS)) {
		key = cpu * param(PARAM_EVENTS);
		for_each_event (i) {
			struct profiler_event *e = &run->event[i];

			if (param(PARAM_MULTIPLEXED)) {
				struct bpf_perf_event_value v = {};
				long err;

				err = bpf_perf_event_read_value(&events, key + i, &v, sizeof(v));
				e->start[0] = err ? err : v.counter;
				e->start_enabled[0] = v.enabled;
				e->start_running[0] = v.running;
			} else {
				e->start[0] = bpf_perf_event_read(&events, key + i);
			}
		}
	}
	if (param(PARAM_CLOCK))
		run->clock.start[0] = bpf_ktime_get_ns();
	return 0;
}

/* The run that ends here, or NULL if it has no entry, which is counted. */
static __always_inline struct profiler_cpu *find_entry(struct profiler_cpu *c, __u64 *ctx)
{
	__u32 slot;

	if (!unlikely(c->ctx[0] != (__u64)ctx))
		return c;
	slot = find_run(c, ctx);
	if (slot < PROFILER_SLOTS)
		return run_of(c, slot);
	/* With sampling, this is the usual exit of a run that was left out. */
	if (!param(PARAM_SAMPLE))
		c->lost_pair++;
	return NULL;
}

/* Frees the slot. False if the run went to sleep or was preempted, which is counted. */
static __always_inline int in_one_piece(struct profiler_cpu *c, struct profiler_cpu *run)
{
	run->ctx[0] = 0;
	if (param(PARAM_SAMPLE))
		c->in_flight--;
	if (unlikely(run->switches[0] != switches())) {
		c->switched++;
		return 0;
	}
	return 1;
}

/* Most exits that sampling left without an entry end here, before anything is read. */
static __always_inline int nothing_to_end(__u32 cpu)
{
	struct profiler_cpu *c;

	if (!param(PARAM_SAMPLE))
		return 0;
	c = bpf_map_lookup_elem(&cpus, &cpu);
	return !c || !c->in_flight;
}

/* A program of its own for PARAM_MULTIPLEXED: with three values for each event on the stack, short
 * instructions would not reach them in the other one. */
SEC("fexit/target")
int bpfcost_exit_mx(__u64 *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct bpf_perf_event_value v[PROFILER_MAX_EVENTS];
	__u32 key = cpu * param(PARAM_EVENTS);
	struct profiler_cpu *c, *run;
	__u64 error = 0, now = 0;
	int i;

	if (nothing_to_end(cpu))
		return 0;
	if (param(PARAM_CLOCK))
		now = bpf_ktime_get_ns();
	for_each_event (i) {
		long err = bpf_perf_event_read_value(&events, key + i, &v[i], sizeof(v[i]));

		if (err)
			v[i].counter = err;
	}
	c = bpf_map_lookup_elem(&cpus, &cpu);
	if (!c)
		return 0;
	run = find_entry(c, ctx);
	if (!run || !in_one_piece(c, run))
		return 0;
	for_each_event (i) {
		__u64 start = run->event[i].start[0];

		v[i].counter -= start;
		error |= v[i].counter | start;
	}
	if (is_error(error)) {
		c->lost_read++;
		return 0;
	}
	c->measured++;
	for_each_event (i) {
		c->event[i].value += v[i].counter;
		c->event[i].enabled += v[i].enabled - run->event[i].start_enabled[0];
		c->event[i].running += v[i].running - run->event[i].start_running[0];
	}
	if (param(PARAM_CLOCK))
		c->clock.value += now - run->clock.start[0];
	return 0;
}

SEC("fexit/target")
int bpfcost_exit(__u64 *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 v[PROFILER_MAX_EVENTS], error = 0, now = 0;
	struct profiler_cpu *c, *run;
	int i;

	if (nothing_to_end(cpu))
		return 0;
	if (param(PARAM_CLOCK))
		now = bpf_ktime_get_ns();
	if (param(PARAM_EVENTS)) {
		__u32 key = cpu * param(PARAM_EVENTS);

		for_each_event (i)
			v[i] = bpf_perf_event_read(&events, key + i);
	}
	c = bpf_map_lookup_elem(&cpus, &cpu);
	if (!c)
		return 0;
	run = find_entry(c, ctx);
	if (!run || !in_one_piece(c, run))
		return 0;
	if (param(PARAM_EVENTS)) {
		/* Negative: an errno at entry, or one at exit, or a counter that went back, which
		 * was exchanged because its CPU was offline meanwhile. */
		for_each_event (i) {
			__u64 start = run->event[i].start[0];

			v[i] -= start;
			error |= v[i] | start;
		}
		if (is_error(error)) {
			c->lost_read++;
			return 0;
		}
		for_each_event (i)
			c->event[i].value += v[i];
	}
	c->measured++;
	if (param(PARAM_CLOCK))
		c->clock.value += now - run->clock.start[0];
	return 0;
}
