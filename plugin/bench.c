// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bench.h"
#include "statistics.h"
#include "stats_switch.h"
#include "window.h"

/*
 * A measurement is cut into bursts, and its value is their median: a timer interrupt that falls
 * into a burst moves it out of the middle. As with the floor (floor.c), a burst of some cheap runs
 * ends before the next interrupt of most machines. The clock is read outside of the kernel, so that
 * its bursts are longer.
 */
#define MAX_BURST    50
#define CLOCK_BURSTS 10
#define BURSTS	     20
#define MAX_BURSTS   1000
#define MIN_BURSTS   5
/* Tries of N and 2N runs, and how far from 2 the ratio may be. */
#define RATIO_TRIES	21
#define RATIO_TOLERANCE 0.05

/* What a test run gets where nothing is given: a frame of zeros, as short as Ethernet has them,
 * and for raw tracepoints as many arguments as there can be (MAX_BPF_FUNC_ARGS). */
static const char zeros[96];
#define DEFAULT_DATA	64
#define DEFAULT_CONTEXT 96
#define ETHERNET_HEADER 14

enum phase { PHASE_CLOCK, PHASE_STATISTICS, PHASE_PROFILER };

struct burst {
	__u64 runs;
	bool clean;			  /* only our own runs, each measured */
	double value[SAMPLE_MAX_METRICS]; /* the sum over the runs */
};

/* What a phase needs for one program. */
struct probe {
	struct bench_prog *p;
	struct bench_metric *metric; /* the first of this phase */
	size_t n_metrics;
	__u64 repeat;
	struct profiler *profiler; /* with PHASE_PROFILER */
	struct sample last, now;
};

/* Which types have a test_run in their bpf_prog_ops (Linux 7.2); a kernel that has none for one of
 * these says so when it is tried. */
enum bench_how bench__how(__u32 prog_type)
{
	switch (prog_type) {
	case BPF_PROG_TYPE_SOCKET_FILTER:
	case BPF_PROG_TYPE_SCHED_CLS:
	case BPF_PROG_TYPE_SCHED_ACT:
	case BPF_PROG_TYPE_XDP:
	case BPF_PROG_TYPE_CGROUP_SKB:
	case BPF_PROG_TYPE_LWT_IN:
	case BPF_PROG_TYPE_LWT_OUT:
	case BPF_PROG_TYPE_LWT_XMIT:
	case BPF_PROG_TYPE_LWT_SEG6LOCAL:
	case BPF_PROG_TYPE_FLOW_DISSECTOR:
	case 32: /* BPF_PROG_TYPE_NETFILTER (6.4) */
		return BENCH_DATA;
	case BPF_PROG_TYPE_SK_LOOKUP:
		return BENCH_CONTEXT;
	case BPF_PROG_TYPE_RAW_TRACEPOINT:
	case BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE:
	case BPF_PROG_TYPE_SYSCALL:
		return BENCH_ONCE;
	case BPF_PROG_TYPE_UNSPEC:
	case BPF_PROG_TYPE_EXT:
	case BPF_PROG_TYPE_STRUCT_OPS:
		return BENCH_LOADED;
	default:
		/* Tracing programs have one, which calls functions of the kernel's own that they
		 * are attached to, if they are. */
		return BENCH_COMMAND;
	}
}

bool bench_prog__reliable(const struct bench_prog *p)
{
	return !(p->ratio > 0) || fabs(p->ratio - 2) <= 2 * RATIO_TOLERANCE;
}

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/*
 * For more than one run of an XDP program the kernel changes its dispatcher, and back, which waits
 * for all CPUs: a millisecond and more a call (net/bpf/test_run.c, bpf_prog_change_xdp()). Its own
 * time of a run is whole nanoseconds, but has nothing of that.
 */
static bool is_timed_by_kernel(const struct bench_prog *p)
{
	return p->prog.type == BPF_PROG_TYPE_XDP;
}

/* Runs a program @runs times, and says how long that took. The context comes back changed from
 * some types, so that each call gets a copy. */
