// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/membarrier.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "caps.h"
#include "counters.h"
#include "profiler.h"
#include "profiler.skel.h"
#include "profiler_state.h"

#define KERNEL_ENOTSUPP 524 /* include/linux/errno.h; not for user space, but bpf(2) returns it */

struct profiler {
	struct profiler_opts opts;
	struct profiler_bpf *skel;
	struct bpf_program *entry_prog, *exit_prog;
	struct bpf_link *entry, *exit;
	__u32 prog_id;
	int cpus_fd;
	void *cpus; /* mmap()ed: read without system calls */
	size_t cpus_size, stride;
	__u64 *lost_pair; /* by CPU, as it was when the entry program was detached */
};

/* Replaces the parameters and the address of the state in a program's instructions: see enum
 * profiler_param. */
static int set_params(struct bpf_program *prog, const __s32 *params, int cpus_fd)
{
	size_t n = bpf_program__insn_cnt(prog), i;
	struct bpf_insn *insns;
	int rc;

	insns = malloc(n * sizeof(*insns));
	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(prog), n * sizeof(*insns));
	for (i = 0; i < n; i++) {
		__u32 which = (__u32)insns[i].imm - PROFILER_PARAM_MAGIC;

		if (insns[i].code == (BPF_ALU64 | BPF_MOV | BPF_K) && which < PARAM_MAX)
			insns[i].imm = params[which];
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) &&
		    insns[i].imm == PROFILER_CPUS_MAGIC) {
			insns[i].src_reg = BPF_PSEUDO_MAP_VALUE;
			insns[i].imm = cpus_fd;
			insns[i + 1].imm = 0;
		}
	}
	rc = bpf_program__set_insns(prog, insns, n);
	free(insns);
	return rc;
}

static int load_error(int rc, const struct prog *prog, const char *func, struct errmsg *err)
{
	char buf[128];

	errmsg__errno(rc, buf, sizeof(buf));
	switch (-rc) {
	case EPERM:
	case EACCES:
		return errmsg__fail(
			err, rc,
			"prog %u (%s): the kernel refuses entry and exit programs on it: %s; no "
			"capability is missing, so that this host or container forbids them. Its "
			"run time can be had without: bpfcost prog stats id %u",
			prog->id, prog->name, buf, prog->id);
	case ENOENT:
		return errmsg__fail(err, rc, "prog %u (%s): its BTF has no function '%s' (ENOENT)",
				    prog->id, prog->name, func);
	case EINVAL:
		/* kernel/bpf/verifier.c, bpf_check_attach_target(): no tracing of tracing. */
		if (prog->type == BPF_PROG_TYPE_TRACING)
			return errmsg__fail(err, rc,
					    "prog %u (%s): this kernel accepts no entry and exit "
					    "programs on a program of type tracing: %s; that came "
					    "with 6.8",
					    prog->id, prog->name, buf);
		return errmsg__fail(err, rc,
				    "prog %u (%s): the kernel does not accept the profiler's "
				    "programs on it: %s; --debug shows its reasons",
				    prog->id, prog->name, buf);
	default:
		return errmsg__fail(err, rc,
				    "prog %u (%s): cannot load the profiler's programs: %s",
				    prog->id, prog->name, buf);
	}
}

