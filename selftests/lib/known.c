// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bstats.h"
#include "btest.h"
#include "known.h"
#include "stats_switch.h"

/*
 * A burst is runs in a row that end before the next timer interrupt, mostly. Interrupts only add:
 * the cheapest of some bursts has none. Where time is exact, few are enough.
 */
#define BURST_NS	20000.0
#define BURSTS_EXACT	6
#define BURST_NS_NOISY	400000.0
#define BURSTS_NOISY	25
#define MOST_RUNS	2000
#define MOST_RUNS_EXACT 20

/* A system call's own cost is one of four at random on some kernels (randomize_kstack_offset): the
 * least of 48 calls is the least there is, but once in a million times. */
#define LEAST_CALLS 8

/* Elsewhere than in exact time, what the methods say of 2N steps may differ by this factor, and
 * this much: BPF_PROG_TEST_RUN rounds, and some steps take a tenth of a nanosecond. */
#define NOISY_FACTOR 4.0
#define NOISY_NS     100.0

/* Where something is not as it has to be, a second look tells a finding from other things that the
 * machine had to do; in exact time, from a timer that was in step with all the bursts. */
#define TRIES_EXACT 6
#define TRIES_NOISY 8

#if defined(__aarch64__)
#define ARCH KNOWN_ARM64
#else
#define ARCH KNOWN_AMD64
#endif

const char *const known_method_name[KNOWN_METHODS] = {
	[KNOWN_RUN_TIME] = "run_time_ns",      [KNOWN_TEST_RUN] = "test_run_ns", [KNOWN_NS] = "ns",
	[KNOWN_INSTRUCTIONS] = "instructions", [KNOWN_CYCLES] = "cycles",
};

const char *const known_rule_name[] = {
	[KNOWN_LINEAR] = "linear", [KNOWN_STRAIGHT] = "straight", [KNOWN_CALL] = "call",
	[KNOWN_DEEP] = "deep",	   [KNOWN_HELPER] = "helper",	  [KNOWN_LOOP] = "loop",
	[KNOWN_TAIL] = "tail",
};

#define STRAIGHT(family, object_, arm64, amd64, what)                                    \
	{                                                                                \
		.name = family, .object = object_, .step = what, .rule = KNOWN_STRAIGHT, \
		.insns = {arm64, amd64},                                                 \
	}
#define BRANCH(family, amd64, skipped_, what)                                             \
	{                                                                                 \
		.name = family, .object = "branch", .step = what, .rule = KNOWN_STRAIGHT, \
		.insns = {0, amd64}, .branches = 1, .skipped = skipped_,                  \
	}
#define ATOMIC(family, what)                                                              \
	{                                                                                 \
		.name = family, .object = "atomic", .step = what, .rule = KNOWN_STRAIGHT, \
		.needs = "atomic operations that fetch (5.12)", .insns = {0, 1},          \
	}
/* Where it is inlined, the branch is that which finds the value, over the one instruction that
 * makes it NULL (kernel/bpf/arraymap.c). */
#define ARRAY(family, what)                                                                        \
	{                                                                                          \
		.name = family, .object = "map", .step = what, .rule = KNOWN_HELPER, .skipped = 1, \
	}
#define NEEDS(family, object_, rule_, needs_, what)                                     \
	{                                                                               \
		.name = family, .object = object_, .step = what, .rule = KNOWN_##rule_, \
		.needs = needs_                                                         \
	}
#define RULE(family, object_, rule_, what)                                             \
	{                                                                              \
		.name = family, .object = object_, .step = what, .rule = KNOWN_##rule_ \
	}