static int test_run(struct bench_prog *p, const struct bench_input *input, __u64 runs, __u64 *ns)
{
	static const struct bench_input none;
	const struct bench_input *in = p->empty ? &none : input;
	const void *context = in->context ? in->context : zeros;
	size_t size = in->context_size;
	char copy[sizeof(zeros)], *own = copy;
	__u64 begin, calls = 1, i;
	int rc = 0;
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (p->how == BENCH_DATA) {
		opts.data_in = in->data ? in->data : zeros;
		opts.data_size_in = in->data ? in->data_size : DEFAULT_DATA;
	}
	if (!in->context && p->how == BENCH_ONCE && p->prog.type != BPF_PROG_TYPE_SYSCALL)
		size = DEFAULT_CONTEXT;
	if (size > sizeof(copy)) {
		own = malloc(size);
		if (!own)
			return -ENOMEM;
	}
	if (size) {
		opts.ctx_in = own;
		opts.ctx_size_in = size;
	}
	if (p->how == BENCH_ONCE)
		calls = runs;
	else
		opts.repeat = runs;
	memcpy(own, context, size);
	begin = now_ns();
	for (i = 0; i < calls && !rc; i++) {
		rc = bpf_prog_test_run_opts(p->prog.fd, &opts);
		if (p->how == BENCH_ONCE)
			memcpy(own, context, size);
	}
	*ns = now_ns() - begin;
	if (is_timed_by_kernel(p)) {
		p->call_ns = *ns;
		*ns = opts.duration * runs;
	}
	p->retval = opts.retval;
	if (own != copy)
		free(own);
	return rc;
}

static int run_error(struct bench *b, struct bench_prog *p, int rc)
{
	const struct bench_input *in = &b->input;
	char type_buf[32], buf[128];
	const char *type = prog__type_name(p->prog.type, type_buf, sizeof(type_buf));

	errmsg__errno(rc, buf, sizeof(buf));
	if (rc == -EINVAL && p->how == BENCH_DATA && in->data && in->data_size <= ETHERNET_HEADER)
		return errmsg__usage(&p->why,
				     "prog %u (%s): the kernel refuses %zu bytes of data: %s; "
				     "programs of type %s need more than the %d bytes of an "
				     "Ethernet header",
				     p->prog.id, p->prog.name, in->data_size, buf, type,
				     ETHERNET_HEADER);
	if ((rc == -EINVAL || rc == -E2BIG || rc == -ENODEV || rc == -EAFNOSUPPORT) &&
	    (in->data || in->context))
		return errmsg__usage(&p->why,
				     "prog %u (%s): the kernel refuses to run a program of type %s "
				     "with %zu bytes of data and %zu of context: %s; it may be too "
				     "little or too much, or no context that such a program can "
				     "have",
				     p->prog.id, p->prog.name, type,
				     p->how == BENCH_DATA ? in->data ? in->data_size : DEFAULT_DATA
							  : 0,
				     in->context_size, buf);
	if (rc == -EINVAL || rc == -EAFNOSUPPORT)
		return errmsg__fail(&p->why, rc,
				    "prog %u (%s): the kernel refuses to run a program of type %s "
				    "without a context: %s; give it one: ctx_in FILE",
				    p->prog.id, p->prog.name, type, buf);
	if (rc == -524 || rc == -EOPNOTSUPP)
		return errmsg__fail(&p->why, rc,
				    "prog %u (%s): this kernel cannot run programs of type %s by "
				    "itself: %s; 'prog stats' measures it while it is in use",
				    p->prog.id, p->prog.name, type, buf);
	if (rc == -EPERM)
		return errmsg__fail(&p->why, rc,
				    "prog %u (%s): cannot run it: %s; it needs CAP_BPF, for "
				    "example: sudo",
				    p->prog.id, p->prog.name, buf);
	return errmsg__fail(&p->why, rc, "prog %u (%s): cannot run it: %s", p->prog.id,
			    p->prog.name, buf);
}

/* The number of runs that take as long as a measurement shall: the shortest of three tries, with
 * ten times as many until they last a tenth of it. */
static int choose_repeat(struct bench *b, struct bench_prog *p, __u64 last_ns, __u64 *repeat)
{
	__u64 runs = 1, ns, least;
	double times;
	int i, rc;

	for (;;) {
		least = ~0ULL;
		for (i = 0; i < 3; i++) {
			rc = test_run(p, &b->input, runs, &ns);
			if (rc)
				return run_error(b, p, rc);
			if (ns < least)
				least = ns;
		}
		if (least >= last_ns / CLOCK_BURSTS || runs >= BENCH_MAX_REPEAT)
			break;
		runs *= 10;
	}
	times = (double)last_ns / (least ? least : 1) * runs;
	*repeat = times < 1 ? 1 : times > BENCH_MAX_REPEAT ? BENCH_MAX_REPEAT : (__u64)times;
	return 0;
}

static __u64 clock_burst(__u64 repeat)
{
	return repeat < CLOCK_BURSTS ? 1 : repeat / CLOCK_BURSTS;
}

/* N is what one burst of the clock has. What the system call costs shows here, and a clock speed
 * that changes. */