int profiler__open(struct profiler **out, const struct profiler_opts *opts, const struct prog *prog,
		   size_t func, struct errmsg *err)
{
	__s32 params[PARAM_MAX] = {
		[PARAM_EVENTS] = opts->n_events,
		[PARAM_CLOCK] = opts->n_metrics > opts->n_events,
		[PARAM_SAMPLE] = opts->sample_every,
		[PARAM_TASKS] = opts->tasks,
		[PARAM_HISTOGRAM] = opts->histogram,
		[PARAM_FLOOR] = opts->histogram_floor,
		[PARAM_CALLS] = opts->calls,
		[PARAM_ROOT] = !func,
	};
	/* CAP_SYS_ADMIN: to open BTF by its id (kernel/bpf/syscall.c, bpf_btf_get_fd_by_id()). */
	const cap_value_t needed[] = {CAP_SYS_ADMIN, CAP_BPF, CAP_PERFMON};
	LIBBPF_OPTS(bpf_map_create_opts, map_opts, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_object_open_opts, open_opts, .btf_custom_path = opts->types);
	__typeof__(((struct profiler_bpf *)0)->progs) *progs;
	struct bpf_program *each;
	struct profiler *p;
	const char *name;
	char missing[128], buf[128];
	size_t cpu, slot, i;
	bool guarded, more;
	__u64 misses;
	int rc;

	/* Without them the kernel hides the image and the BTF: ask before what they look like. */
	if (caps__missing(needed, sizeof(needed) / sizeof(needed[0]), missing, sizeof(missing)))
		return errmsg__fail(
			err, -EPERM,
			"prog %u (%s): to attach to it takes %s, which this process does "
			"not have; run it as root, for example: sudo",
			prog->id, prog->name, missing);
	if (!prog->jited)
		return errmsg__fail(err, -EOPNOTSUPP,
				    "prog %u (%s): not JITed, so that nothing can be attached to "
				    "it; switch the JIT on: sysctl net.core.bpf_jit_enable=1",
				    prog->id, prog->name);
	if (!prog->btf_id || !prog->n_funcs)
		return errmsg__fail(err, -EOPNOTSUPP,
				    "prog %u (%s): has no BTF, so that its functions have no names "
				    "to attach to; compile it with clang -g",
				    prog->id, prog->name);
	name = prog->funcs[func].name;

	p = calloc(1, sizeof(*p));
	if (!p)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	p->opts = *opts;
	p->prog_id = prog->id;
	p->cpus = MAP_FAILED;
	p->cpus_fd = -1;
	p->stride = sizeof(struct profiler_cpu) + opts->n_events * sizeof(struct profiler_event);

	p->cpus_size = opts->n_cpus * p->stride;
	p->lost_pair = calloc(opts->n_cpus, sizeof(*p->lost_pair));
	if (!p->lost_pair) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	/* Kernels that guard against recursion count it (both 5.12, commit ca06f55b9002). */
	rc = prog__recursion_misses(prog->fd, &misses, &guarded);
	if (rc) {
		errmsg__fail(err, rc, "prog %u (%s): cannot read its info: %s", prog->id,
			     prog->name, errmsg__errno(rc, buf, sizeof(buf)));
		goto cleanup;
	}
	params[PARAM_UNGUARDED] = !guarded;
	params[PARAM_CPUS] = opts->n_cpus;
	params[PARAM_STRIDE] = p->stride;
	p->cpus_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bpfcost_cpus", sizeof(__u32), p->cpus_size,
				    1, &map_opts);
	if (p->cpus_fd < 0) {
		rc = -errno;
		errmsg__fail(err, rc, "cannot create the map of the profiler's counters: %s",
			     errmsg__errno(rc, buf, sizeof(buf)));
		goto cleanup;
	}

	p->skel = profiler_bpf__open_opts(&open_opts);
	if (!p->skel) {
		rc = errmsg__fail(err, -errno, "cannot open the profiler's programs");
		goto cleanup;
	}
	progs = &p->skel->progs;
	p->entry_prog = opts->multiplexed ? progs->bpfcost_entry_mx
			: opts->calls	  ? progs->bpfcost_entry_more
					  : progs->bpfcost_entry;
	p->exit_prog = opts->multiplexed			       ? progs->bpfcost_exit_mx
		       : opts->histogram || opts->tasks || opts->calls ? progs->bpfcost_exit_more
								       : progs->bpfcost_exit;
	bpf_object__for_each_program(each, p->skel->obj)
		bpf_program__set_autoload(each, each == p->entry_prog || each == p->exit_prog);
	rc = bpf_program__set_attach_target(p->entry_prog, prog->fd, name)
		     ?: bpf_program__set_attach_target(p->exit_prog, prog->fd, name);
	if (rc) {
		load_error(rc, prog, name, err);
		goto cleanup;
	}
	rc = set_params(p->entry_prog, params, p->cpus_fd)
		     ?: set_params(p->exit_prog, params, p->cpus_fd);
	if (rc) {
		errmsg__fail(err, rc, "cannot set the profiler's parameters");
		goto cleanup;
	}
	/* Not even referred to by the usual programs. */
	more = p->exit_prog != progs->bpfcost_exit;
	rc = bpf_map__set_autocreate(p->skel->maps.histogram, more) ?:
	     bpf_map__set_autocreate(p->skel->maps.tasks, more) ?:
	     bpf_map__set_autocreate(p->skel->maps.calls, more);
	if (!rc && opts->histogram)
		rc = bpf_map__set_max_entries(p->skel->maps.histogram, PROFILER_HIST_BUCKETS);
	if (!rc && opts->tasks)
		rc = bpf_map__set_max_entries(p->skel->maps.tasks, PROFILER_TASKS);
	if (!rc && opts->calls)
		rc = bpf_map__reuse_fd(p->skel->maps.calls, opts->calls_fd);
	if (rc) {
		errmsg__fail(err, rc, "cannot size the profiler's maps");
		goto cleanup;
	}
	if (opts->n_events) {
		rc = bpf_map__reuse_fd(p->skel->maps.events, opts->events_fd);
		if (rc) {
			errmsg__fail(err, rc, "cannot hand the counters to the profiler");
			goto cleanup;
		}
	}
	rc = profiler_bpf__load(p->skel);
	if (rc) {
		load_error(rc, prog, name, err);
		goto cleanup;
	}
	p->cpus = mmap(NULL, p->cpus_size, PROT_READ | PROT_WRITE, MAP_SHARED, p->cpus_fd, 0);
	if (p->cpus == MAP_FAILED) {
		rc = -errno;
		errmsg__fail(err, rc, "cannot map the profiler's counters");
		goto cleanup;
	}
	for (cpu = 0; cpu < opts->n_cpus; cpu++) {
		struct profiler_cpu *c = p->cpus + cpu * p->stride;

		for (slot = 0; slot < PROFILER_SLOTS; slot++)
			c->key[slot] = cpu * opts->n_events;
		for (i = 0; opts->added && i < opts->n_metrics; i++) {
			__u64 added = llround(opts->added[i]);
			__u64 rest = llround(opts->added[i] - opts->floor[i]);

			if (i < opts->n_events) {
				c->event[i].added = added;
				c->event[i].rest = rest;
			} else {
				c->clock.added = added;
				c->clock.rest = rest;
			}
		}
	}
	if (opts->tasks) {
		struct profiler_task none = {};
		__u32 other = PROFILER_TASK_OTHER;

		rc = bpf_map_update_elem(bpf_map__fd(p->skel->maps.tasks), &other, &none, BPF_ANY);
		if (rc) {
			errmsg__fail(err, rc, "cannot prepare the sums per process: %s",
				     errmsg__errno(rc, buf, sizeof(buf)));
			goto cleanup;
		}
	}
	*out = p;
	return 0;
