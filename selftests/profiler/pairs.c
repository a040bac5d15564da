// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An entry pairs with the exit of its own run: runs that are nested, and runs that are
 * interleaved.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "context.h"
#include "context.skel.h"
#include "lab.h"
#include "nest.skel.h"
#include "sleepy.skel.h"

#define BURSTS	   7
#define MAX_BURSTS 100

/* What there is to measure. */
static const char *const *words(void)
{
	static const char *const all[] = {"instructions", "ns", NULL};

	return lab_pmu() ? &all[1] : &all[0];
}

/* ---- a program that runs inside itself ---- */

struct nest {
	struct nest_bpf *skel;
	int fd;
	bool hooked;
	struct bpf_tc_hook hook;
};

/* A network name space of our own has a device that nobody else uses. */
static int nest__open(struct nest *n)
{
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	LIBBPF_OPTS(bpf_tc_opts, opts);
	int rc = 0, sock;

	memset(n, 0, sizeof(*n));
	n->skel = nest_bpf__open_and_load();
	if (!n->skel)
		return -errno;
	n->fd = bpf_program__fd(n->skel->progs.nest);
	if (unshare(CLONE_NEWNET))
		return -errno;
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (ioctl(sock, SIOCSIFFLAGS, &up))
		rc = -errno;
	close(sock);
	if (rc)
		return rc;
	n->hook = (struct bpf_tc_hook){
		.sz = sizeof(n->hook),
		.ifindex = if_nametoindex("lo"),
		.attach_point = BPF_TC_EGRESS,
	};
	n->skel->bss->ifindex = n->hook.ifindex;
	opts.prog_fd = n->fd;
	rc = bpf_tc_hook_create(&n->hook);
	if (rc)
		return rc;
	n->hooked = true;
	return bpf_tc_attach(&n->hook, &opts);
}

static void nest__close(struct nest *n)
{
	if (n->hooked) {
		n->hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
		bpf_tc_hook_destroy(&n->hook);
	}
	nest_bpf__destroy(n->skel);
}

static int nest__run(struct nest *n, unsigned int depth, unsigned int extra)
{
	n->skel->bss->deeper = depth - 1;
	n->skel->bss->extra = extra;
	return lab_run(n->fd, 1);
}

static const char *no_tc(void)
{
	static int rc = 1;
	struct nest n;

	if (rc > 0) {
		rc = nest__open(&n);
		nest__close(&n);
	}
	return rc ? "no clsact for network devices (the modules sch_ingress and cls_bpf)" : NULL;
}

/* One burst: what is counted, and the least values seen so far. */
static bool nested_once(struct nest *n, struct lab_target *t, unsigned int depth,
			unsigned int extra, double *least)
{
	unsigned int whole = depth < PROFILER_SLOTS ? depth : PROFILER_SLOTS;
	uint64_t before = n->skel->bss->runs;
	bool ok = true;
	size_t m;

	CHECK(!lab_target__begin(t) && !nest__run(n, depth, extra) && !lab_target__end(t));
	EQUAL(depth, n->skel->bss->runs - before);
	EQUAL(depth, t->window.run_cnt);
	EQUAL(whole, t->window.measured);
	EQUAL(0, t->window.switched);
	EQUAL(depth - whole, t->window.lost);
	EQUAL(depth - whole, t->window.lost_deep);
	for (m = 0; m < t->window.n_metrics; m++)
		least[m] = fmin(least[m], t->window.metric[m].value);
cleanup:
	return ok;
}

/*
 * The innermost run's 100 instructions are in each of the runs around it that was measured. Between
 * them the kernel clones a packet and sends it, which takes the longer way now and then (an empty
 * list of free objects, an interrupt): the shortest way is always the same.
 */
static bool nested(struct nest *n, struct lab_target *t, unsigned int depth)
{
	unsigned int whole = depth < PROFILER_SLOTS ? depth : PROFILER_SLOTS, b;
	double least[2][SESSION_MAX_METRICS];
	bool ok = true, settled = false, exact;
	size_t m;

	for (m = 0; m < SESSION_MAX_METRICS; m++)
		least[0][m] = least[1][m] = INFINITY;
	exact = !lab_exact();
	for (b = 0; b < MAX_BURSTS && !settled; b++) {
		CHECK(nested_once(n, t, depth, 0, least[0]));
		CHECK(nested_once(n, t, depth, 1, least[1]));
		settled = b + 1 >= BURSTS;
		for (m = 0; exact && m < t->window.n_metrics; m++)
			settled &= least[1][m] - least[0][m] == 100 * whole;
	}
	for (m = 0; exact && m < t->window.n_metrics; m++)
		EQUAL(100 * whole, least[1][m] - least[0][m]);
cleanup:
	if (!ok)
		ktap_note("%u runs inside each other", depth);
	return ok;
}