const struct known_family known_families[] = {
	STRAIGHT("alu", "straight", 1, 1, "64 bit addition of registers"),
	STRAIGHT("alu32", "straight", 1, 1, "32 bit addition of registers"),
	STRAIGHT("mov", "straight", 1, 1, "move between registers"),
	STRAIGHT("mov_imm", "straight", 1, 1, "move of a small constant"),
	STRAIGHT("stack_store", "straight", 0, 1, "store of 64 bits to the stack"),
	STRAIGHT("stack_load", "straight", 0, 1, "load of 64 bits from the stack"),
	STRAIGHT("ctx_load", "straight", 0, 1, "load of a field of __sk_buff"),
	STRAIGHT("ctx_store", "straight", 0, 1, "store to a field of __sk_buff"),
	STRAIGHT("xdp_load", "straight", 0, 1, "load of a field of xdp_md"),
	STRAIGHT("packet_load", "straight", 0, 1, "load of 32 bits from the packet"),
	STRAIGHT("packet_store", "straight", 0, 1, "store of 32 bits to the packet"),
	BRANCH("branch_taken", 3, 1, "load, comparison, branch over a move"),
	BRANCH("branch_not_taken", 4, 0, "load, comparison, branch that is not taken, move"),
	{.name = "loop",
	 .object = "branch",
	 .step = "iteration: decrement, comparison, branch",
	 .rule = KNOWN_LOOP,
	 .insns = {3, 3}},
	NEEDS("bpf_loop", "bpf_loop", LOOP, "bpf_loop (5.17)",
	      "iteration of bpf_loop, empty callback"),
	NEEDS("iter_num", "iter", LOOP, "open-coded iterators (6.4)",
	      "iteration of an open-coded iterator"),
	RULE("call_static", "call", CALL, "call of an empty static function"),
	RULE("call_global", "call", CALL, "call of an empty global function"),
	RULE("deep_static", "call", DEEP, "one frame more, static functions"),
	RULE("deep_global", "call", DEEP, "one frame more, global functions"),
	RULE("tail_call", "tail", TAIL,
	     "tail call, but for the map's address; 33 are the last size"),
	STRAIGHT("atomic_add", "atomic", 0, 1, "atomic addition"),
	ATOMIC("atomic_fetch_add", "atomic addition that fetches"),
	ATOMIC("atomic_xchg", "atomic exchange"),
	ATOMIC("atomic_cmpxchg", "atomic comparison and exchange"),
	ARRAY("array_lookup", "bpf_map_lookup_elem, array"),
	ARRAY("percpu_array_lookup", "bpf_map_lookup_elem, per-CPU array"),
	RULE("hash_lookup", "map", HELPER, "bpf_map_lookup_elem, hash, found"),
	RULE("percpu_hash_lookup", "map", HELPER, "bpf_map_lookup_elem, per-CPU hash, found"),
	RULE("lru_hash_lookup", "map", HELPER, "bpf_map_lookup_elem, LRU hash, found"),
	RULE("array_update", "map", HELPER, "bpf_map_update_elem, array"),
	RULE("percpu_array_update", "map", HELPER, "bpf_map_update_elem, per-CPU array"),
	RULE("hash_update", "map", HELPER, "bpf_map_update_elem, hash, there already"),
	RULE("percpu_hash_update", "map", HELPER,
	     "bpf_map_update_elem, per-CPU hash, there already"),
	RULE("lru_hash_update", "map", HELPER, "bpf_map_update_elem, LRU hash, there already"),
	RULE("hash_delete", "map", HELPER, "bpf_map_delete_elem, hash, and an update that adds it"),
	RULE("ringbuf_reserve", "ringbuf", HELPER, "bpf_ringbuf_reserve, bpf_ringbuf_discard"),
	RULE("ringbuf_output", "ringbuf", HELPER, "bpf_ringbuf_output, 8 bytes"),
	NEEDS("task_storage_get", "storage", HELPER, "task storage (5.12)",
	      "bpf_task_storage_get, there already"),
	RULE("spin_lock", "lock", HELPER, "bpf_spin_lock, bpf_spin_unlock"),
	RULE("get_smp_processor_id", "helper", HELPER, "bpf_get_smp_processor_id"),
	RULE("get_numa_node_id", "helper", HELPER, "bpf_get_numa_node_id"),
	RULE("jiffies64", "helper", HELPER, "bpf_jiffies64"),
	RULE("ktime_get_ns", "helper", HELPER, "bpf_ktime_get_ns"),
	RULE("get_prandom_u32", "helper", HELPER, "bpf_get_prandom_u32"),
	RULE("get_current_task", "helper", HELPER, "bpf_get_current_task"),
	RULE("get_current_pid_tgid", "helper", HELPER, "bpf_get_current_pid_tgid"),
	RULE("probe_read_kernel_8", "helper", HELPER, "bpf_probe_read_kernel, 8 bytes"),
	RULE("probe_read_kernel_64", "helper", HELPER, "bpf_probe_read_kernel, 64 bytes"),
	RULE("probe_read_kernel_512", "helper", HELPER, "bpf_probe_read_kernel, 512 bytes"),
	NEEDS("copy_from_user_8", "sleep", HELPER, "programs of type syscall (5.14)",
	      "bpf_copy_from_user, 8 bytes"),
	NEEDS("copy_from_user_64", "sleep", HELPER, "programs of type syscall (5.14)",
	      "bpf_copy_from_user, 64 bytes"),
	{},
};

/* ---- once ---- */

