// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who has a program, or a link to it, open: from a tree that stands for /proc, and for processes
 * that are there, by both ways that there are. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bstats.h"
#include "insn.h"
#include "lab.h"
#include "owners.h"
#include "unit.h"

#define STAT " S 1 1 1 0 -1 0 100 200 0 0 3 4 0 0 20 0 1 0 500 1000 10 0 1 1"

static void make_fd(const char *root, int pid, int fd, const char *target, const char *fdinfo)
{
	char path[4200];

	snprintf(path, sizeof(path), "%d/fd/.keep", pid);
	unit_write(root, path, "");
	snprintf(path, sizeof(path), "%s/%d/fd/%d", root, pid, fd);
	if (symlink(target, path)) {
		printf("Bail out! %s: %s\n", path, strerror(errno));
		exit(1);
	}
	snprintf(path, sizeof(path), "%d/fdinfo/%d", pid, fd);
	if (fdinfo)
		unit_write(root, path, fdinfo);
}

static bool owner_is(const struct owners *o, size_t i, __u32 prog, int pid, unsigned progs,
		     unsigned links)
{
	if (i < o->n && o->v[i].prog_id == prog && o->v[i].process->pid == pid &&
	    o->v[i].prog_fds == progs && o->v[i].link_fds == links)
		return true;
	if (i < o->n)
		ktap_note("%zu: prog %u, pid %d, %u fds, %u fds of links", i, o->v[i].prog_id,
			  o->v[i].process->pid, o->v[i].prog_fds, o->v[i].link_fds);
	else
		ktap_note("there are %zu owners", o->n);
	return false;
}

static bool test_fixture(void)
{
	static const char prog[] = "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nprog_type:\t6\n"
				   "prog_jited:\t1\nprog_tag:\ta04f5eef06a7f555\nmemlock:\t4096\n"
				   "prog_id:\t%d\nrun_time_ns:\t0\nrun_cnt:\t0",
			  link[] = "pos:\t0\nflags:\t02000002\nlink_type:\txdp\nlink_id:\t%d\n"
				   "prog_tag:\ta04f5eef06a7f555\nprog_id:\t%d\nifindex:\t7";
	const __u32 ids[] = {9, 7, 300};
	struct owners o = {};
	struct errmsg err = {};
	char root[4096], text[512];
	const struct owner *first;
	bool ok = true;
	size_t n;

	unit_tree("proc", root, sizeof(root));
	unit_write(root, "40/stat", "40 (a) b (c)" STAT);
	unit_write(root, "40/cgroup", "0::/lxc.payload.web/x");
	snprintf(text, sizeof(text), prog, 7);
	make_fd(root, 40, 3, "anon_inode:bpf-prog", text);
	make_fd(root, 40, 4, "anon_inode:bpf-prog", text);
	/* The id of the link is none of a program. */
	snprintf(text, sizeof(text), link, 9, 7);
	make_fd(root, 40, 5, "anon_inode:bpf_link", text);
	unit_write(root, "30/stat", "30 (other)" STAT);
	snprintf(text, sizeof(text), prog, 7);
	/* The same lines, in what is no program; closed meanwhile; not asked for; no id in it. */
	make_fd(root, 30, 3, "anon_inode:bpf-map", text);
	make_fd(root, 30, 4, "anon_inode:bpf-prog", NULL);
	make_fd(root, 30, 7, "/tmp/anon_inode:bpf-prog", text);
	snprintf(text, sizeof(text), prog, 70);
	make_fd(root, 30, 5, "anon_inode:bpf-prog", text);
	make_fd(root, 30, 6, "anon_inode:bpf_link", "link_type:\tstruct_ops\nlink_id:\t7");
	snprintf(text, sizeof(text), prog, 300);
	make_fd(root, 30, 8, "anon_inode:bpf-prog", text);
	unit_write(root, "50/stat", "50 (links)" STAT);
	snprintf(text, sizeof(text), link, 300, 7);
	make_fd(root, 50, 3, "anon_inode:bpf_link", text);

	CHECK(!owners__read_by(&o, OWNERS_FDINFO, root, ids, ARRAY_SIZE(ids), &err));
	CHECK(o.how == OWNERS_FDINFO);
	EQUAL(3, o.n);
	EQUAL(3, o.n_processes);
	CHECK(owner_is(&o, 0, 7, 40, 2, 1));
	CHECK(owner_is(&o, 1, 7, 50, 0, 1));
	CHECK(owner_is(&o, 2, 300, 30, 1, 0));
	CHECK(!strcmp(o.v[0].process->comm, "a) b (c"));
	CHECK(!strcmp(o.v[0].process->runtime, "lxc") && !strcmp(o.v[0].process->container, "web"));
	CHECK(!o.v[1].process->container);
	CHECK(o.incomplete); /* process 1 is not there */
	first = owners__of(&o, 7, &n);
	CHECK(first == &o.v[0] && n == 2);
	first = owners__of(&o, 300, &n);
	CHECK(first == &o.v[2] && n == 1);
	CHECK(!owners__of(&o, 9, &n) && !n);
	CHECK(!owners__of(&o, 0, &n) && !n);
	CHECK(!owners__of(&o, 0xffffffff, &n) && !n);
	/* Nobody is asked for. */
	owners__close(&o);
	CHECK(!owners__read_by(&o, OWNERS_FDINFO, root, NULL, 0, &err) && !o.n);
	CHECK(owners__read_by(&o, OWNERS_FDINFO, "/nonexistent", ids, 1, &err) == -ENOENT);
	CHECK(strstr(err.text, "/nonexistent"));
cleanup:
	owners__close(&o);
	unit_tree_remove(root);
	return ok;
}