static bool test_nested(void)
{
	static const unsigned int depths[] = {1, 2, 3, 8, 9, 10, 1};
	struct lab_engine e = {};
	struct lab_target t = {};
	struct nest n;
	bool ok = true;
	size_t i;

	CHECK(!nest__open(&n));
	CHECK(!lab_engine__open(&e, words(), 0));
	CHECK(!lab_target__open(&t, &e, n.fd));
	for (i = 0; i < ARRAY_SIZE(depths); i++)
		ok &= nested(&n, &t, depths[i]);
cleanup:
	lab_target__close(&t);
	lab_engine__close(&e);
	nest__close(&n);
	return ok;
}

/* ---- a program that sleeps ---- */

#define MAX_SLEEPERS 11

struct sleeper {
	pthread_t thread;
	bool started;
	int rc;
	struct beds *beds;
	int page;
};

/* Pages that are not there until they are served. */
struct beds {
	struct sleepy_bpf *skel;
	int fd, uffd;
	char *mem;
	size_t page_size;
	struct sleeper sleeper[MAX_SLEEPERS];
};

static int run_sleepy(int fd, void *page)
{
	struct {
		__u64 page;
	} args = {.page = (unsigned long)page};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &args, .ctx_size_in = sizeof(args));

	return bpf_prog_test_run_opts(fd, &opts) ? -errno : 0;
}

static void *sleep_in(void *arg)
{
	struct sleeper *s = arg;

	s->rc = lab_pin(0) ?: run_sleepy(s->beds->fd, s->beds->mem + s->page * s->beds->page_size);
	return NULL;
}

static int beds__open(struct beds *b)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	memset(b, 0, sizeof(*b));
	b->uffd = -1;
	b->mem = MAP_FAILED;
	b->page_size = sysconf(_SC_PAGESIZE);
	b->skel = sleepy_bpf__open_and_load();
	if (!b->skel)
		return -errno;
	b->fd = bpf_program__fd(b->skel->progs.sleepy);
	b->uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (b->uffd < 0 || ioctl(b->uffd, UFFDIO_API, &api))
		return -errno;
	b->mem = mmap(NULL, MAX_SLEEPERS * b->page_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->mem == MAP_FAILED)
		return -errno;
	reg.range.start = (unsigned long)b->mem;
	reg.range.len = MAX_SLEEPERS * b->page_size;
	return ioctl(b->uffd, UFFDIO_REGISTER, &reg) ? -errno : lab_pin(0);
}

/* Returns when the program sleeps in page @i. */
static int beds__in(struct beds *b, int i)
{
	struct pollfd pfd = {.fd = b->uffd, .events = POLLIN};
	struct sleeper *s = &b->sleeper[i];
	struct uffd_msg msg;

	s->beds = b;
	s->page = i;
	if (pthread_create(&s->thread, NULL, sleep_in, s))
		return -EAGAIN;
	s->started = true;
	if (poll(&pfd, 1, 10000) != 1 || read(b->uffd, &msg, sizeof(msg)) != sizeof(msg))
		return -ETIMEDOUT;
	return msg.event == UFFD_EVENT_PAGEFAULT && msg.arg.pagefault.address / b->page_size ==
							    (unsigned long)b->mem / b->page_size + i
		       ? 0
		       : -EPROTO;
}

/* Serves the page and returns when the run has ended. */
static int beds__out(struct beds *b, int i)
{
	struct sleeper *s = &b->sleeper[i];
	struct uffdio_zeropage zero = {
		.range = {.start = (unsigned long)b->mem + i * b->page_size, .len = b->page_size}};

	if (!s->started)
		return 0;
	s->started = false;
	if (ioctl(b->uffd, UFFDIO_ZEROPAGE, &zero))
		return -errno;
	return pthread_join(s->thread, NULL) ? -EINVAL : s->rc;
}

static void beds__close(struct beds *b)
{
	int i;

	for (i = 0; i < MAX_SLEEPERS; i++)
		beds__out(b, i);
	if (b->uffd >= 0)
		close(b->uffd);
	if (b->mem != MAP_FAILED)
		munmap(b->mem, MAX_SLEEPERS * b->page_size);
	sleepy_bpf__destroy(b->skel);
	lab_pin_anywhere();
}