static int find_objects(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);

	if (n < 0)
		return -errno;
	path[n] = '\0';
	/* BUILD/selftests/cost/cost */
	for (int up = 0; up < 3; up++) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return -ENOENT;
		*slash = '\0';
	}
	n = (ssize_t)strlen(path);
	return snprintf(path + n, size - (size_t)n, "/progs/cost") < (int)(size - (size_t)n)
		       ? 0
		       : -ENAMETOOLONG;
}

static void open_engine(struct known *k)
{
	struct lab_engine *e = &k->engine;
	int rc;

	e->ctx = (struct ctx){.out = stdout, .msg = stderr, .sysfs_root = "/sys", .err = &e->err};
	session__init(&e->session, &e->ctx);
	rc = session__add_metric(&e->session, "ns", &e->err);
	if (!rc && !lab_pmu())
		rc = session__add_metric(&e->session, "instructions", &e->err)
			     ?: session__add_metric(&e->session, "cycles", &e->err);
	rc = rc ?: session__open(&e->session, &e->err) ?:
	     session__floor(&e->session, 1, &e->floor, &e->err);
	k->profiles = !rc;
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

int known__open(struct known *k)
{
	const char *where = getenv("WHERE");
	int rc;

	memset(k, 0, sizeof(*k));
	session__init(&k->engine.session, &k->engine.ctx);
	rc = find_objects(k->objects, sizeof(k->objects));
	if (rc)
		return rc;
	/* What fails is told by us. */
	libbpf_set_print(quiet);
	k->exact = time_is_exact();
	k->emulated = !k->exact && where && !strncmp(where, "lab", 3);
	open_engine(k);
	return 0;
}

void known__close(struct known *k)
{
	session__close(&k->engine.session);
}

/* ---- a family's programs ---- */

struct program {
	struct bpf_program *prog;
	unsigned int n; /* steps */
	int fd;
	bool repeats; /* takes a packet, and a number of runs */
	bool syscall;
	struct lab_target target;
};

struct group {
	struct bpf_object *obj;
	struct program p[KNOWN_SIZES];
	size_t found;
	struct bpf_program *beyond; /* does more than a kernel allows; or NULL */
	unsigned int runs; /* of a burst: the same for all, so that what is not a run cancels */
	char log[1 << 16];
	/* A ring buffer's two positions, to make room again. */
	unsigned long *consumed;
	const unsigned long *produced;
	long page;
};

/* FAMILY_beyond */
static bool is_beyond(const char *program, const char *family)
{
	size_t len = strlen(family);

	return !strncmp(program, family, len) && !strcmp(program + len, "_beyond");
}

/* FAMILY_N */
static unsigned int steps_of(const char *program, const char *family)
{
	size_t len = strlen(family);
	unsigned long n;
	char *end;

	if (strncmp(program, family, len) || program[len] != '_')
		return 0;
	n = strtoul(program + len + 1, &end, 10);
	return *end || end == program + len + 1 || n > 1000000 ? 0 : (unsigned int)n;
}

static int choose_programs(struct group *g, const char *family)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, g->obj)
	{
		const char *name = bpf_program__name(prog);
		unsigned int n = steps_of(name, family);

		/* What others are tail-called by name belongs to each family of the object. */
		bpf_program__set_autoload(prog,
					  n || !strcmp(name, "stage") || is_beyond(name, family));
		if (is_beyond(name, family))
			g->beyond = prog;
		if (!n)
			continue;
		if (g->found == KNOWN_SIZES)
			return -E2BIG;
		g->p[g->found++] = (struct program){
			.prog = prog,
			.n = n,
			.fd = -1,
			.repeats = bpf_program__type(prog) == BPF_PROG_TYPE_SCHED_CLS ||
				   bpf_program__type(prog) == BPF_PROG_TYPE_XDP,
			.syscall = bpf_program__type(prog) == BPF_PROG_TYPE_SYSCALL,
		};
		bpf_program__set_log_buf(prog, g->log, sizeof(g->log));
	}
	if (g->found != KNOWN_SIZES || g->p[1].n != 2 * g->p[0].n || g->p[2].n != 3 * g->p[0].n)
		return -ENOENT;
	return 0;
}

/* What a kernel has against a program: the last line of the verifier that says something. */
static void last_words(const char *log, char *out, size_t size)
{
	const char *line = log, *said = "";
	size_t len, said_len = 0;

	for (; *line; line += len + (line[len] == '\n')) {
		len = strcspn(line, "\n");
		if (len && strncmp(line, "processed ", 10) &&
		    strncmp(line, "verification time", 17) && strncmp(line, "stack depth", 11)) {
			said = line;
			said_len = len;
		}
	}
	snprintf(out, size, "%.*s", (int)said_len, said);
}

