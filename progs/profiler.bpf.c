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

/* Reads all metrics. A failed read leaves its errno in counter. */
static __always_inline void read_events(struct bpf_perf_event_value *v, __u32 cpu)
{
	__u32 key = cpu * param(PARAM_EVENTS);
	long err;
	int i;

	if (param(PARAM_MULTIPLEXED)) {
		for_each_event (i) {
			err = bpf_perf_event_read_value(&events, key + i, &v[i], sizeof(v[i]));
			if (err)
				v[i].counter = err;
		}
	} else {
		for_each_event (i)
			v[i].counter = bpf_perf_event_read(&events, key + i);
	}
}

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

SEC("fentry/target")
int bpfcost_entry(__u64 *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id(), slot;
	struct bpf_perf_event_value v[PROFILER_MAX_EVENTS];
	struct profiler_cpu *c, *run;
	int i;

	c = bpf_map_lookup_elem(&cpus, &cpu);
	if (!c)
		return 0;

	if (param(PARAM_SAMPLE)) {
		__u64 n = c->entries;

		c->entries = n + 1;
		if (n != c->next)
			return 0;
		c->next = n + param(PARAM_SAMPLE);
	}

	run = c;
	if (unlikely(c->ctx[0])) {
		slot = find_free(c, ctx);
		if (slot >= PROFILER_SLOTS) {
			c->full++;
			return 0;
		}
		run = run_of(c, slot);
	}
	if (param(PARAM_SAMPLE) && !run->ctx[0])
		c->in_flight++;
	run->ctx[0] = (__u64)ctx;
	run->switches[0] = switches();

	if (param(PARAM_MULTIPLEXED)) {
		read_events(v, cpu);
		for_each_event (i) {
			run->event[i].start[0] = v[i].counter;
			run->event[i].start_enabled[0] = v[i].enabled;
			run->event[i].start_running[0] = v[i].running;
		}
	} else {
		__u32 key = cpu * param(PARAM_EVENTS);

		for_each_event (i)
			run->event[i].start[0] = bpf_perf_event_read(&events, key + i);
	}
	if (param(PARAM_CLOCK))
		run->clock.start[0] = bpf_ktime_get_ns();
	return 0;
}

SEC("fexit/target")
int bpfcost_exit(__u64 *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id(), slot;
	struct bpf_perf_event_value v[PROFILER_MAX_EVENTS];
	struct profiler_cpu *c, *run;
	__u64 error = 0, now = 0;
	int i;

	if (param(PARAM_SAMPLE)) {
		c = bpf_map_lookup_elem(&cpus, &cpu);
		if (!c || !c->in_flight)
			return 0;
	}

	if (param(PARAM_CLOCK))
		now = bpf_ktime_get_ns();
	read_events(v, cpu);

	if (!param(PARAM_SAMPLE)) {
		c = bpf_map_lookup_elem(&cpus, &cpu);
		if (!c)
			return 0;
	}

	run = c;
	if (unlikely(c->ctx[0] != (__u64)ctx)) {
		slot = find_run(c, ctx);
		if (slot >= PROFILER_SLOTS) {
			/* With sampling, the usual exit of a run that was left out. */
			if (!param(PARAM_SAMPLE))
				c->lost_pair++;
			return 0;
		}
		run = run_of(c, slot);
	}
	run->ctx[0] = 0;
	if (param(PARAM_SAMPLE))
		c->in_flight--;

	if (unlikely(run->switches[0] != switches())) {
		c->switched++;
		return 0;
	}

	/* Negative: an errno at entry, or one at exit, or a counter that went back, which was
	 * exchanged because its CPU was offline meanwhile. */
	for_each_event (i) {
		__u64 start = run->event[i].start[0];

		v[i].counter -= start;
		error |= v[i].counter | start;
	}
	if (param(PARAM_EVENTS) && is_error(error)) {
		c->lost_read++;
		return 0;
	}

	c->measured++;
	for_each_event (i) {
		c->event[i].value += v[i].counter;
		if (param(PARAM_MULTIPLEXED)) {
			c->event[i].enabled += v[i].enabled - run->event[i].start_enabled[0];
			c->event[i].running += v[i].running - run->event[i].start_running[0];
		}
	}
	if (param(PARAM_CLOCK))
		c->clock.value += now - run->clock.start[0];
	return 0;
}
