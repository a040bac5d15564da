// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * run_time_ns against programs whose cost is known: to the instruction where time is exact (the
 * lab's --exact), within bounds that hold on every machine elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "btest.h"

#define LONGEST	  4000 /* BPF instructions; 4096 is what an unprivileged program may have */
#define SAMPLES	  25
#define PROCESSES 4

/* Bounds for any machine: 16 instructions a ns, a microsecond for one. */
#define FASTEST	   16
#define SLOWEST_NS 1000LL
#define READ_MS	  300

/* dst -= src */
#define I_SUBR(d, s) INSN(BPF_ALU64 | BPF_SUB | BPF_X, d, s, 0, 0)

/* ---- programs ---- */

/* mov, @length times an addition that is one machine instruction, exit. Registers only:
 * constants may be blinded. */
static size_t straight(struct bpf_insn *code, unsigned int length)
{
	size_t n = 0;

	code[n++] = I_MOV(R0, 1);
	for (unsigned int i = 0; i < length; i++)
		code[n++] = I_ADDR(R0, R0);
	code[n++] = I_MOV(R0, 0);
	code[n++] = I_EXIT();
	return n;
}

/* How a program is run: as it is, or on a trampoline. */
struct path {
	unsigned int type, attach_type;
	const char *func;
};

static const struct path plain = {.type = BPF_PROG_TYPE_SOCKET_FILTER};
static const struct path trampoline = {
	.type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_FENTRY, .func = "bpf_fentry_test1",
};

static int load_straight(struct btest *t, const struct path *p, unsigned int length, int *link)
{
	struct bpf_insn code[LONGEST + 3];
	int id = p->func ? bstats_btf_id(p->func, BTF_KIND_FUNC) : 0, fd;
	const struct bstats_load l = {
		.type = p->type,
		.attach_type = p->attach_type,
		.attach_btf_id = (unsigned int)id,
		.name = "howlong",
	};

	need(t, id, "a function in the kernel's BTF");
	fd = bstats_load(&l, code, straight(code, length));
	need(t, fd, "loading a straight-line program");
	*link = -1;
	if (p->func)
		*link = (int)need(t, bpf_raw_tracepoint_open(NULL, fd), "attaching it");
	return fd;
}

static void run_once(struct btest *t, const struct path *p, int fd)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (p->func)
		need(t, bpf_prog_test_run_opts(fd, &opts), "BPF_PROG_TEST_RUN");
	else
		must_run(t, fd, 1);
}

static int compare(const void *a, const void *b)
{
	const unsigned long long x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

/* The median of single runs: an interrupt in one of them says nothing. */
static __u64 median_run(struct btest *t, const struct path *p, int fd)
{
	__u64 ns[SAMPLES];

	run_once(t, p, fd);
	for (int i = 0; i < SAMPLES; i++) {
		struct bstats before = must_info(t, fd), after;

		run_once(t, p, fd);
		after = must_info(t, fd);
		expect_eq(t, 1, (long long)(after.run_cnt - before.run_cnt), "runs counted of one");
		ns[i] = after.run_time_ns - before.run_time_ns;
	}
	qsort(ns, SAMPLES, sizeof(ns[0]), compare);
	return ns[SAMPLES / 2];
}

static void need_jit(struct btest *t)
{
	char text[8] = "";
	int fd = open("/proc/sys/net/core/bpf_jit_enable", O_RDONLY | O_CLOEXEC);

	/* No such file: the kernel has nothing but a JIT. */
	if (fd < 0)
		return;
	need(t, read(fd, text, sizeof(text) - 1), "net.core.bpf_jit_enable");
	close(fd);
	if (text[0] == '0')
		btest_skip(t, "needs the JIT compiler: net.core.bpf_jit_enable is 0");
}

/* ---- cases ---- */

static void slope(struct btest *t)
{
	static const unsigned int lengths[] = {1, 10, 100, 1000, LONGEST};
	const struct path *p = t->tc->data;
	int link, fd, stats;
	__u64 empty;

	need_jit(t);
	if (!time_is_exact())
		btest_skip(t, "needs exact time (the lab's --exact): an instruction, a nanosecond");
	stats = must_open(t);
	fd = load_straight(t, p, 0, &link);
	empty = median_run(t, p, fd);
	close(link);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		long long more;

		fd = load_straight(t, p, lengths[i], &link);
		more = (long long)(median_run(t, p, fd) - empty);
		close(link);
		close(fd);
		/* The clock's multiplier rounds, on x86 at both ends. */
		if (more < (long long)lengths[i] - 2 || more > (long long)lengths[i] + 2)
			btest_failed(
				t, "1 ns for each instruction more",
				"%lld ns for %u instructions more than none, which takes %llu ns",
				more, lengths[i], empty);
	}
	close(stats);
	btest_note(t, "an empty program takes %llu ns; up to %d instructions, each is 1 ns more",
		   empty, LONGEST);
}