static int fill_map(struct group *g, struct bpf_map *map)
{
	static const char zeros[8 * 1024];
	int fd = bpf_map__fd(map), stage;
	struct bpf_program *prog;
	__u32 key = 1;
	void *page;

	switch (bpf_map__type(map)) {
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_PERCPU_HASH:
		if (libbpf_num_possible_cpus() * 8 > (int)sizeof(zeros))
			return -E2BIG;
		return bpf_map_update_elem(fd, &key, zeros, BPF_ANY) ? -errno : 0;
	case BPF_MAP_TYPE_PROG_ARRAY:
		key = 0;
		prog = bpf_object__find_program_by_name(g->obj, "stage");
		stage = prog ? bpf_program__fd(prog) : -1;
		return bpf_map_update_elem(fd, &key, &stage, BPF_ANY) ? -errno : 0;
	case BPF_MAP_TYPE_RINGBUF:
		page = mmap(NULL, (size_t)g->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (page == MAP_FAILED)
			return -errno;
		g->consumed = page;
		page = mmap(NULL, (size_t)g->page, PROT_READ, MAP_SHARED, fd, g->page);
		if (page == MAP_FAILED)
			return -errno;
		g->produced = page;
		return 0;
	default:
		return 0;
	}
}

static int load(struct group *g, const char *dir, struct known_result *r, struct errmsg *err)
{
	const char *family = r->family->name;
	char path[4200], words[256], text[128];
	struct bpf_map *map;
	int rc;

	snprintf(path, sizeof(path), "%s/%s.bpf.o", dir, r->family->object);
	g->page = sysconf(_SC_PAGESIZE);
	g->obj = bpf_object__open_file(path, NULL);
	if (!g->obj)
		return errmsg__fail(err, -errno, "%s: %s", path, strerror(errno));
	rc = choose_programs(g, family);
	if (rc)
		return errmsg__fail(err, rc, "%s: not three programs %s_N, %s_2N, %s_3N", path,
				    family, family, family);
	r->n = g->p[0].n;
	rc = bpf_object__load(g->obj);
	if (rc) {
		last_words(g->log, words, sizeof(words));
		errmsg__errno(rc, text, sizeof(text));
		if (!r->family->needs || rc == -EPERM)
			return errmsg__fail(err, rc, "this kernel refuses the program: %s%s%s",
					    text, words[0] ? ": " : "", words);
		snprintf(r->skip, sizeof(r->skip), "needs %s: %s%s%s", r->family->needs, text,
			 words[0] ? ": " : "", words);
		return 0;
	}
	for (size_t i = 0; i < KNOWN_SIZES; i++)
		g->p[i].fd = bpf_program__fd(g->p[i].prog);
	bpf_object__for_each_map(map, g->obj)
	{
		rc = fill_map(g, map);
		if (rc)
			return errmsg__fail(err, rc, "%s: map %s: %s", path, bpf_map__name(map),
					    errmsg__errno(rc, text, sizeof(text)));
	}
	return 0;
}

static void unload(struct group *g)
{
	if (g->consumed)
		munmap(g->consumed, (size_t)g->page);
	if (g->produced)
		munmap((void *)g->produced, (size_t)g->page);
	bpf_object__close(g->obj);
}

/* ---- runs ---- */

static double clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Types that do not take a number of runs are run one by one, and timed around the system call:
 * the shortest. */
static int run_singly(const struct program *p, unsigned int runs, double *ns)
{
	static const char data[512];
	__u64 ctx = (uintptr_t)data;
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (p->syscall) {
		opts.ctx_in = &ctx;
		opts.ctx_size_in = sizeof(ctx);
	}
	*ns = INFINITY;
	while (runs--) {
		double began = clock_ns();

		if (bpf_prog_test_run_opts(p->fd, &opts))
			return -errno;
		*ns = fmin(*ns, clock_ns() - began);
	}
	return 0;
}

/* Runs a program in a row; *@ns is what the kernel says that a run took. */
static int burst(struct group *g, const struct program *p, double *ns)
{
	unsigned char packet[64] = {[12] = 0x08, [14] = 0x45, [17] = 50, [22] = 64, [23] = 17};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = g->runs, );

	if (g->consumed)
		*g->consumed = *g->produced;
	if (!p->repeats)
		return run_singly(p, g->runs, ns);
	if (bpf_prog_test_run_opts(p->fd, &opts))
		return -errno;
	if (opts.retval)
		return -EPROTO;
	*ns = opts.duration;
	return 0;
}