static int check_ratio(struct bench *b, struct bench_prog *p)
{
	double once[RATIO_TRIES], twice[RATIO_TRIES];
	__u64 runs = clock_burst(p->repeat), ns[2];
	int i, rc;

	for (i = 0; i < RATIO_TRIES; i++) {
		rc = test_run(p, &b->input, runs, &ns[0])
			     ?: test_run(p, &b->input, 2 * runs, &ns[1]);
		if (rc)
			return run_error(b, p, rc);
		once[i] = ns[0];
		twice[i] = ns[1];
	}
	statistics__sort(once, RATIO_TRIES);
	statistics__sort(twice, RATIO_TRIES);
	p->ratio = statistics__median(twice, RATIO_TRIES) /
		   fmax(1, statistics__median(once, RATIO_TRIES));
	/* Whole nanoseconds a run: one more or less is no difference. */
	if (is_timed_by_kernel(p) &&
	    fabs(p->ratio - 2) * statistics__median(once, RATIO_TRIES) <= 2.0 * runs)
		p->ratio = 2;
	return 0;
}

static int read_statistics(int fd, __u64 *ns, __u64 *runs)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	*ns = info.run_time_ns;
	*runs = info.run_cnt;
	return 0;
}

static int burst_of_clock(struct bench *b, struct probe *probe, __u64 runs, struct burst *burst)
{
	__u64 ns;
	int rc = test_run(probe->p, &b->input, runs, &ns);

	if (rc)
		return run_error(b, probe->p, rc);
	burst->runs = runs;
	burst->clean = true;
	burst->value[0] = ns;
	return 0;
}

static int burst_of_statistics(struct bench *b, struct probe *probe, __u64 runs,
			       struct burst *burst)
{
	struct bench_prog *p = probe->p;
	__u64 ns[2], n[2], wall;
	int rc;

	rc = read_statistics(p->prog.fd, &ns[0], &n[0]);
	if (!rc) {
		rc = test_run(p, &b->input, runs, &wall);
		if (rc)
			return run_error(b, p, rc);
		rc = read_statistics(p->prog.fd, &ns[1], &n[1]);
	}
	if (rc)
		return errmsg__fail(&p->why, rc, "prog %u (%s): cannot read its statistics: %s",
				    p->prog.id, p->prog.name, strerror(-rc));
	burst->runs = n[1] - n[0];
	burst->clean = burst->runs == runs;
	burst->value[0] = ns[1] - ns[0];
	return 0;
}

static int burst_of_profiler(struct bench *b, struct probe *probe, __u64 runs, struct burst *burst)
{
	struct bench_prog *p = probe->p;
	struct window w;
	__u64 wall;
	size_t m;
	int rc;

	rc = profiler__read(probe->profiler, &probe->last);
	if (!rc) {
		rc = test_run(p, &b->input, runs, &wall);
		if (rc)
			return run_error(b, p, rc);
		rc = profiler__read(probe->profiler, &probe->now)
			     ?: window__init(&w, &probe->last, &probe->now, NULL);
	}
	if (rc)
		return errmsg__fail(&p->why, rc, "prog %u (%s): cannot read the counters: %s",
				    p->prog.id, p->prog.name, strerror(-rc));
	for (m = 0; !rc && m < w.n_metrics; m++)
		if (w.metric[m].enabled && !w.metric[m].running)
			rc = errmsg__fail(
				&p->why, -ENODATA,
				"prog %u (%s): '%s' had no counter in a measurement: there "
				"are more metrics than counters, which take turns; name "
				"fewer, or more runs: repeat N",
				p->prog.id, p->prog.name, probe->metric[m].name);
	if (rc) {
		window__free(&w);
		return rc;
	}
	burst->runs = w.measured;
	burst->clean = w.measured == runs && w.run_cnt == runs;
	for (m = 0; m < w.n_metrics; m++) {
		burst->value[m] = w.metric[m].value;
		probe->metric[m].estimate |= w.metric[m].estimate;
	}
	window__free(&w);
	return 0;
}

/* The bursts of one measurement as readings of each metric. */
static void reduce(struct probe *probe, const struct burst *bursts, size_t n, unsigned index,
		   double *scratch)
{
	bool clean = false;
	size_t i, m, used;

	for (i = 0; i < n; i++)
		clean |= bursts[i].clean;
	for (m = 0; m < probe->n_metrics; m++) {
		struct bench_reading *r = &probe->metric[m].v[index];
		double sum = 0;

		probe->metric[m].shared |= !clean;
		used = 0;
		r->runs = 0;
		for (i = 0; i < n; i++) {
			if (!bursts[i].runs || (clean && !bursts[i].clean))
				continue;
			scratch[used++] = bursts[i].value[m] / bursts[i].runs;
			sum += bursts[i].value[m];
			r->runs += bursts[i].runs;
		}
		if (!used)
			continue;
		statistics__sort(scratch, used);
		r->value = statistics__median(scratch, used);
		r->mean = sum / r->runs;
	}
}