/* A program of @LONGEST instructions that measures itself, and adds that up in a map. */
static int load_timed(struct btest *t, int map)
{
	struct bpf_insn code[LONGEST + 16];
	size_t n = 0;
	const struct bstats_load l = {.type = BPF_PROG_TYPE_SOCKET_FILTER, .name = "howlong"};
	const struct bpf_insn begin[] = {I_CALL(BPF_FUNC_ktime_get_ns), I_MOVR(R6, R0)};
	const struct bpf_insn end[] = {
		I_CALL(BPF_FUNC_ktime_get_ns), I_SUBR(R0, R6), I_LD_VALUE(R1, map, 0),
		I_ATOMIC_ADD64(R1, R0, 0), I_MOV(R0, 0), I_EXIT(),
	};

	memcpy(code, begin, sizeof(begin));
	n += INSN_COUNT(begin);
	for (int i = 0; i < LONGEST; i++)
		code[n++] = I_ADDR(R0, R0);
	memcpy(code + n, end, sizeof(end));
	n += INSN_COUNT(end);
	return (int)need(t, bstats_load(&l, code, n), "loading a program that measures itself");
}

/* What the program measured itself is a part of the run, the run is a part of the call. Clocks
 * may run apart by a thousandth where one is being corrected, and by one tick at each end. */
static void check_between(struct btest *t, int fd, int map, unsigned int processes,
			  unsigned int repeat)
{
	struct bstats before = must_info(t, fd), after;
	__u64 own_before, own, runs = (__u64)processes * repeat, slack;
	long long began = now_ns(), wall;
	pid_t pids[PROCESSES];

	need(t, bstats_array_get(map, &own_before, 1), "reading the map");
	for (unsigned int i = 0; processes > 1 && i < processes; i++) {
		pids[i] = (pid_t)need(t, fork(), "fork");
		if (!pids[i]) {
			must_run(t, fd, repeat);
			_exit(0);
		}
	}
	if (processes == 1)
		must_run(t, fd, repeat);
	for (unsigned int i = 0; processes > 1 && i < processes; i++) {
		int status;

		need(t, waitpid(pids[i], &status, 0), "waitpid");
		expect_eq(t, 0, status, "wait status of a process that runs the program");
	}
	wall = now_ns() - began;
	need(t, bstats_array_get(map, &own, 1), "reading the map");
	after = must_info(t, fd);
	own -= own_before;
	expect_eq(t, (long long)runs, (long long)(after.run_cnt - before.run_cnt), "runs counted");
	slack = own / 1000 + 100 * runs;
	expect_range(
		t, (long long)(own > slack ? own - slack : 0),
		wall * (long long)processes * 1001 / 1000 + 100,
		(long long)(after.run_time_ns - before.run_time_ns),
		"run_time_ns, between what the program measured itself and the time of the call");
}

static void bounds(struct btest *t)
{
	unsigned int processes = t->tc->data ? PROCESSES : 1;
	int map = (int)need(t, bstats_array(8), "a map");
	int fd = load_timed(t, map), stats = must_open(t);

	check_between(t, fd, map, processes, 1);
	check_between(t, fd, map, processes, 10);
	check_between(t, fd, map, processes, 1000);
	close(stats);
}

/* More instructions take longer, on whatever machine. */
static void grows(struct btest *t)
{
	int stats = must_open(t), link, few, many;
	__u64 short_ns, long_ns;

	few = load_straight(t, &plain, 0, &link);
	many = load_straight(t, &plain, LONGEST, &link);
	short_ns = median_run(t, &plain, few);
	long_ns = median_run(t, &plain, many);
	expect_range(t, LONGEST / FASTEST, LONGEST * SLOWEST_NS, (long long)(long_ns - short_ns),
		     "ns that 4000 instructions add to an empty program");
	close(stats);
}

struct runner {
	int fd;
	int stop;
	int failed;
};