cleanup:
	profiler__close(p);
	return rc;
}

static int attach_error(int rc, struct profiler *p, struct errmsg *err)
{
	char buf[128];

	errmsg__errno(rc, buf, sizeof(buf));
	switch (-rc) {
	case E2BIG:
		return errmsg__fail(err, rc,
				    "prog %u: already traced as far as the kernel allows: %s; "
				    "end another profiler of this program",
				    p->prog_id, buf);
	case KERNEL_ENOTSUPP:
		return errmsg__fail(err, rc,
				    "prog %u: this kernel cannot attach to a program on this "
				    "architecture: %s; arm64 can since 6.0",
				    p->prog_id, buf);
	case EBUSY:
		return errmsg__fail(err, rc,
				    "prog %u: it has been replaced (freplace), or is being "
				    "changed: %s; profile the program that replaces it",
				    p->prog_id, buf);
	default:
		return errmsg__fail(err, rc, "prog %u: cannot attach to it: %s", p->prog_id, buf);
	}
}

int profiler__attach(struct profiler *p, struct errmsg *err)
{
	p->exit = bpf_program__attach_trace(p->exit_prog);
	if (!p->exit)
		return attach_error(-errno, p, err);
	p->entry = bpf_program__attach_trace(p->entry_prog);
	if (!p->entry)
		return attach_error(-errno, p, err);
	return 0;
}

void profiler__detach_entry(struct profiler *p)
{
	const struct profiler_cpu *c;
	size_t cpu;

	/* From now on runs have an exit program only: they are not in the window, and not lost. */
	for (cpu = 0; p->entry && cpu < p->opts.n_cpus; cpu++) {
		c = p->cpus + cpu * p->stride;
		p->lost_pair[cpu] = c->lost_pair;
	}
	bpf_link__destroy(p->entry);
	p->entry = NULL;
}