static const char *no_sleep(void)
{
	static int rc = 1;
	struct beds b;

	if (libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SYSCALL, NULL) != 1)
		return "no programs of type syscall (5.14)";
	if (rc > 0) {
		rc = beds__open(&b);
		beds__close(&b);
	}
	return rc ? "no userfaultfd" : NULL;
}

/* Whole runs while others sleep, on the same CPU: none of them shows it. @want: their values, or
 * where to put them (@learn). */
static bool beside(struct beds *b, struct lab_target *t, double *want, bool learn)
{
	double value[SESSION_MAX_METRICS][BURSTS];
	const int runs = 20;
	char here = 1;
	bool ok = true;
	size_t m;
	int k, i, tries;

	for (k = 0, tries = 0; k < BURSTS; k++) {
		CHECK(!lab_target__begin(t));
		for (i = 0; i < runs; i++)
			CHECK(!run_sleepy(b->fd, &here));
		CHECK(!lab_target__end(t));
		EQUAL(runs, t->window.run_cnt);
		EQUAL(runs, t->window.measured + t->window.switched);
		/* A sleepable program can be preempted, where the guest gets little of its host. */
		if (t->window.switched && tries++ < MAX_BURSTS) {
			k--;
			continue;
		}
		EQUAL(runs, t->window.measured);
		for (m = 0; m < t->window.n_metrics; m++)
			value[m][k] = t->window.metric[m].value;
	}
	for (m = 0; m < t->window.n_metrics; m++) {
		if (learn)
			want[m] = lab_median(value[m], BURSTS);
		else if (!lab_exact())
			EQUAL(want[m], lab_median(value[m], BURSTS));
	}
cleanup:
	return ok;
}

static bool test_asleep(void)
{
	double want[SESSION_MAX_METRICS];
	struct lab_engine e = {};
	struct lab_target t = {};
	struct beds b;
	bool ok = true;

	CHECK(!beds__open(&b));
	CHECK(!lab_engine__open(&e, words(), 0));
	CHECK(!lab_target__open(&t, &e, b.fd));
	CHECK(beside(&b, &t, want, true));
	CHECK(!beds__in(&b, 0));
	CHECK(beside(&b, &t, want, false));
	CHECK(!beds__in(&b, 1));
	CHECK(beside(&b, &t, want, false));
	/* In the order in which they fell asleep: not nested, but interleaved. */
	CHECK(!lab_target__begin(&t) && !beds__out(&b, 0) && !lab_target__end(&t));
	EQUAL(1, t.window.run_cnt);
	EQUAL(1, t.window.switched);
	EQUAL(0, t.window.metric[0].value);
	CHECK(beside(&b, &t, want, false));
	CHECK(!lab_target__begin(&t) && !beds__out(&b, 1) && !lab_target__end(&t));
	EQUAL(1, t.window.run_cnt);
	EQUAL(1, t.window.switched);
	CHECK(beside(&b, &t, want, false));
cleanup:
	beds__close(&b);
	lab_target__close(&t);
	lab_engine__close(&e);
	return ok;
}

static bool test_too_many_asleep(void)
{
	double want[SESSION_MAX_METRICS];
	struct lab_engine e = {};
	struct lab_target t = {};
	char here = 1;
	struct beds b;
	bool ok = true;
	int i;

	CHECK(!beds__open(&b));
	CHECK(!lab_engine__open(&e, words(), 0));
	CHECK(!lab_target__open(&t, &e, b.fd));
	CHECK(!lab_target__begin(&t));
	for (i = 0; i < MAX_SLEEPERS; i++)
		CHECK(!beds__in(&b, i));
	/* Under way, they are in no window yet; and no slot is left for another one. */
	CHECK(!lab_target__end(&t));
	EQUAL(0, t.window.run_cnt);
	CHECK(!run_sleepy(b.fd, &here) && !lab_target__end(&t));
	EQUAL(1, t.window.run_cnt);
	EQUAL(1, t.window.lost);
	EQUAL(1, t.window.lost_deep);
	for (i = MAX_SLEEPERS - 1; i >= 0; i--)
		CHECK(!beds__out(&b, i));
	CHECK(!lab_target__end(&t));
	EQUAL(MAX_SLEEPERS + 1, t.window.run_cnt);
	EQUAL(MAX_SLEEPERS + 1, b.skel->bss->runs);
	EQUAL(0, t.window.measured);
	EQUAL(PROFILER_SLOTS, t.window.switched);
	EQUAL(MAX_SLEEPERS + 1 - PROFILER_SLOTS, t.window.lost);
	EQUAL(MAX_SLEEPERS + 1 - PROFILER_SLOTS, t.window.lost_deep);
	/* All slots are free again. */
	CHECK(beside(&b, &t, want, true));
	for (i = 0; i < PROFILER_SLOTS; i++)
		EQUAL(0, t.to.cpu[0].in_flight);
cleanup:
	beds__close(&b);
	lab_target__close(&t);
	lab_engine__close(&e);
	return ok;
}