static void keep_least(struct known_result *r, enum known_method m, size_t i, double cost)
{
	if (!r->has[m] || cost < r->cost[m][i] || isnan(r->cost[m][i]))
		r->cost[m][i] = cost;
}

/* How many runs a burst has, by the longest program, once it is warm. */
static int set_runs(const struct known *k, struct group *g)
{
	bool few = k->exact || k->emulated;
	unsigned int most = few ? MOST_RUNS_EXACT : MOST_RUNS;
	double ns, room = few ? BURST_NS : BURST_NS_NOISY;

	g->runs = 2;
	for (size_t i = 0; i < KNOWN_SIZES; i++) {
		int rc = burst(g, &g->p[i], &ns) ?: burst(g, &g->p[i], &ns);

		if (rc)
			return rc;
	}
	g->runs = ns * most < room ? most : (unsigned int)(room / ns);
	if (!g->p[0].repeats && g->runs < LEAST_CALLS)
		g->runs = LEAST_CALLS;
	if (!g->runs)
		g->runs = 1;
	return 0;
}

/* Programs take turns, so that drift hits all alike, and each burst in another order, so that a
 * timer does not always hit the same. */
static size_t next(unsigned int burst_no, size_t turn)
{
	return (burst_no + turn) % KNOWN_SIZES;
}

/* In exact time all that a burst does takes as long each time, so that a timer that has hit one may
 * hit all of them: sleep until it is out of step. */
static void fall_out_of_step(const struct known *k, unsigned int burst_no, size_t turn)
{
	const struct timespec t = {.tv_nsec = (burst_no * 611 + (long)turn * 233) % 1000 * 1000};

	if (k->exact)
		nanosleep(&t, NULL);
}

/* ---- the three ways ---- */

static int by_run_time(const struct known *k, struct group *g, struct known_result *r,
		       unsigned int bursts, struct errmsg *err)
{
	struct stats_switch stats = {};
	double ns;
	int rc;

	rc = stats_switch__open(&stats, err);
	if (rc)
		return rc;
	for (unsigned int b = 0; !rc && b < bursts; b++) {
		for (size_t turn = 0; !rc && turn < KNOWN_SIZES; turn++) {
			size_t i = next(b, turn);
			struct bstats before, after;

			fall_out_of_step(k, b, turn);
			rc = bstats_info(g->p[i].fd, &before) ?: burst(g, &g->p[i], &ns) ?:
			     bstats_info(g->p[i].fd, &after);
			if (!rc && after.run_cnt - before.run_cnt != g->runs)
				rc = -EPROTO;
			if (!rc)
				keep_least(r, KNOWN_RUN_TIME, i,
					   (double)(after.run_time_ns - before.run_time_ns) /
						   g->runs);
		}
	}
	stats_switch__close(&stats);
	r->has[KNOWN_RUN_TIME] = !rc;
	return rc ? errmsg__fail(err, rc, "by run_time_ns: %s", strerror(-rc)) : 0;
}

static int by_test_run(const struct known *k, struct group *g, struct known_result *r,
		       unsigned int bursts, struct errmsg *err)
{
	double ns;
	int rc = 0;

	for (unsigned int b = 0; !rc && b < bursts; b++) {
		for (size_t turn = 0; !rc && turn < KNOWN_SIZES; turn++) {
			size_t i = next(b, turn);

			fall_out_of_step(k, b, turn);
			rc = burst(g, &g->p[i], &ns);
			if (!rc)
				keep_least(r, KNOWN_TEST_RUN, i, ns);
		}
	}
	r->has[KNOWN_TEST_RUN] = !rc;
	return rc ? errmsg__fail(err, rc, "by BPF_PROG_TEST_RUN: %s", strerror(-rc)) : 0;
}

static enum known_method method_of(const struct metric *m)
{
	for (int i = KNOWN_NS; i < KNOWN_METHODS; i++)
		if (!strcmp(m->name, known_method_name[i]))
			return i;
	return KNOWN_METHODS;
}

static int profile_burst(const struct known *k, struct group *g, struct known_result *r, size_t i)
{
	const struct session *s = &k->engine.session;
	struct program *p = &g->p[i];
	struct lab_target *t = &p->target;
	double ns;
	int rc;

	rc = lab_target__begin(t) ?: burst(g, p, &ns) ?: lab_target__end(t);
	if (rc)
		return rc;
	if (t->window.run_cnt != g->runs)
		return -EPROTO;
	/* Switched out: not a run to learn from. */
	if (t->window.measured != g->runs)
		return 0;
	for (size_t m = 0; m < t->window.n_metrics; m++) {
		enum known_method method = method_of(s->order[m]);

		if (method != KNOWN_METHODS)
			keep_least(r, method, i, t->window.metric[m].net / g->runs);
	}
	return 0;
}