static void *keep_running(void *arg)
{
	struct runner *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED))
		if (bstats_run(r->fd, 50))
			r->failed = 1;
	return NULL;
}

static void monotonic(struct btest *t)
{
	struct runner r = {};
	struct bstats last, s;
	pthread_t threads[2];
	int link, stats = must_open(t), reads = 0;
	long long end;

	r.fd = load_straight(t, &plain, 100, &link);
	last = must_info(t, r.fd);
	for (int i = 0; i < 2; i++)
		need(t, -pthread_create(&threads[i], NULL, keep_running, &r), "pthread_create");
	for (end = now_ns() + READ_MS * 1000000LL; now_ns() < end; reads++) {
		if (reads & 1)
			need(t, bstats_fdinfo(r.fd, &s), "fdinfo");
		else
			s = must_info(t, r.fd);
		if (s.run_cnt < last.run_cnt || s.run_time_ns < last.run_time_ns)
			btest_failed(t, "numbers that only grow",
				     "run_cnt %llu and run_time_ns %llu after %llu and %llu",
				     s.run_cnt, s.run_time_ns, last.run_cnt, last.run_time_ns);
		last = s;
	}
	__atomic_store_n(&r.stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	expect_eq(t, 0, r.failed, "runs that failed");
	close(stats);
	btest_note(t, "%d reads during %llu runs", reads, last.run_cnt);
}

/* An entry program runs inside its target's run, and its cost is in the target's time. */
static void of_tracer(struct btest *t)
{
	const struct bpf_insn code[] = {I_MOV(R0, 0), I_EXIT()};
	const struct bstats_func func = {.name = "howlong_target", .takes_ctx = true};
	const struct bstats_load l = {.type = BPF_PROG_TYPE_SOCKET_FILTER};
	struct bstats_load tracer = {
		.type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_FENTRY, .name = "howlong",
	};
	struct bpf_insn longer[LONGEST + 3];
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int stats = must_open(t), target, fd, link, id;
	__u64 alone, traced;
	struct btf *btf;

	target = bstats_load_btf(&l, "__sk_buff", &func, 1, code, INSN_COUNT(code));
	need(t, target, "loading a program to trace");
	need(t, bpf_obj_get_info_by_fd(target, &info, &len), "BPF_OBJ_GET_INFO_BY_FD");
	btf = btf__load_from_kernel_by_id(info.btf_id);
	id = btf ? btf__find_by_name_kind(btf, func.name, BTF_KIND_FUNC) : -errno;
	btf__free(btf);
	tracer.attach_btf_id = (unsigned int)need(t, id, "the BTF of the program");
	tracer.attach_prog_fd = (unsigned int)target;
	fd = bstats_load(&tracer, longer, straight(longer, LONGEST));
	need(t, fd, "loading an entry program");
	alone = median_run(t, &plain, target);
	link = (int)need(t, bpf_raw_tracepoint_open(NULL, fd), "attaching it");
	traced = median_run(t, &plain, target);
	close(link);
	expect_range(t, LONGEST / FASTEST, LONGEST * SLOWEST_NS, (long long)(traced - alone),
		     "ns that an entry program of 4000 instructions adds to an empty target");
	close(stats);
}

static const char exact_rule[] =
	"run_time_ns is the time from entry to exit: an instruction more is "
	"one instruction's time more";
static const char between[] =
	"run_time_ns of a run is no less than what the program itself measured, "
	"and no more than the call that ran it took";

static const struct btest_case cases[] = {
	{ .name = "slope", .rule = exact_rule, .run = slope, .data = &plain, .tags = "exact" },
	{ .name = "slope-trampoline", .rule = exact_rule, .run = slope, .data = &trampoline,
	  .needs = BH_FENTRY_KERNEL, .tags = "exact,trampoline" },
	{ .name = "bounds", .rule = between, .run = bounds },
	{ .name = "bounds-parallel", .rule = between, .run = bounds, .data = &plain },
	{ .name = "grows", .rule = exact_rule, .run = grows },
	{ .name = "monotonic", .rule = "run_cnt and run_time_ns never go back, whoever reads while "
				       "whoever runs", .run = monotonic },
	{ .name = "of-tracer",
	  .rule = "the cost of an entry program is in the run_time_ns of its target",
	  .run = of_tracer, .needs = BH_FENTRY_BPF, .tags = "trampoline" },
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