/* ---- the context pointer ---- */

struct context {
	struct context_bpf *skel;
	struct bpf_link *entry, *exit;
};

static int context__open(struct context *c, int fd, const char *func)
{
	int rc;

	memset(c, 0, sizeof(*c));
	c->skel = context_bpf__open();
	if (!c->skel)
		return -errno;
	rc = bpf_program__set_attach_target(c->skel->progs.context_entry, fd, func) ?:
	     bpf_program__set_attach_target(c->skel->progs.context_exit, fd, func) ?:
	     context_bpf__load(c->skel);
	if (rc)
		return rc;
	c->exit = bpf_program__attach(c->skel->progs.context_exit);
	c->entry = c->exit ? bpf_program__attach(c->skel->progs.context_entry) : NULL;
	return c->entry ? 0 : -errno;
}

static void context__close(struct context *c)
{
	bpf_link__destroy(c->entry);
	bpf_link__destroy(c->exit);
	context_bpf__destroy(c->skel);
}

/* Each exit has the address of the last entry of its task that is still open, and no two runs in
 * flight have the same. */
static bool context__check(struct context *c, unsigned int runs, unsigned int most_in_flight)
{
	struct record open[MAX_RECORDS];
	unsigned int n = 0, most = 0, i, k, last;
	const struct record *r;
	bool ok = true;

	EQUAL(2 * runs, c->skel->bss->n_records);
	for (i = 0; i < c->skel->bss->n_records; i++) {
		r = &c->skel->bss->records[i];
		last = n;
		for (k = 0; k < n; k++) {
			if (!r->is_exit)
				CHECK(open[k].ctx != r->ctx);
			if (open[k].tid == r->tid)
				last = k;
		}
		if (!r->is_exit) {
			open[n++] = *r;
			most = n > most ? n : most;
			continue;
		}
		CHECK(last < n);
		CHECK(open[last].ctx == r->ctx);
		memmove(&open[last], &open[last + 1], (n - last - 1) * sizeof(open[0]));
		n--;
	}
	EQUAL(0, n);
	EQUAL(most_in_flight, most);
cleanup:
	return ok;
}

static bool test_context_nested(void)
{
	struct context c = {};
	struct nest n;
	bool ok = true;

	CHECK(!nest__open(&n));
	CHECK(!context__open(&c, n.fd, "nest"));
	CHECK(!nest__run(&n, 1, 0) && !nest__run(&n, 3, 0) && !nest__run(&n, 10, 0));
	ok = context__check(&c, 14, 10);
cleanup:
	context__close(&c);
	nest__close(&n);
	return ok;
}

static bool test_context_asleep(void)
{
	struct context c = {};
	char here = 1;
	struct beds b;
	bool ok = true;
	int i;

	CHECK(!beds__open(&b));
	CHECK(!context__open(&c, b.fd, "sleepy"));
	for (i = 0; i < MAX_SLEEPERS; i++)
		CHECK(!beds__in(&b, i) && !run_sleepy(b.fd, &here));
	for (i = 0; i < MAX_SLEEPERS; i++)
		CHECK(!beds__out(&b, i) && !run_sleepy(b.fd, &here));
	ok = context__check(&c, 3 * MAX_SLEEPERS, MAX_SLEEPERS + 1);
cleanup:
	beds__close(&b);
	context__close(&c);
	return ok;
}

static const struct lab_test tests[] = {
	{"runs inside each other have context addresses of their own", no_tc, test_context_nested},
	{"runs that sleep have context addresses of their own", no_sleep, test_context_asleep},
	{"runs inside each other, deeper than there are slots", no_tc, test_nested},
	{"runs that sleep, and others beside them", no_sleep, test_asleep},
	{"more runs asleep than there are slots", no_sleep, test_too_many_asleep},
};

int main(void)
{
	return lab_main(tests, ARRAY_SIZE(tests));
}
