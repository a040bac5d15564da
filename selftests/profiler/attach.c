// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The exit program is there before the entry program, and after it: no run is half measured. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "counted.h"
#include "counted.skel.h"
#include "lab.h"

#define ROUNDS 5

/* Ids of links grow: what was attached first has the smaller one. 0: it is not attached. */
struct attached {
	__u32 entry, exit;
};

static int find_attached(struct attached *a)
{
	struct bpf_prog_info prog;
	struct bpf_link_info link;
	__u32 id = 0, len;
	int fd, rc = 0;

	memset(a, 0, sizeof(*a));
	while (!rc && !bpf_link_get_next_id(id, &id)) {
		fd = bpf_link_get_fd_by_id(id);
		if (fd < 0)
			return -errno;
		memset(&link, 0, sizeof(link));
		len = sizeof(link);
		rc = bpf_obj_get_info_by_fd(fd, &link, &len);
		close(fd);
		fd = rc ? -1 : bpf_prog_get_fd_by_id(link.prog_id);
		if (fd < 0)
			return -errno;
		memset(&prog, 0, sizeof(prog));
		len = sizeof(prog);
		rc = bpf_obj_get_info_by_fd(fd, &prog, &len);
		close(fd);
		if (!strcmp(prog.name, "bpfcost_entry"))
			a->entry = id;
		else if (!strcmp(prog.name, "bpfcost_exit"))
			a->exit = id;
	}
	return rc;
}

static const char *const words[] = {"ns", NULL};

static bool test_order(void)
{
	struct lab_engine e = {};
	struct lab_target t = {};
	struct counted_bpf *skel;
	struct attached a;
	bool ok = true;

	skel = counted_bpf__open_and_load();
	CHECK(skel);
	CHECK(!lab_engine__open(&e, words, 0));
	CHECK(!find_attached(&a) && !a.entry && !a.exit);
	CHECK(!lab_target__open(&t, &e, bpf_program__fd(skel->progs.counted)));
	CHECK(!find_attached(&a));
	CHECK(a.entry && a.exit);
	CHECK(a.exit < a.entry);
	profiler__detach_entry(t.profiler);
	CHECK(!find_attached(&a));
	CHECK(!a.entry && a.exit);
	lab_target__close(&t);
	CHECK(!find_attached(&a) && !a.entry && !a.exit);
cleanup:
	lab_target__close(&t);
	lab_engine__close(&e);
	counted_bpf__destroy(skel);
	return ok;
}

/* ---- while the program runs ---- */

struct runner {
	int fd, rc;
	atomic_bool stop;
};

/* With pauses: an emulated 6.1 on arm64 loads nothing while a CPU is never idle. */
static void *run_on_and_on(void *arg)
{
	const struct timespec pause = {.tv_nsec = 200 * 1000};
	struct runner *r = arg;

	while (!r->rc && !atomic_load(&r->stop)) {
		r->rc = lab_run(r->fd, 500);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Until the program has run @more times. */
static bool wait_for_runs(const struct counted_bpf *skel, uint64_t more)
{
	const struct timespec ms = {.tv_nsec = 1000 * 1000};
	uint64_t before = counted_runs(skel->bss->on_cpu);
	int i;

	for (i = 0; i < 30000 && counted_runs(skel->bss->on_cpu) < before + more; i++)
		nanosleep(&ms, NULL);
	return counted_runs(skel->bss->on_cpu) >= before + more;
}

static bool test_running(void)
{
	struct runner r = {};
	struct counted_bpf *skel;
	struct lab_engine e = {};
	struct lab_target t = {};
	bool started = false, ok = true;
	uint64_t before, runs;
	pthread_t thread;
	int i;

	skel = counted_bpf__open_and_load();
	CHECK(skel);
	r.fd = bpf_program__fd(skel->progs.counted);
	CHECK(!lab_engine__open(&e, words, 0));
	CHECK(!pthread_create(&thread, NULL, run_on_and_on, &r));
	started = true;
	for (i = 0; i < ROUNDS; i++) {
		CHECK(wait_for_runs(skel, 100));
		CHECK(!lab_target__open(&t, &e, r.fd));
		profiler__settle();
		CHECK(!lab_target__begin(&t));
		before = counted_runs(skel->bss->on_cpu);
		CHECK(wait_for_runs(skel, 2000));
		runs = counted_runs(skel->bss->on_cpu) - before;
		profiler__detach_entry(t.profiler);
		profiler__settle();
		CHECK(!lab_target__end(&t));
		CHECK(t.window.run_cnt >= runs);
		EQUAL(t.window.run_cnt, t.window.measured + t.window.switched);
		EQUAL(0, t.window.lost);
		runs = t.window.run_cnt;
		/* Nothing is counted any more, neither as a run nor as lost. */
		CHECK(wait_for_runs(skel, 1000));
		CHECK(!lab_target__end(&t));
		EQUAL(runs, t.window.run_cnt);
		EQUAL(0, t.window.lost);
		lab_target__close(&t);
	}
	EQUAL(0, r.rc);
cleanup:
	atomic_store(&r.stop, true);
	if (started)
		pthread_join(thread, NULL);
	lab_target__close(&t);
	lab_engine__close(&e);
	counted_bpf__destroy(skel);
	return ok;
}

static const struct lab_test tests[] = {
	{"exit first, then entry; entry is detached first", lab_nothing, test_order},
	{"attached and detached while the program runs", lab_two_cpus, test_running},
};

int main(void)
{
	return lab_main(tests, ARRAY_SIZE(tests));
}