/* @index: of the measurement. */
static int measure(struct bench *b, struct probe *probe, enum phase phase, unsigned index,
		   struct burst *bursts, double *scratch)
{
	__u64 repeat = probe->repeat, size, left, n = 0;
	__u64 most = MAX_BURSTS;
	struct bench_prog *p = probe->p;
	int rc = 0;

	/* Where a call is dear, no more of them than last as long as the runs. */
	if (p->call_ns > BENCH_MEASUREMENT_NS / MAX_BURSTS)
		most = BENCH_MEASUREMENT_NS / p->call_ns;
	if (most < MIN_BURSTS)
		most = MIN_BURSTS;
	if (phase == PHASE_CLOCK) {
		size = clock_burst(repeat);
	} else if (phase == PHASE_PROFILER && b->session.opts.multiplexed) {
		/* Events that take turns say nothing of a burst. */
		size = repeat;
	} else {
		size = repeat / BURSTS;
		if (size > MAX_BURST)
			size = MAX_BURST;
		if (size < repeat / most)
			size = repeat / most;
	}
	if (!size)
		size = 1;
	for (left = repeat; left && !rc; left -= size) {
		/* What is left over goes into the last burst. */
		if (n == MAX_BURSTS - 1 || left < 2 * size)
			size = left;
		memset(&bursts[n], 0, sizeof(bursts[n]));
		rc = phase == PHASE_CLOCK	 ? burst_of_clock(b, probe, size, &bursts[n])
		     : phase == PHASE_STATISTICS ? burst_of_statistics(b, probe, size, &bursts[n])
						 : burst_of_profiler(b, probe, size, &bursts[n]);
		n++;
	}
	if (rc)
		return rc;
	reduce(probe, bursts, n, index, scratch);
	if (!probe->metric[0].v[index].runs)
		return errmsg__fail(&p->why, -EIO, "prog %u (%s): it ran, but no run was counted",
				    p->prog.id, p->prog.name);
	return 0;
}

/* Adds @n metrics to a program; they are named by the caller. */
static struct bench_metric *add_metrics(struct bench *b, struct bench_prog *p, size_t n)
{
	struct bench_metric *v;
	size_t i;

	v = realloc(p->metric, (p->n_metrics + n) * sizeof(*v));
	if (!v)
		return NULL;
	p->metric = v;
	memset(v + p->n_metrics, 0, n * sizeof(*v));
	for (i = 0; i < n; i++) {
		v[p->n_metrics].v = calloc(b->count, sizeof(struct bench_reading));
		if (!v[p->n_metrics++].v)
			return NULL;
	}
	return v + p->n_metrics - n;
}

/* What was not measured after all. */
static void drop_metrics(struct bench_prog *p, size_t keep)
{
	while (p->n_metrics > keep)
		free(p->metric[--p->n_metrics].v);
}

static bool is_interrupted(struct bench *b, struct errmsg *err)
{
	if (!b->wait || !wait__interrupted(b->wait))
		return false;
	errmsg__fail(err, -EINTR, "interrupted by a signal (%s); not all was measured",
		     sigabbrev_np(b->wait->signal));
	return true;
}

/*
 * One phase: measurements of every program in turn, so that what drifts (temperature, clock speed,
 * other machines on the same host) hits all alike.
 */
static int run_probes(struct bench *b, struct probe *probes, size_t n, enum phase phase,
		      struct errmsg *err)
{
	__u64 last_ns = BENCH_MEASUREMENT_NS;
	struct burst *bursts;
	double *scratch;
	unsigned i;
	size_t k;
	int rc = 0;

	bursts = calloc(MAX_BURSTS, sizeof(*bursts));
	scratch = calloc(MAX_BURSTS, sizeof(*scratch));
	if (!bursts || !scratch) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	if (phase == PHASE_PROFILER && b->session.opts.multiplexed)
		last_ns = BENCH_MULTIPLEXED_NS;
	/* This warms up as well. */
	for (k = 0; k < n; k++) {
		struct bench_prog *p = probes[k].p;

		if (is_interrupted(b, err)) {
			rc = -EINTR;
			goto cleanup;
		}
		probes[k].repeat = b->repeat;
		if (!b->repeat && choose_repeat(b, p, last_ns, &probes[k].repeat))
			continue;
		if (measure(b, &probes[k], phase, 0, bursts, scratch))
			continue;
		if (phase == PHASE_CLOCK) {
			p->repeat = probes[k].repeat;
			check_ratio(b, p);
		}
	}
	for (k = 0; k < n; k++) {
		size_t m;

		for (m = 0; m < probes[k].n_metrics; m++)
			probes[k].metric[m].estimate = probes[k].metric[m].shared = false;
	}
	for (i = 0; i < b->count; i++) {
		for (k = 0; k < n; k++) {
			if (probes[k].p->why.status)
				continue;
			if (is_interrupted(b, err)) {
				rc = -EINTR;
				goto cleanup;
			}
			/* It says in `why` what went wrong. */
			measure(b, &probes[k], phase, i, bursts, scratch);
		}
	}
cleanup:
	free(bursts);
	free(scratch);
	return rc;
}