/* ---- processes that are there ---------------------------------------------------------------- */

/* A program that every kernel attaches by a link, and that does nothing where it is: sk_lookup in
 * the network namespace of this test. */
static int load(void)
{
	const struct bpf_insn code[] = {I_MOV(R0, 1), I_EXIT()};
	const struct bstats_load l = {
		.type = BPF_PROG_TYPE_SK_LOOKUP,
		.attach_type = BPF_SK_LOOKUP,
		.name = "owned",
	};

	return bstats_load(&l, code, INSN_COUNT(code));
}

static int attach(int prog)
{
	int ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), link;

	if (ns < 0)
		return -errno;
	link = bpf_link_create(prog, ns, BPF_SK_LOOKUP, NULL);
	if (link < 0)
		link = -errno;
	close(ns);
	return link;
}

static __u32 id_of(int prog)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(prog, &info, &len) ? 0 : info.id;
}

struct setup {
	int prog[2], link;
	int ready; /* a byte for each child */
};

static void say_ready(struct setup *s, const char *name)
{
	prctl(PR_SET_NAME, name);
	/* Whatever becomes of the test, its children end with it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(s->ready, "", 1) != 1)
		_exit(1);
}

static void *second_thread(void *data)
{
	say_ready(data, "thread");
	pause();
	return NULL;
}

/* What each child has. */
static void child(struct setup *s, int which)
{
	pthread_t thread;

	switch (which) {
	case 0: /* the program twice, and the link */
		if (dup(s->prog[0]) < 0)
			_exit(1);
		close(s->prog[1]);
		say_ready(s, "both (x) y");
		break;
	case 1: /* the link only */
		close(s->prog[0]);
		close(s->prog[1]);
		say_ready(s, "link");
		break;
	case 2: /* nothing of the kind */
		close(s->prog[0]);
		close(s->prog[1]);
		close(s->link);
		say_ready(s, "nothing");
		break;
	case 3: /* the second program, in a process whose first thread has ended */
		close(s->prog[0]);
		close(s->link);
		prctl(PR_SET_NAME, "first");
		if (pthread_create(&thread, NULL, second_thread, s))
			_exit(1);
		pthread_exit(NULL);
	}
	for (;;)
		pause();
}

static bool same(const struct owners *a, const struct owners *b)
{
	size_t i;

	if (a->n != b->n) {
		ktap_note("%zu owners by the iterator, %zu by /proc", a->n, b->n);
		return false;
	}
	for (i = 0; i < a->n; i++) {
		const struct owner *x = &a->v[i], *y = &b->v[i];

		if (x->prog_id == y->prog_id && x->process->pid == y->process->pid &&
		    x->prog_fds == y->prog_fds && x->link_fds == y->link_fds &&
		    !strcmp(x->process->comm, y->process->comm))
			continue;
		ktap_note("prog %u, pid %d (%s), %u, %u by the iterator; prog %u, pid %d (%s), %u, "
			  "%u by /proc",
			  x->prog_id, x->process->pid, x->process->comm, x->prog_fds, x->link_fds,
			  y->prog_id, y->process->pid, y->process->comm, y->prog_fds, y->link_fds);
		return false;
	}
	return true;
}

/* The iterator's answer, if it has one: if not, why. */
static void test_live(struct ktap *k)
{
	struct owners by_iter = {}, by_proc = {}, any = {};
	struct setup s = {.prog = {-1, -1}, .link = -1};
	bool ok = true, has_iter = false;
	struct errmsg err = {};
	int ready[2] = {-1, -1}, i;
	pid_t pid[4] = {};
	__u32 ids[2];
	char c;

	/* An attached program of ours is nothing to anybody else. */
	CHECK(!unshare(CLONE_NEWNET));
	s.prog[0] = load();
	s.prog[1] = load();
	CHECK(s.prog[0] >= 0 && s.prog[1] >= 0);
	s.link = attach(s.prog[0]);
	CHECK(s.link >= 0);
	for (i = 0; i < 2; i++)
		ids[i] = id_of(s.prog[i]);
	CHECK(!pipe2(ready, O_CLOEXEC));
	s.ready = ready[1];
	for (i = 0; i < 4; i++) {
		pid[i] = fork();
		if (!pid[i])
			child(&s, i);
		CHECK(pid[i] > 0);
	}
	for (i = 0; i < 4; i++)
		CHECK(read(ready[0], &c, 1) == 1);
	/* The first thread of the fourth may take a moment to end. */
	for (i = 0; i < 500; i++) {
		struct process p;

		CHECK(!process__read_stat(&p, "/proc", pid[3]));
		if (p.first_ended)
			break;
		usleep(10000);
	}
	CHECK(i < 500);

	CHECK(!owners__read_by(&by_proc, OWNERS_FDINFO, "/proc", ids, 2, &err));
	/* Our own fds are not in it. */
	EQUAL(3, by_proc.n);
	for (i = 0; i < 3; i++) {
		const struct owner *o = &by_proc.v[i];

		if (o->process->pid == pid[0])
			CHECK(o->prog_id == ids[0] && o->prog_fds == 2 && o->link_fds == 1 &&
			      !strcmp(o->process->comm, "both (x) y"));
		else if (o->process->pid == pid[1])
			CHECK(o->prog_id == ids[0] && o->prog_fds == 0 && o->link_fds == 1);
		else
			CHECK(o->process->pid == pid[3] && o->prog_id == ids[1] &&
			      o->prog_fds == 1 && o->link_fds == 0);
	}
	/* The one that is taken has the same answer, whichever it is. */
	CHECK(!owners__read(&any, "/proc", ids, 2, &err));
	CHECK(same(&any, &by_proc));
	has_iter = !owners__read_by(&by_iter, OWNERS_ITER, "/proc", ids, 2, &err);
	CHECK(any.how == (has_iter ? OWNERS_ITER : OWNERS_FDINFO));
	CHECK(!has_iter || same(&by_iter, &by_proc));
cleanup:
	ktap_ok(k, ok, "by /proc");
	if (!has_iter)
		ktap_result(k, KTAP_SKIP, "by the iterator",
			    *err.text ? err.text : "there are no owners to find");
	else
		ktap_ok(k, ok, "by the iterator");
	for (i = 0; i < 4; i++)
		if (pid[i] > 0) {
			kill(pid[i], SIGKILL);
			waitpid(pid[i], NULL, 0);
		}
	owners__close(&by_iter);
	owners__close(&by_proc);
	owners__close(&any);
	close(s.link);
	close(s.prog[0]);
	close(s.prog[1]);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 3);
	ktap_ok(&k, test_fixture(), "from a tree that stands for /proc");
	if (geteuid()) {
		ktap_result(&k, KTAP_SKIP, "by /proc", "not root");
		ktap_result(&k, KTAP_SKIP, "by the iterator", "not root");
	} else {
		test_live(&k);
	}
	return ktap_end(&k);
}
