// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The switch changes in the middle of a run of a program that cannot sleep: it spins until a map
 * says that it may go on. This is midrun for the other half of the programs, and for kernels that
 * have no sleepable ones.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "btest.h"

/* What is in the map: how often the program was entered and let go, and whether it may go on. */
enum word {
	W_BEGAN,
	W_LET_GO,
	W_GO,
	WORDS,
};

struct what {
	unsigned int type, attach_type;
	const char *func; /* the kernel function it is attached to; NULL: it is run as it is */
};

struct stage {
	const struct what *what;
	int map, prog, link;
	cpu_set_t cpus;	  /* that we may use */
	pthread_t thread; /* that runs the program */
	int rc;		  /* what it got */
};

/* A loop with a bound that the verifier can follow, and a tail call to itself as often as the
 * kernel allows: some tens of milliseconds, unless it is let go earlier. */
#define SPINS 1000 /* what the verifier takes to follow them grows with the square */
#define WAIT  I_CALL(BPF_FUNC_ktime_get_ns)
#define WAIT8 WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT

static int load_spinner(struct btest *t, const struct what *w, int map)
{
	int self, prog;
	__u32 key = 0;

	self = (int)need(t, bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "stats_test", 4, 4, 1, NULL),
			 "a program array");
	const struct bpf_insn code[] = {
		I_MOVR(R9, R1), I_LD_VALUE(R6, map, 0),
		I_MOV(R1, 1), I_ATOMIC_ADD64(R6, R1, W_BEGAN * 8), I_MOV(R7, 0),
		/* the loop */
		I_LDX(BPF_DW, R1, R6, W_GO * 8), I_JNE(R1, 0, 43),
		WAIT8, WAIT8, WAIT8, WAIT8, WAIT8,
		I_ADD(R7, 1), I_JLT(R7, SPINS, -44),
		I_JA(4),
		/* let go */
		I_MOV(R1, 1), I_ATOMIC_ADD64(R6, R1, W_LET_GO * 8), I_MOV(R0, 0), I_EXIT(),
		/* once more */
		I_MOVR(R1, R9), I_LD_MAP(R2, self), I_MOV(R3, 0), I_CALL(BPF_FUNC_tail_call),
		I_MOV(R0, 0), I_EXIT(),
	};
	struct bstats_load l = {
		.type = w->type,
		.attach_type = w->attach_type,
		.name = "stats_spinner",
	};

	if (w->func)
		l.attach_btf_id = (unsigned int)need(t, bstats_btf_id(w->func, BTF_KIND_FUNC),
						     w->func);
	prog = (int)need(t, bstats_load(&l, code, INSN_COUNT(code)), "a program that spins");
	need(t, bpf_map_update_elem(self, &key, &prog, BPF_ANY), "filling the program array");
	return prog;
}

/* Takes the @nth CPU that we may use: a program that spins on ours would keep us from changing the
 * switch until it gave up. Returns false if there is none. */
static bool take_cpu(const cpu_set_t *allowed, int nth)
{
	cpu_set_t one;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, allowed) || nth--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return !sched_setaffinity(0, sizeof(one), &one);
	}
	return false;
}

static void *runner(void *arg)
{
	struct stage *s = arg;
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	take_cpu(&s->cpus, 1);
	if (s->what->func)
		s->rc = bpf_prog_test_run_opts(s->prog, &opts) ? -errno : 0;
	else
		s->rc = bstats_run(s->prog, 1);
	return NULL;
}

static __u64 word(struct btest *t, const struct stage *s, enum word w)
{
	__u64 words[WORDS];

	need(t, bstats_array_get(s->map, words, WORDS), "reading the map");
	return words[w];
}

/* Starts a run, and returns when it is under way. */
static void enter(struct btest *t, struct stage *s)
{
	const __u64 words[WORDS] = {};
	long long stop = now_ns() + 5000000000LL;

	need(t, bstats_array_set(s->map, words, WORDS), "writing the map");
	errno = pthread_create(&s->thread, NULL, runner, s);
	if (errno)
		btest_broken(t, errno, "pthread_create");
	while (!word(t, s, W_BEGAN)) {
		if (now_ns() > stop)
			btest_failed(t, "a run that begins", "none within 5 s");
		usleep(100);
	}
}