static bool is_runnable(const struct bench_prog *p)
{
	return !p->why.status && p->how <= BENCH_ONCE;
}

static int run_clock(struct bench *b, struct probe *probes, struct errmsg *err)
{
	size_t i, n = 0;

	for (i = 0; i < b->n; i++) {
		struct bench_prog *p = b->v[i];
		struct bench_metric *m;

		if (!is_runnable(p))
			continue;
		m = add_metrics(b, p, 1);
		if (!m)
			return errmsg__fail(err, -ENOMEM, "out of memory");
		m->name = "wall_ns";
		m->unit = "ns";
		probes[n++] = (struct probe){.p = p, .metric = m, .n_metrics = 1};
	}
	return run_probes(b, probes, n, PHASE_CLOCK, err);
}

static struct bench_metric *add_run_time(struct bench *b, struct bench_prog *p,
					 const struct floor *floor)
{
	struct bench_metric *m = add_metrics(b, p, 1);

	if (!m)
		return NULL;
	m->name = "run_time_ns";
	m->unit = "ns";
	if (floor) {
		m->has_floor = true;
		m->floor = floor->value[0];
		m->low = floor->low[0];
		m->high = floor->high[0];
	}
	return m;
}

/* Holds the switch; without the right to, and with something else to measure, a note. */
static int open_switch(struct bench *b, struct stats_switch *sw, bool needed, struct errmsg *err)
{
	struct errmsg why = {};
	int rc;

	sw->proc_root = b->ctx->proc_root;
	rc = stats_switch__open(sw, &why);
	if (rc && needed)
		return errmsg__fail(err, rc, "%s", why.text);
	if (!rc && sw->set && b->wait && wait__also(b->wait, &sw->blocked))
		note(b->ctx, "cannot wait for all signals: but for SIGINT, SIGTERM and SIGHUP they "
			     "come at the end");
	if (rc)
		note(b->ctx, "without run_time_ns: %s", why.text);
	else if (sw->how != STATS_SWITCH_FD)
		note(b->ctx, "the switch of the statistics is %s", stats_switch__how(sw));
	return rc;
}

static void close_switch(struct bench *b, struct stats_switch *sw)
{
	const char *text = stats_switch__close(sw);

	if (text)
		note(b->ctx, "%s", text);
}

/*
 * Empty programs, which are measured as the others are, in turn with them: the floor. The kernel
 * calls XDP programs in another way than others, which is in what the statistics read.
 */
enum { EMPTY_OTHER, EMPTY_XDP, EMPTIES };

static int open_empty(struct bench *b, struct bench_prog *p, __u32 type, struct errmsg *err)
{
	char buf[128];

	memset(p, 0, sizeof(*p));
	p->empty = true;
	p->how = bench__how(type);
	p->prog.type = type;
	p->prog.name = "bpfcost_empty";
	p->prog.fd = prog__load_empty(type, p->prog.name);
	if (p->prog.fd < 0)
		return errmsg__fail(err, p->prog.fd, "cannot load the empty program: %s",
				    errmsg__errno(p->prog.fd, buf, sizeof(buf)));
	return add_run_time(b, p, NULL) ? 0 : errmsg__fail(err, -ENOMEM, "out of memory");
}

/* The floor is what the empty program reads, its spread that of the measurements. */
static int set_floors(struct bench *b, const struct bench_prog *empties, struct errmsg *err)
{
	double *v = calloc(b->count, sizeof(*v));
	const struct bench_prog *empty;
	struct bench_metric *m;
	unsigned k;
	size_t i;
	int rc = 0;

	if (!v)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	for (i = 0; i < b->n && !rc; i++) {
		if (!is_runnable(b->v[i]))
			continue;
		empty = &empties[is_timed_by_kernel(b->v[i]) ? EMPTY_XDP : EMPTY_OTHER];
		if (empty->why.status) {
			rc = errmsg__fail(err, -EIO, "%s", empty->why.text);
			break;
		}
		for (k = 0; k < b->count; k++)
			v[k] = empty->metric[0].v[k].value;
		statistics__sort(v, b->count);
		/* The last one that was added. */
		m = &b->v[i]->metric[b->v[i]->n_metrics - 1];
		m->has_floor = true;
		m->floor = statistics__median(v, b->count);
		m->low = v[b->count / 10];
		m->high = v[b->count - 1 - b->count / 10];
	}
	free(v);
	return rc;
}