static int by_profile(struct known *k, struct group *g, struct known_result *r, unsigned int bursts,
		      struct errmsg *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < KNOWN_SIZES; i++)
		rc = lab_target__open(&g->p[i].target, &k->engine, g->p[i].fd);
	for (unsigned int b = 0; !rc && b < bursts; b++)
		for (size_t turn = 0; !rc && turn < KNOWN_SIZES; turn++) {
			fall_out_of_step(k, b, turn);
			rc = profile_burst(k, g, r, next(b, turn));
		}
	for (size_t i = 0; i < KNOWN_SIZES; i++)
		lab_target__close(&g->p[i].target);
	for (int m = KNOWN_NS; !rc && m < KNOWN_METHODS; m++)
		r->has[m] = !isnan(r->cost[m][0] + r->cost[m][1] + r->cost[m][2]);
	return rc ? errmsg__fail(err, rc, "by the profiler: %s", strerror(-rc)) : 0;
}

static int measure(struct known *k, struct group *g, struct known_result *r, struct errmsg *err)
{
	unsigned int bursts = k->exact || k->emulated ? BURSTS_EXACT : BURSTS_NOISY;
	int rc;

	for (int m = 0; m < KNOWN_METHODS; m++)
		for (size_t i = 0; i < KNOWN_SIZES; i++)
			r->cost[m][i] = NAN;
	rc = set_runs(k, g);
	if (rc)
		return errmsg__fail(err, rc, "cannot run the program: %s", strerror(-rc));
	rc = by_run_time(k, g, r, bursts, err) ?: by_test_run(k, g, r, bursts, err);
	if (!rc && k->profiles)
		rc = by_profile(k, g, r, bursts, err);
	return rc;
}

/* That a limit is the kernel's own is seen from both sides: the longest program of a family runs to
 * its end, and returns 0, as all do; one that wants more is cut short, and returns 1. */
static int run_beyond(const struct group *g, struct known_result *r, struct errmsg *err)
{
	unsigned char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet), );

	if (!g->beyond)
		return 0;
	if (bpf_prog_test_run_opts(bpf_program__fd(g->beyond), &opts))
		return errmsg__fail(err, -errno, "cannot run the program that wants too much: %s",
				    strerror(errno));
	r->has_limit = true;
	r->limited = opts.retval == 1;
	return 0;
}

static int read_images(const struct group *g, struct known_result *r)
{
	struct bpf_program *stage;

	r->has_image = true;
	for (size_t i = 0; i < KNOWN_SIZES; i++)
		r->has_image = r->has_image && !image__read(&r->image[i], g->p[i].fd);
	if (r->family->rule != KNOWN_TAIL || !r->has_image)
		return 0;
	stage = bpf_object__find_program_by_name(g->obj, "stage");
	return stage ? image__read(&r->stage, bpf_program__fd(stage)) : -ENOENT;
}

static void no_tell(const char *fmt, ...)
{
	(void)fmt;
}

int known__measure(struct known *k, const struct known_family *family, struct known_result *r,
		   struct errmsg *err)
{
	struct group *g = calloc(1, sizeof(*g));
	int rc;

	memset(r, 0, sizeof(*r));
	r->family = family;
	if (!g)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	rc = load(g, k->objects, r, err);
	if (rc || r->skip[0])
		goto cleanup;
	rc = read_images(g, r);
	if (rc) {
		errmsg__fail(err, rc, "cannot read the program's image: %s", strerror(-rc));
		goto cleanup;
	}
	rc = run_beyond(g, r, err);
	if (rc)
		goto cleanup;
	for (unsigned int tries = k->exact ? TRIES_EXACT : TRIES_NOISY; tries; tries--) {
		memset(r->has, 0, sizeof(r->has));
		rc = measure(k, g, r, err);
		if (rc || !known__check(k, r, no_tell))
			break;
	}
cleanup:
	unload(g);
	free(g);
	return rc;
}

/* ---- what it means ---- */

double known__step(const struct known_result *r, enum known_method m)
{
	return (r->cost[m][1] - r->cost[m][0]) / r->n;
}

unsigned int known__address(const struct known_result *r)
{
	return r->stage.tail_address;
}

