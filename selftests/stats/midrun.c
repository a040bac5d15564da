// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The switch changes in the middle of a run. A program that BPF_PROG_TEST_RUN (or a hook without a
 * trampoline) runs looks at the switch once, at its start; one on a trampoline looks at its start
 * and at its end. What makes the middle last is a page that the program reads and that userfaultfd
 * delivers when the test likes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/userfaultfd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "btest.h"

#define ASLEEP_MS 30

/* How the program is run. */
struct path {
	unsigned int type, attach_type;
	const char *func; /* what it is attached to; NULL: nothing */
	bool test_run;	  /* by BPF_PROG_TEST_RUN; else by getpeername(2) */
	bool looks_twice;
};

static const struct path by_run = {
	.type = BPF_PROG_TYPE_SYSCALL, .test_run = true,
};
static const struct path by_fentry = {
	.type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_FENTRY, .func = "bpf_fentry_test1",
	.test_run = true, .looks_twice = true,
};
static const struct path by_fexit = {
	.type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_FEXIT, .func = "bpf_fentry_test1",
	.test_run = true, .looks_twice = true,
};
/* A hook that nobody else is likely to come along. */
static const struct path by_lsm = {
	.type = BPF_PROG_TYPE_LSM, .attach_type = BPF_LSM_MAC,
	.func = "bpf_lsm_socket_getpeername", .looks_twice = true,
};

/* What the switch is at the start of the run, and what happens to it in the middle. */
struct course {
	const char *what;
	bool before;
	const char *middle; /* '1' on, '0' off */
	int once, twice;    /* runs counted where the switch is looked at once, and twice */
};

static const struct course courses[] = {
	{ "on all the time", true, "", 1, 1 },
	{ "off all the time", false, "", 0, 0 },
	{ "off, and on in the middle", false, "1", 0, 0 },
	{ "on, and off in the middle", true, "0", 1, 0 },
	{ "on, and off and on in the middle", true, "01", 1, 1 },
	{ "off, and on and off in the middle", false, "10", 0, 0 },
};

struct run {
	struct btest *t;
	const struct path *p;
	int program, link, sock, uffd;
	char *page;
	long rc;
};

static void *run_it(void *arg)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	struct run *r = arg;

	if (r->p->test_run) {
		r->rc = bpf_prog_test_run_opts(r->program, &opts) ? -errno : 0;
	} else {
		struct sockaddr_storage addr;
		socklen_t len = sizeof(addr);

		r->rc = getpeername(r->sock, (struct sockaddr *)&addr, &len) ? -errno : 0;
	}
	return NULL;
}

static void open_uffd(struct run *r)
{
	struct uffdio_api api = {.api = UFFD_API};
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	r->uffd = (int)syscall(__NR_userfaultfd, O_CLOEXEC);
	need(r->t, r->uffd, "userfaultfd");
	need(r->t, ioctl(r->uffd, UFFDIO_API, &api), "UFFDIO_API");
	r->page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->page == MAP_FAILED)
		btest_broken(r->t, errno, "mmap");
	reg.range.start = (uintptr_t)r->page;
	reg.range.len = size;
	need(r->t, ioctl(r->uffd, UFFDIO_REGISTER, &reg), "UFFDIO_REGISTER");
}

/* Somebody waits for the page now: the program is in the middle of its run. */
static void wait_for_middle(struct run *r)
{
	struct pollfd pfd = {.fd = r->uffd, .events = POLLIN};
	struct uffd_msg msg;

	if (poll(&pfd, 1, 10000) != 1)
		btest_broken(r->t, ETIMEDOUT, "waiting for the program to read the page");
	need(r->t, read(r->uffd, &msg, sizeof(msg)), "reading from userfaultfd");
}

static void let_go(struct run *r)
{
	struct uffdio_zeropage zero = {
		.range = {
			.start = (uintptr_t)r->page,
			.len = (size_t)sysconf(_SC_PAGESIZE),
		},
	};

	need(r->t, ioctl(r->uffd, UFFDIO_ZEROPAGE, &zero), "UFFDIO_ZEROPAGE");
}

/* The page is gone again: the next run will wait, too. */
static void take_back(struct run *r)
{
	need(r->t, madvise(r->page, (size_t)sysconf(_SC_PAGESIZE), MADV_DONTNEED), "madvise");
}

static void load(struct run *r)
{
	const struct path *p = r->p;
	const struct bpf_insn code[] = {
		I_MOVR(R1, R10), I_ADD(R1, -8), I_MOV(R2, 8), I_LD64(R3, (uintptr_t)r->page),
		I_CALL(BPF_FUNC_copy_from_user), I_MOV(R0, 0), I_EXIT(),
	};
	int id = p->func ? bstats_btf_id(p->func, BTF_KIND_FUNC) : 0;
	const struct bstats_load l = {
		.type = p->type,
		.attach_type = p->attach_type,
		.attach_btf_id = (unsigned int)id,
		.flags = BPF_F_SLEEPABLE,
		.name = "midrun",
	};

	if (id < 0)
		btest_skip(r->t, "needs %s in the kernel's BTF: %s", p->func, strerror(-id));
	r->program = bstats_load(&l, code, INSN_COUNT(code));
	if (r->program == -EINVAL)
		btest_skip(r->t, "needs sleepable programs on %s, which this kernel refuses",
			   p->func ? p->func : "bpf(2)");
	need(r->t, r->program, "loading the program");
	if (!p->func)
		return;
	r->link = bpf_raw_tracepoint_open(NULL, r->program);
	if (r->link < 0)
		btest_skip(r->t, "needs to attach to %s: %s", p->func, strerror(errno));
}