/* @probes has room for EMPTIES more than there are programs. */
static int run_statistics(struct bench *b, struct probe *probes, struct errmsg *err)
{
	static const __u32 types[EMPTIES] = {BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_XDP};
	struct bench_prog empties[EMPTIES] = {};
	bool needed[EMPTIES] = {};
	struct stats_switch sw = {};
	size_t i, n = 0;
	int rc = 0;

	for (i = 0; i < EMPTIES; i++)
		empties[i].prog.fd = -1;
	if (open_switch(b, &sw, false, err))
		goto cleanup;
	for (i = 0; i < b->n && !rc; i++) {
		struct bench_prog *p = b->v[i];
		struct bench_metric *m;

		if (!is_runnable(p))
			continue;
		needed[is_timed_by_kernel(p) ? EMPTY_XDP : EMPTY_OTHER] = true;
		m = add_run_time(b, p, NULL);
		if (!m)
			rc = errmsg__fail(err, -ENOMEM, "out of memory");
		probes[n++] = (struct probe){.p = p, .metric = m, .n_metrics = 1};
	}
	for (i = 0; i < EMPTIES && !rc; i++) {
		if (!needed[i])
			continue;
		rc = open_empty(b, &empties[i], types[i], err);
		probes[n++] = (struct probe){
			.p = &empties[i], .metric = empties[i].metric, .n_metrics = 1};
	}
	rc = rc ?: run_probes(b, probes, n, PHASE_STATISTICS, err) ?: set_floors(b, empties, err);
cleanup:
	for (i = 0; i < EMPTIES; i++) {
		if (empties[i].prog.fd >= 0)
			close(empties[i].prog.fd);
		drop_metrics(&empties[i], 0);
		free(empties[i].metric);
	}
	close_switch(b, &sw);
	return rc;
}

static int open_probe(struct bench *b, struct probe *probe, struct errmsg *why)
{
	struct session *s = &b->session;
	const struct floor *floor;
	size_t i;
	int rc;

	rc = profiler__open(&probe->profiler, &s->opts, &probe->p->prog, 0, why)
		     ?: session__floor(s, 1, &floor, why);
	if (rc)
		return rc;
	rc = sample__init(&probe->last, s->opts.n_cpus, s->opts.n_metrics)
		     ?: sample__init(&probe->now, s->opts.n_cpus, s->opts.n_metrics);
	if (!rc) {
		probe->n_metrics = s->n_metrics;
		probe->metric = add_metrics(b, probe->p, s->n_metrics);
	}
	if (rc || !probe->metric)
		return errmsg__fail(why, -ENOMEM, "out of memory");
	for (i = 0; i < s->n_metrics; i++) {
		probe->metric[i].name = s->order[i]->name;
		probe->metric[i].unit = s->order[i]->unit;
		probe->metric[i].has_floor = true;
		probe->metric[i].floor = floor->value[i];
		probe->metric[i].low = floor->low[i];
		probe->metric[i].high = floor->high[i];
	}
	return profiler__attach(probe->profiler, why);
}

static void close_probe(struct probe *probe)
{
	profiler__close(probe->profiler);
	sample__free(&probe->last);
	sample__free(&probe->now);
}

/* Metrics that were asked for and cannot be had are an error; without, there is less to see. */
static int run_profiler(struct bench *b, struct probe *probes, bool asked, struct errmsg *err)
{
	size_t i, n = 0, refused = 0, keep;
	struct errmsg first = {};
	int rc;

	rc = session__open(&b->session, asked ? err : &first);
	if (rc && asked)
		return rc;
	for (i = 0; i < b->n && !rc; i++) {
		struct bench_prog *p = b->v[i];
		struct errmsg why = {};

		if (!is_runnable(p))
			continue;
		if (is_interrupted(b, err)) {
			rc = -EINTR;
			goto cleanup;
		}
		keep = p->n_metrics;
		probes[n] = (struct probe){.p = p};
		if (!open_probe(b, &probes[n], &why)) {
			n++;
			continue;
		}
		close_probe(&probes[n]);
		drop_metrics(p, keep);
		if (!refused++)
			first = why;
		if (asked)
			p->why = why;
	}
	if (first.status && !asked)
		note(b->ctx, "without entry and exit programs%s: %s",
		     n ? " around some programs" : "", first.text);
	if (n)
		rc = run_probes(b, probes, n, PHASE_PROFILER, err);
	else
		rc = 0;
cleanup:
	for (i = 0; i < n; i++)
		close_probe(&probes[i]);
	return rc;
}