double known__result(const struct known *k, const struct known_result *r, enum known_method m)
{
	double step = known__step(r, m) - known__address(r);

	if (k->exact && fabs(step - round(step)) * r->n <= 2 * known__rounding())
		return round(step);
	return round(step * 100) / 100;
}

double known__image_bytes(const struct known_result *r)
{
	return ((double)r->image[1].bytes - (double)r->image[0].bytes) / r->n;
}

double known__image_insns(const struct known_result *r)
{
	return ((double)r->image[1].insns - (double)r->image[0].insns) / r->n;
}

double known__image_calls(const struct known_result *r)
{
	return ((double)r->image[1].calls - (double)r->image[0].calls) / r->n;
}

static double image_branches(const struct known_result *r)
{
	return ((double)r->image[1].branches - (double)r->image[0].branches) / r->n;
}

/* A helper without a call, whose branches, if it has any, are known. */
static bool is_inlined(const struct known_result *r)
{
	return r->family->rule == KNOWN_HELPER && r->image[0].decoded && !known__image_calls(r) &&
	       (!image_branches(r) || r->family->skipped);
}

/* The function that the steps are: the first subprogram, or of a chain one between the ends. */
static unsigned int callee(const struct known_result *r)
{
	size_t last = r->image[1].n_funcs - 1;
	unsigned int words = 0;

	for (size_t f = 1; f <= last; f++)
		if (r->image[1].to_return[f] > words)
			words = r->image[1].to_return[f];
	return words;
}

/* Does the loop call what is not a function of the program? */
static bool calls_kernel(const struct known_result *r)
{
	return r->image[0].loop_calls > (r->image[0].n_funcs > 1 ? 1 : 0);
}

bool known__expected(const struct known_result *r, double *insns)
{
	bool decoded = r->has_image && r->image[0].decoded;

	switch (r->family->rule) {
	case KNOWN_STRAIGHT:
		if (!decoded)
			break;
		*insns = known__image_insns(r) - r->family->skipped;
		return true;
	case KNOWN_CALL:
		*insns = known__image_insns(r) + callee(r);
		return decoded && !r->image[1].thunks;
	case KNOWN_DEEP:
		*insns = callee(r);
		return decoded && !r->image[1].thunks;
	case KNOWN_HELPER:
		*insns = known__image_insns(r);
		if (image_branches(r))
			*insns -= r->family->skipped;
		return decoded && is_inlined(r);
	case KNOWN_LOOP:
		if (!decoded || !r->image[0].loop)
			break;
		*insns = r->image[0].loop + (r->image[0].loop_calls ? callee(r) : 0);
		return !calls_kernel(r) && !(r->image[0].loop_calls && r->image[1].thunks);
	case KNOWN_TAIL:
		*insns = r->stage.tail_call;
		return r->stage.tail_call > 0;
	default:
		break;
	}
	*insns = r->family->insns[ARCH];
	return *insns > 0;
}

double known__rounding(void)
{
	return ARCH == KNOWN_AMD64 ? 2.0 : 1e-6;
}

/* Noise is told from cost by the longest distance, 2N steps. */
static unsigned int check_noisy(const struct known_result *r, void (*tell)(const char *fmt, ...))
{
	double low = INFINITY, high = -INFINITY;

	for (int m = 0; m < KNOWN_METHODS; m++) {
		double steps = r->cost[m][2] - r->cost[m][0];

		/* Only what has one unit can be compared. */
		if (!r->has[m] || m > KNOWN_NS)
			continue;
		low = fmin(low, steps);
		high = fmax(high, steps);
	}
	if (high > 0 && high <= NOISY_FACTOR * fmax(low, 0) + NOISY_NS)
		return 0;
	tell("%u steps take %g to %g ns, depending on how it is measured; more than 0 is expected "
	     "anywhere, and at most %g times as much and %g ns",
	     2 * r->n, low, high, NOISY_FACTOR, NOISY_NS);
	return 1;
}

/* Emulated time without exactness has noise of milliseconds in any difference. */
static unsigned int check_positive(const struct known_result *r, void (*tell)(const char *fmt, ...))
{
	unsigned int bad = 0;

	for (size_t i = 0; i < KNOWN_SIZES; i++) {
		if (r->cost[KNOWN_RUN_TIME][i] > 0 && r->cost[KNOWN_TEST_RUN][i] > 0)
			continue;
		tell("a run costs %g ns by run_time_ns, %g by BPF_PROG_TEST_RUN",
		     r->cost[KNOWN_RUN_TIME][i], r->cost[KNOWN_TEST_RUN][i]);
		bad++;
	}
	return bad;
}