/* Lets it go on to its end. Returns false if it had given up before. */
static bool leave(struct btest *t, struct stage *s)
{
	const __u64 words[WORDS] = {[W_BEGAN] = 1, [W_GO] = 1};

	need(t, bstats_array_set(s->map, words, WORDS), "writing the map");
	errno = pthread_join(s->thread, NULL);
	if (errno)
		btest_broken(t, errno, "pthread_join");
	need(t, s->rc, "BPF_PROG_TEST_RUN");
	return word(t, s, W_LET_GO) == 1;
}

/* One run with the switch as @from when it begins, and as @to when it ends. */
static void changed(struct btest *t, struct stage *s, bool from, bool to, long long expected)
{
	/* A run that gave up before it was let go says nothing: the other CPU was not free. */
	for (int tries = 0; tries < 20; tries++) {
		struct bstats before, after;
		int fd = from ? must_open(t) : -1;
		bool whole;

		before = must_info(t, s->prog);
		enter(t, s);
		if (to && !from)
			fd = must_open(t);
		else if (from && !to)
			close(fd);
		whole = leave(t, s);
		after = must_info(t, s->prog);
		if (to)
			close(fd);
		if (!whole)
			continue;
		expect_eq(t, expected, (long long)(after.run_cnt - before.run_cnt),
			  "runs counted of one that began with the switch %s and ended with it %s",
			  from ? "on" : "off", to ? "on" : "off");
		if (!expected)
			expect_eq(t, 0, (long long)(after.run_time_ns - before.run_time_ns),
				  "time of a run that is not counted");
		return;
	}
	btest_skip(t,
		   "needs a second CPU that is free: no run lasted while the switch was changed");
}

static void all_changes(struct btest *t)
{
	struct stage s = {.what = t->tc->data, .link = -1};

	need(t, sched_getaffinity(0, sizeof(s.cpus), &s.cpus), "sched_getaffinity");
	if (CPU_COUNT(&s.cpus) < 2 || !take_cpu(&s.cpus, 0))
		btest_skip(t, "needs two CPUs: one spins while the other changes the switch");
	/* A CPU that spins keeps its turn there, for as long as it likes. */
	if (time_is_exact())
		btest_skip(t, "needs CPUs that run at once; in exact time they take turns (use the "
			      "lab without --exact)");
	s.map = (int)need(t, bstats_array(WORDS * 8), "a map");
	s.prog = load_spinner(t, s.what, s.map);
	if (s.what->func)
		s.link = (int)need(t, bpf_raw_tracepoint_open(NULL, s.prog), "attaching");
	changed(t, &s, false, false, 0);
	changed(t, &s, true, true, 1);
	changed(t, &s, false, true, 0);
	/* Only a trampoline looks again. */
	changed(t, &s, true, false, !s.what->func);
}

static const struct what plain = {.type = BPF_PROG_TYPE_SOCKET_FILTER};
static const struct what fentry = {
	.type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_FENTRY, .func = "bpf_fentry_test1",
};
static const struct what fexit = {
	.type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_FEXIT, .func = "bpf_fentry_test1",
};

static const char once[] =
	"a run outside trampolines is counted if the switch was on when it began, and only then";
static const char twice[] =
	"a run on a trampoline is counted if the switch was on when it began and when it ended";

static const struct btest_case cases[] = {
	{ .name = "run", .rule = once, .run = all_changes, .data = &plain, .tags = "smp" },
	{ .name = "fentry", .rule = twice, .run = all_changes, .data = &fentry,
	  .needs = BH_FENTRY_KERNEL, .tags = "smp,trampoline" },
	{ .name = "fexit", .rule = twice, .run = all_changes, .data = &fexit,
	  .needs = BH_FENTRY_KERNEL, .tags = "smp,trampoline" },
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