/* One CPU, the one that we are on: caches stay warm, and clocks are of one core. */
static int pin(struct bench *b, cpu_set_t *before, struct errmsg *err)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	/* More CPUs than cpu_set_t has are rare; the kernel then says EINVAL. */
	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(*before), before))
		return errmsg__fail(err, -errno, "cannot read the CPU affinity: %s",
				    strerror(errno));
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return errmsg__fail(err, -errno, "cannot stay on CPU %d: %s", cpu, strerror(errno));
	b->cpu = cpu;
	return 0;
}

static bool has_runnable(const struct bench *b)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		if (is_runnable(b->v[i]))
			return true;
	return false;
}

static int run_tests(struct bench *b, struct errmsg *err)
{
	bool asked = b->session.n_metrics;
	struct probe *probes;
	cpu_set_t before;
	bool on = false;
	int rc;

	probes = calloc(b->n + EMPTIES, sizeof(*probes));
	if (!probes)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	rc = pin(b, &before, err);
	if (rc) {
		free(probes);
		return rc;
	}
	if (!stats_switch__observe(&on, NULL))
		b->statistics = on;
	rc = run_clock(b, probes, err);
	/* Where none could be run, there is nothing to say of what else is missing. */
	if (!rc && has_runnable(b))
		rc = run_statistics(b, probes, err) ?: run_profiler(b, probes, asked, err);
	if (sched_setaffinity(0, sizeof(before), &before) && !rc)
		rc = errmsg__fail(err, -errno, "cannot put the CPU affinity back: %s",
				  strerror(errno));
	free(probes);
	return rc;
}

/* Runs the command once, to its end. */
static int run_command(struct bench *b, struct errmsg *err)
{
	struct child child;
	char buf[128];
	int rc;

	rc = child__open(&child, b->command, b->ctx->json);
	if (rc)
		return errmsg__fail(err, rc, "cannot fork: %s",
				    errmsg__errno(rc, buf, sizeof(buf)));
	wait__start(b->wait, 0, 0, &child);
	rc = child__go(&child);
	if (rc) {
		errmsg__fail(err, rc, "cannot start the command");
		goto cleanup;
	}
	do
		rc = wait__next(b->wait);
	while (rc >= 0 && rc != WAIT_END);
	if (rc < 0)
		errmsg__fail(err, rc, "cannot wait");
	child__wait(&child);
	if (is_interrupted(b, err))
		rc = -EINTR;
	else if (rc >= 0 && child.status) {
		b->command_status = child.status;
		rc = errmsg__fail(err, -EIO, "'%s' ended with status %d: it was not measured",
				  b->command[0], child.status);
	}
cleanup:
	child__close(&child);
	return rc < 0 ? rc : 0;
}

static int attach(struct bench_prog *p)
{
	char buf[128];
	int rc;

	if (!p->object_prog)
		return 0;
	p->link = bpf_program__attach(p->object_prog);
	if (p->link)
		return 0;
	rc = -errno;
	return errmsg__fail(&p->why, rc, "prog %u (%s): cannot attach it: %s", p->prog.id,
			    p->prog.name, errmsg__errno(rc, buf, sizeof(buf)));
}