void profiler__settle(void)
{
	const struct timespec ms = {.tv_nsec = 20 * 1000 * 1000};

	/* Not there with nohz_full CPUs: a run is far shorter than this sleep. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		nanosleep(&ms, NULL);
}

/* The kernel pads values of per-CPU maps to 8 bytes, and has as many as there are possible CPUs. */
static int read_histogram(struct profiler *p, struct sample *s)
{
	int n = libbpf_num_possible_cpus(), fd = bpf_map__fd(p->skel->maps.histogram), rc = 0, cpu;
	__u64 *values;
	__u32 i;

	if (n < 0)
		return n;
	if (!s->histogram)
		s->histogram = calloc(PROFILER_HIST_BUCKETS, sizeof(*s->histogram));
	values = calloc(n, sizeof(*values));
	if (!s->histogram || !values) {
		free(values);
		return -ENOMEM;
	}
	for (i = 0; !rc && i < PROFILER_HIST_BUCKETS; i++) {
		rc = bpf_map_lookup_elem(fd, &i, values);
		s->histogram[i] = 0;
		for (cpu = 0; cpu < n; cpu++)
			s->histogram[i] += values[cpu];
	}
	free(values);
	return rc;
}

static int read_tasks(struct profiler *p, struct sample *s)
{
	int fd = bpf_map__fd(p->skel->maps.tasks);
	__u32 key, *last = NULL;
	size_t i;

	if (!s->tasks)
		s->tasks = calloc(PROFILER_TASKS, sizeof(*s->tasks));
	if (!s->tasks)
		return -ENOMEM;
	s->n_tasks = 0;
	/* Nothing is ever deleted, so that the walk meets each key once. */
	while (s->n_tasks < PROFILER_TASKS && !bpf_map_get_next_key(fd, last, &key)) {
		struct sample_task *t = &s->tasks[s->n_tasks++];
		struct profiler_task v;

		if (bpf_map_lookup_elem(fd, &key, &v))
			return -errno;
		t->tgid = key;
		t->measured = v.measured;
		memcpy(t->comm, v.comm, sizeof(t->comm));
		for (i = 0; i < s->n_metrics; i++)
			t->value[i] = v.value[i < p->opts.n_events ? i : PROFILER_MAX_EVENTS];
		last = &key;
	}
	return 0;
}

int profiler__read(struct profiler *p, struct sample *s)
{
	uint64_t enabled, running;
	struct timespec now;
	bool guarded;
	size_t cpu, i;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &now);
	s->time_ns = now.tv_sec * 1000000000ULL + now.tv_nsec;
	s->sample_every = p->opts.sample_every;
	s->multiplexed = p->opts.multiplexed;
	s->calls = p->opts.calls;
	/* Kernels that do not count skips do not skip (profiler__open). */
	rc = prog__recursion_misses(bpf_program__fd(p->entry_prog), &s->entry_missed, &guarded);
	if (rc)
		return rc;
	rc = prog__recursion_misses(bpf_program__fd(p->exit_prog), &s->exit_missed, &guarded);
	if (rc)
		return rc;

	for (cpu = 0; cpu < s->n_cpus; cpu++) {
		const struct profiler_cpu *c = p->cpus + cpu * p->stride;

		s->cpu[cpu] = (struct sample_cpu){
			.measured = c->measured,
			.switched = c->switched,
			.lost_pair = p->entry ? c->lost_pair : p->lost_pair[cpu],
			.lost_read = c->lost_read,
			.full = c->full,
			.with_self = c->with_self,
			.entries = c->entries,
		};
		for (i = 0; i < PROFILER_SLOTS; i++)
			s->cpu[cpu].in_flight += c->ctx[i] != 0;
		for (i = 0; i < s->n_metrics; i++) {
			struct sample_metric *m = &s->metric[cpu * s->n_metrics + i];

			if (i < p->opts.n_events) {
				m->value = c->event[i].value;
				m->enabled = c->event[i].enabled;
				m->running = c->event[i].running;
				m->self = c->event[i].self;
				m->overhead = c->event[i].overhead;
			} else {
				m->value = c->clock.value;
				m->self = c->clock.self;
				m->overhead = c->clock.overhead;
			}
			if (p->opts.multiplexed && i < p->opts.n_events)
				continue;
			/* Nothing shares a counter, so that the times are only for show: those of
			 * the event, which the kernel keeps, or of the clock, which never stops. */
			m->enabled = m->running = s->time_ns;
			if (i < p->opts.n_events &&
			    !counters__times(p->opts.counters, cpu, i, &enabled, &running)) {
				m->enabled = enabled;
				m->running = running;
			}
		}
	}
	if (p->opts.histogram)
		rc = read_histogram(p, s);
	if (!rc && p->opts.tasks)
		rc = read_tasks(p, s);
	return rc;
}

void profiler__close(struct profiler *p)
{
	if (!p)
		return;
	bpf_link__destroy(p->entry);
	bpf_link__destroy(p->exit);
	if (p->cpus != MAP_FAILED)
		munmap(p->cpus, p->cpus_size);
	profiler_bpf__destroy(p->skel);
	if (p->cpus_fd >= 0)
		close(p->cpus_fd);
	free(p->lost_pair);
	free(p);
}