/* The two ways to switch; each is a holder. */
static void turn(struct run *r, bool on, bool by_sysctl, int *fd)
{
	if (by_sysctl) {
		must_set(r->t, on);
	} else if (on) {
		*fd = must_open(r->t);
	} else if (*fd >= 0) {
		close(*fd);
		*fd = -1;
	}
}

static void follow(struct run *r, const struct course *c, bool by_sysctl)
{
	int expected = r->p->looks_twice ? c->twice : c->once, fd = -1, rc;
	struct bstats before, middle, after;
	const char *how = by_sysctl ? "the sysctl" : "an fd";
	long long began;
	pthread_t id;

	turn(r, c->before, by_sysctl, &fd);
	before = must_info(r->t, r->program);
	rc = pthread_create(&id, NULL, run_it, r);
	need(r->t, -rc, "pthread_create");
	wait_for_middle(r);
	began = now_ns();
	middle = must_info(r->t, r->program);
	expect_eq(r->t, 0, (long long)(middle.run_cnt - before.run_cnt),
		  "runs counted before the end of the first, switch %s by %s", c->what, how);
	for (const char *p = c->middle; *p; p++)
		turn(r, *p == '1', by_sysctl, &fd);
	sleep_ms(ASLEEP_MS);
	began = now_ns() - began;
	let_go(r);
	pthread_join(id, NULL);
	need(r->t, r->rc, r->p->test_run ? "BPF_PROG_TEST_RUN" : "getpeername");
	after = must_info(r->t, r->program);
	turn(r, false, by_sysctl, &fd);
	expect_eq(r->t, expected, (long long)(after.run_cnt - before.run_cnt),
		  "runs counted of one, switch %s by %s", c->what, how);
	if (!expected)
		expect_eq(r->t, 0, (long long)(after.run_time_ns - before.run_time_ns),
			  "ns counted of a run that is not, switch %s by %s", c->what, how);
	else if (after.run_time_ns - before.run_time_ns < (unsigned long long)began * 9 / 10)
		btest_failed(r->t, "the time that a program sleeps in run_time_ns",
			     "%llu ns, asleep for %lld ns at least, switch %s by %s",
			     after.run_time_ns - before.run_time_ns, began, c->what, how);
	take_back(r);
}

static void in_the_middle(struct btest *t)
{
	struct run r = {.t = t, .p = t->tc->data, .program = -1, .link = -1, .sock = -1};
	int socks[2];

	open_uffd(&r);
	load(&r);
	if (!r.p->test_run) {
		need(t, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), "socketpair");
		r.sock = socks[0];
	}
	for (size_t i = 0; i < ARRAY_SIZE(courses); i++) {
		follow(&r, &courses[i], false);
		follow(&r, &courses[i], true);
	}
	expect_off(t, "at the end");
}

/* Two runs of one program, of which the second begins and ends inside the first: each counts by
 * itself, the long one with its whole time. */
static void overlapping(struct btest *t)
{
	struct run r = {.t = t, .p = t->tc->data, .program = -1, .link = -1, .sock = -1};
	struct run other;
	struct bstats before, after;
	pthread_t first, second;
	int fd;

	open_uffd(&r);
	load(&r);
	other = r;
	fd = must_open(t);
	before = must_info(t, r.program);
	need(t, -pthread_create(&first, NULL, run_it, &r), "pthread_create");
	wait_for_middle(&r);
	need(t, -pthread_create(&second, NULL, run_it, &other), "pthread_create");
	wait_for_middle(&r);
	close(fd);
	fd = must_open(t);
	sleep_ms(ASLEEP_MS);
	let_go(&r);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	need(t, r.rc, "BPF_PROG_TEST_RUN");
	need(t, other.rc, "BPF_PROG_TEST_RUN");
	after = must_info(t, r.program);
	expect_eq(t, 2, (long long)(after.run_cnt - before.run_cnt), "runs counted of two at once");
	if (after.run_time_ns - before.run_time_ns < 2ULL * ASLEEP_MS * 1000000 * 9 / 10)
		btest_failed(t, "the time of both runs, though they were at once",
			     "%llu ns for twice %d ms", after.run_time_ns - before.run_time_ns,
			     ASLEEP_MS);
	close(fd);
}

static const char once[] =
	"whether a run is counted is decided at its start, outside of trampolines; "
	"its time includes the time asleep";
static const char twice[] =
	"on a trampoline a run is counted if the switch is on at its start and at "
	"its end; its time includes the time asleep";

#define SLEEPS (BH_USERFAULTFD | BH_SLEEPABLE_COUNTED)

static const struct btest_case cases[] = {
	{ .name = "run", .rule = once, .run = in_the_middle, .data = &by_run,
	  .needs = BH_USERFAULTFD | BH_SYSCALL_PROG, .tags = "sleepable" },
	{ .name = "fentry", .rule = twice, .run = in_the_middle, .data = &by_fentry,
	  .needs = SLEEPS | BH_SLEEPABLE_FENTRY, .tags = "sleepable,trampoline" },
	{ .name = "fexit", .rule = twice, .run = in_the_middle, .data = &by_fexit,
	  .needs = SLEEPS | BH_SLEEPABLE_FENTRY, .tags = "sleepable,trampoline" },
	{ .name = "lsm", .rule = twice, .run = in_the_middle, .data = &by_lsm,
	  .needs = SLEEPS | BH_LSM, .tags = "sleepable,trampoline" },
	{ .name = "overlapping", .rule = "runs of one program at once are counted each for itself",
	  .run = overlapping, .data = &by_run, .needs = BH_USERFAULTFD | BH_SYSCALL_PROG,
	  .tags = "sleepable" },
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