static int run_commands(struct bench *b, struct errmsg *err)
{
	struct stats_switch sw = {};
	struct floor floor = {};
	__u64(*last)[2], ns = 0, runs = 0;
	unsigned i;
	size_t k, n = 0;
	int rc;

	last = calloc(b->n, sizeof(*last));
	if (!last)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	rc = open_switch(b, &sw, true, err) ?: floor__measure_statistics(&floor, err);
	for (k = 0; !rc && k < b->n; k++) {
		struct bench_prog *p = b->v[k];

		if (p->why.status || p->how <= BENCH_ONCE || attach(p))
			continue;
		if (!add_run_time(b, p, &floor))
			rc = errmsg__fail(err, -ENOMEM, "out of memory");
		n++;
	}
	/* The first one warms up. */
	for (i = 0; !rc && n && i <= b->count; i++) {
		for (k = 0; !rc && k < b->n; k++)
			if (!b->v[k]->why.status && b->v[k]->how > BENCH_ONCE)
				rc = read_statistics(b->v[k]->prog.fd, &last[k][0], &last[k][1]);
		rc = rc ? errmsg__fail(err, rc, "cannot read the statistics: %s", strerror(-rc))
			: run_command(b, err);
		for (k = 0; !rc && k < b->n; k++) {
			struct bench_prog *p = b->v[k];

			if (p->why.status || p->how <= BENCH_ONCE)
				continue;
			rc = read_statistics(p->prog.fd, &ns, &runs);
			if (rc) {
				errmsg__fail(err, rc, "cannot read the statistics: %s",
					     strerror(-rc));
				break;
			}
			ns -= last[k][0];
			runs -= last[k][1];
			if (!runs)
				errmsg__fail(&p->why, -ENODATA,
					     "prog %u (%s): it did not run while '%s' did",
					     p->prog.id, p->prog.name, b->command[0]);
			else if (i)
				p->metric[0].v[i - 1] = (struct bench_reading){
					.runs = runs,
					.value = (double)ns / runs,
					.mean = (double)ns / runs,
				};
		}
	}
	close_switch(b, &sw);
	floor__free(&floor);
	free(last);
	return rc;
}

/* Of programs that could all not be measured, the one to tell of: bad input before what went wrong
 * with a program that was loaded, and that before one that was left out. */
static const struct bench_prog *worst(const struct bench *b)
{
	const struct bench_prog *loaded = NULL;
	size_t i;

	for (i = 0; i < b->n; i++) {
		if (b->v[i]->why.status == EXIT_USAGE)
			return b->v[i];
		if (!loaded && b->v[i]->prog.fd >= 0)
			loaded = b->v[i];
	}
	return loaded ? loaded : b->v[0];
}

int bench__run(struct bench *b, struct errmsg *err)
{
	const struct bench_prog *told;
	size_t i, tests = 0, commands = 0, measured = 0;
	char type[32];
	int rc = 0;

	b->cpu = -1;
	for (i = 0; i < b->n; i++) {
		struct bench_prog *p = b->v[i];

		if (p->why.status)
			continue;
		if (p->how <= BENCH_ONCE)
			tests++;
		else if (b->command)
			commands++;
		else
			errmsg__fail(&p->why, -EOPNOTSUPP,
				     "prog %u (%s): the kernel cannot run programs of type %s by "
				     "itself; measure it while a command makes it run: -- COMMAND",
				     p->prog.id, p->prog.name,
				     prog__type_name(p->prog.type, type, sizeof(type)));
	}
	if (b->command && tests && !commands)
		return errmsg__usage(err, "'-- COMMAND' is for programs that the kernel cannot run "
					  "by itself, and these it can; 'prog profile' and 'prog "
					  "stats' measure while a command runs");
	if (tests)
		rc = run_tests(b, err);
	if (!rc && commands)
		rc = run_commands(b, err);
	if (rc)
		return rc;
	for (i = 0; i < b->n; i++)
		measured += !b->v[i]->why.status;
	if (measured)
		return 0;
	if (!b->n)
		return errmsg__fail(err, -ENOENT, "there are no programs to measure");
	told = worst(b);
	if (told->why.status == EXIT_USAGE)
		return errmsg__usage(err, "%s", told->why.text);
	return errmsg__fail(err, -EIO, "%s", told->why.text);
}

static struct bench_prog *append(struct bench *b)
{
	struct bench_prog **v, *p;

	v = realloc(b->v, (b->n + 1) * sizeof(*v));
	if (!v)
		return NULL;
	b->v = v;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->prog.fd = -1;
	v[b->n++] = p;
	return p;
}

int bench__add(struct bench *b, struct prog *prog, struct errmsg *err)
{
	struct bench_prog *p = append(b);

	if (!p) {
		prog__close(prog);
		return errmsg__fail(err, -ENOMEM, "out of memory");
	}
	p->prog = *prog;
	memset(prog, 0, sizeof(*prog));
	prog->fd = -1;
	p->how = bench__how(p->prog.type);
	return 0;
}

void bench__close(struct bench *b)
{
	size_t i;

	if (!b)
		return;
	for (i = 0; i < b->n; i++) {
		struct bench_prog *p = b->v[i];

		bpf_link__destroy(p->link);
		drop_metrics(p, 0);
		free(p->metric);
		prog__close(&p->prog);
		free(p);
	}
	free(b->v);
	b->v = NULL;
	b->n = 0;
	bpf_object__close(b->object);
	b->object = NULL;
	free(b->object_name);
	b->object_name = NULL;
	free(b->input.data);
	free(b->input.context);
	memset(&b->input, 0, sizeof(b->input));
	session__close(&b->session);
}