static unsigned int check_image(const struct known_result *r, void (*tell)(const char *fmt, ...))
{
	const struct known_family *f = r->family;
	double steps[2];
	unsigned int bad = 0;

	if (!r->has_image)
		return 0;
	if (!r->image[0].decoded) {
		tell("the image has an instruction that is not known");
		return 1;
	}
	for (size_t i = 0; i < 2; i++)
		steps[i] = (double)r->image[i + 1].insns - (double)r->image[i].insns;
	if (steps[0] != steps[1]) {
		tell("the image grows by %g instructions, then by %g", steps[0], steps[1]);
		bad++;
	}
	if (f->rule == KNOWN_STRAIGHT &&
	    (known__image_calls(r) || image_branches(r) != f->branches)) {
		tell("the image of a step has %g calls and %g branches; expected were 0 and %u",
		     known__image_calls(r), image_branches(r), f->branches);
		bad++;
	}
	if (f->rule == KNOWN_STRAIGHT && f->insns[ARCH] &&
	    known__image_insns(r) - f->skipped != f->insns[ARCH]) {
		tell("the image of a step has %g instructions; %u less than those are run, and %u "
		     "is what a step should take",
		     known__image_insns(r), f->skipped, f->insns[ARCH]);
		bad++;
	}
	if ((f->rule == KNOWN_CALL || f->rule == KNOWN_DEEP ||
	     (f->rule == KNOWN_LOOP && r->image[1].n_funcs > 1)) &&
	    !r->image[1].thunks && !callee(r)) {
		tell("the functions that are called are not straight");
		bad++;
	}
	if (f->rule == KNOWN_LOOP && f->insns[ARCH] && r->image[0].loop != f->insns[ARCH]) {
		tell("the image's loop has %u instructions, and %u is what a step should take",
		     r->image[0].loop, f->insns[ARCH]);
		bad++;
	}
	if (f->rule == KNOWN_TAIL && !r->stage.tail_call) {
		tell("the image has no tail call");
		bad++;
	}
	return bad;
}

/* Whatever time is like: a program that wants more than the kernel's limit does not get it. */
static unsigned int check_limit(const struct known_result *r, void (*tell)(const char *fmt, ...))
{
	if (!r->has_limit || r->limited)
		return 0;
	tell("a program that wants more than the kernel's limit was not cut short");
	return 1;
}

unsigned int known__check(const struct known *k, const struct known_result *r,
			  void (*tell)(const char *fmt, ...))
{
	double slack = known__rounding(), expected = 0;
	bool known = known__expected(r, &expected);
	unsigned int bad = check_limit(r, tell);

	if (k->emulated)
		return bad + check_positive(r, tell);
	if (!k->exact)
		return bad + check_noisy(r, tell);
	bad += check_image(r, tell);
	for (int m = 0; m < KNOWN_METHODS; m++) {
		double first, second, step = known__step(r, m);
		const char *name = known_method_name[m];

		if (!r->has[m])
			continue;
		first = r->cost[m][1] - r->cost[m][0];
		second = r->cost[m][2] - r->cost[m][1];
		if (fabs(first - second) > 2 * slack) {
			tell("%s: %u steps cost %.12g, as many again %.12g", name, r->n, first,
			     second);
			bad++;
		}
		if (fabs(step - known__step(r, KNOWN_RUN_TIME)) * r->n > 2 * slack) {
			tell("a step costs %.12g by %s, %.12g by %s", step, name,
			     known__step(r, KNOWN_RUN_TIME), known_method_name[KNOWN_RUN_TIME]);
			bad++;
		}
		if (known && fabs(step - expected) * r->n > slack) {
			tell("a step costs %.12g by %s, %.12g by rule", step, name, expected);
			bad++;
		}
		if (step <= 0) {
			tell("a step costs %.12g by %s", step, name);
			bad++;
		}
		if (r->family->rule == KNOWN_LOOP && r->image[0].loop && !known &&
		    step <= r->image[0].loop) {
			tell("a step costs %.12g by %s; its loop has %u instructions, and calls",
			     step, name, r->image[0].loop);
			bad++;
		}
		/* A helper that is called takes more than the call; one with branches no more than
		 * all of them. */
		if (r->family->rule == KNOWN_HELPER && r->image[0].decoded && !known &&
		    (known__image_calls(r) > 0) != (step > known__image_insns(r))) {
			tell("a step costs %.12g by %s; its image has %g instructions and %g calls",
			     step, name, known__image_insns(r), known__image_calls(r));
			bad++;
		}
	}
	return bad;
}
