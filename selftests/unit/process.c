// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Processes, their containers and their fds, from trees that stand for /proc. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lab.h"
#include "process.h"
#include "unit.h"

#define ID  "3f4e0e2c21d7a8b9c0d1e2f30415263748596a7b8c9d0e1f2031425364758697"
#define ID2 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define POD "pod1b2c3d4e_5f60_7182_93a4_b5c6d7e8f901"

static const struct {
	const char *cgroup;
	const char *runtime, *id; /* id NULL: no container */
} cgroups[] = {
	{"/", NULL, NULL},
	{"", NULL, NULL},
	{"/init.scope", NULL, NULL},
	{"/system.slice/docker.service", NULL, NULL},
	{"/user.slice/user-0.slice/session-1.scope", NULL, NULL},
	/* docker: cgroupfs, systemd, rootless, its own init below, and gone */
	{"/docker/" ID, "docker", ID},
	{"/docker/" ID "/init.scope", "docker", ID},
	{"/system.slice/docker-" ID ".scope", "docker", ID},
	{"/system.slice/docker-" ID ".scope (deleted)", "docker", ID},
	{"/docker/" ID " (deleted)", "docker", ID},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope", "docker",
	 ID},
	{"/../../docker/" ID, "docker", ID},
	/* podman, whose monitor is no part of the container */
	{"/machine.slice/libpod-" ID ".scope", "podman", ID},
	{"/machine.slice/libpod-" ID ".scope/container", "podman", ID},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "podman",
	 ID},
	{"/libpod_parent/libpod-" ID, "podman", ID},
	{"/machine.slice/libpod-conmon-" ID ".scope", NULL, NULL},
	/* Kubernetes */
	{"/kubepods/burstable/" POD "/" ID, "kubernetes", ID},
	{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-" POD
	 ".slice/cri-containerd-" ID ".scope",
	 "containerd", ID},
	{"/kubepods.slice/kubepods-" POD ".slice/crio-" ID ".scope", "cri-o", ID},
	{"/kubepods.slice/kubepods-" POD ".slice/crio-conmon-" ID ".scope", NULL, NULL},
	{"/kubepods/" POD "/crio-" ID, "cri-o", ID},
	{"/kubepods.slice/kubepods-" POD ".slice/docker-" ID ".scope", "docker", ID},
	{"/system.slice/containerd.service/kubepods-" POD ".slice:cri-containerd:" ID, "containerd",
	 ID},
	{"/system.slice/kubepods-" POD ".slice:crio:" ID, "cri-o", ID},
	{"/kubepods/burstable/" POD, NULL, NULL},
	{"/system.slice/nerdctl-" ID ".scope", "containerd", ID},
	/* an id of one knows not whom */
	{"/ecs/0123/" ID, NULL, ID},
	/* the innermost */
	{"/docker/" ID "/kubepods/" POD "/" ID2, "kubernetes", ID2},
	{"/docker/" ID "/docker/" ID2, "docker", ID2},
	{"/lxc.payload.c1/system.slice/docker-" ID ".scope", "docker", ID},
	/* LXC */
	{"/lxc/web", "lxc", "web"},
	{"/lxc/101/ns/init.scope", "lxc", "101"},
	{"/lxc.payload.web", "lxc", "web"},
	{"/lxc.payload.web/system.slice/ssh.service", "lxc", "web"},
	{"/lxc.payload/web", "lxc", "web"},
	{"/lxc.monitor.web", NULL, NULL},
	{"/lxc.monitor/web", NULL, NULL},
	{"/lxc", NULL, NULL},
	/* systemd-nspawn, whose supervisor is no part of the container */
	{"/machine.slice/systemd-nspawn@web.service/payload/init.scope", "systemd-nspawn", "web"},
	{"/machine.slice/systemd-nspawn@web.service/supervisor", NULL, NULL},
	{"/machine.slice/systemd-nspawn@web\\x2d1.service/payload", "systemd-nspawn", "web-1"},
	{"/machine.slice/machine-web.scope/payload", "systemd-nspawn", "web"},
	{"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", NULL, NULL},
	{"/machine.slice/systemd-nspawn@.service", NULL, NULL},
	/* no ids */
	{"/docker/" ID "0", NULL, NULL},
	{"/docker/0123456789ab", NULL, NULL},
	{"/system.slice/docker-x" ID ".scope", NULL, NULL},
	{"/system.slice/x" ID ".scope", NULL, NULL},
	{"/system.slice/other-" ID ".scope", NULL, NULL},
	{"/-" ID, NULL, NULL},
	{"/:" ID, NULL, NULL},
	{"/docker/3F4E0E2C21D7A8B9C0D1E2F30415263748596A7B8C9D0E1F2031425364758697", NULL, NULL},
};

static const char *text(const char *s)
{
	return s ? s : "(none)";
}

static bool test_container(void)
{
	const char *runtime;
	bool ok = true, found;
	char id[256];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cgroups); i++) {
		runtime = NULL;
		found = process__container(cgroups[i].cgroup, &runtime, id, sizeof(id));
		if (found == !!cgroups[i].id &&
		    (!found || (!strcmp(id, cgroups[i].id) &&
				!strcmp(text(runtime), text(cgroups[i].runtime)))))
			continue;
		ktap_note("%s: expected %s %s, got %s %s", cgroups[i].cgroup,
			  text(cgroups[i].runtime), text(cgroups[i].id), text(runtime),
			  found ? id : "(none)");
		ok = false;
	}
	return ok;
}

/* What is behind the name in /proc/PID/stat. */
static void make_process(const char *root, int pid, const char *comm, char state,
			 unsigned long flags, int threads, unsigned long long ticks)
{
	char path[64], line[512];

	snprintf(path, sizeof(path), "%d/stat", pid);
	snprintf(line, sizeof(line),
		 "%d (%s) %c 1 1 1 0 -1 %lu 100 200 0 0 3 4 0 0 20 0 %d 0 %llu 1000 10 0 1 1", pid,
		 comm, state, flags, threads, ticks);
	unit_write(root, path, line);
}

static void make_fd(const char *root, const char *dir, int fd, const char *target)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/.keep", dir);
	unit_write(root, path, "");
	snprintf(path, sizeof(path), "%s/%s/%d", root, dir, fd);
	if (symlink(target, path)) {
		printf("Bail out! %s: %s\n", path, strerror(errno));
		exit(1);
	}
}

static bool test_stat(void)
{
	static const char *const names[] = {
		"bash", "a b", "a) S 1 (b", "(sd-pam)", ")", "a\nb", "a\n1 (x) S 2 3", "",
	};
	long hz = sysconf(_SC_CLK_TCK);
	struct timespec now, boot;
	struct process p;
	char root[4096];
	double started;
	bool ok = true;
	size_t i;

	unit_tree("proc", root, sizeof(root));
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		make_process(root, 1000 + i, names[i], 'S', 0x400000, 3, 50 * hz);
		CHECK(!process__read_stat(&p, root, 1000 + i));
		if (strcmp(p.comm, names[i]))
			ktap_note("'%s' read as '%s'", names[i], p.comm);
		CHECK(!strcmp(p.comm, names[i]));
		CHECK(p.pid == (pid_t)(1000 + i) && p.threads == 3 && p.has_fds && !p.first_ended);
		/* 50 s after the boot; the clock may be set meanwhile, but not by an hour. */
		started = now.tv_sec - boot.tv_sec + 50;
		CHECK(fabs(p.started_ns / 1e9 - started) < 3600);
	}
	make_process(root, 2, "kthreadd", 'S', 0x208040, 1, 0);
	CHECK(!process__read_stat(&p, root, 2) && !p.has_fds);
	make_process(root, 3, "gone", 'Z', 0x40000c, 1, 0);
	CHECK(!process__read_stat(&p, root, 3) && !p.has_fds && !p.first_ended);
	make_process(root, 3, "first", 'Z', 0x40000c, 2, 0);
	CHECK(!process__read_stat(&p, root, 3) && p.has_fds && p.first_ended);
	CHECK(process__read_stat(&p, root, 99999) == -ENOENT);
	unit_write(root, "4/stat", "4 (cut) S 1");
	CHECK(process__read_stat(&p, root, 4) == -EPROTO);
	unit_write(root, "4/stat", "");
	CHECK(process__read_stat(&p, root, 4) == -EPROTO);
cleanup:
	unit_tree_remove(root);
	return ok;
}

static bool test_own(void)
{
	struct process p = {};
	struct timespec now;
	char comm[64] = "";
	bool ok = true;
	FILE *f = NULL;

	CHECK(!process__read_stat(&p, "/proc", getpid()));
	f = fopen("/proc/self/comm", "re");
	CHECK(f && fgets(comm, sizeof(comm), f));
	comm[strcspn(comm, "\n")] = '\0';
	CHECK(!strcmp(p.comm, comm));
	CHECK(p.has_fds && p.threads == 1);
	clock_gettime(CLOCK_REALTIME, &now);
	/* It has just been started. */
	CHECK(fabs(now.tv_sec - p.started_ns / 1e9) < 600);
	CHECK(!process__read_cgroup(&p, "/proc"));
cleanup:
	if (f)
		fclose(f);
	process__free(&p);
	return ok;
}

static bool test_cgroup(void)
{
	static const struct {
		const char *file, *cgroup, *container;
	} files[] = {
		{"0::/system.slice/x.service", "/system.slice/x.service", NULL},
		{"0::/", "/", NULL},
		{"", NULL, NULL},
		{"nonsense", NULL, NULL},
		/* the unified hierarchy is not in use */
		{"12:cpu:/a\n1:name=systemd:/b\n0::/", "/b", NULL},
		{"12:cpu:/a\n1:name=systemd:/\n0::/", "/a", NULL},
		{"12:cpu:/a\n1:name=systemd:/b\n0::/c", "/c", NULL},
		/* the line that says more */
		{"3:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n0::/system.slice/x",
		 "/docker/" ID, ID},
		{"3:memory:/docker/" ID "\n1:name=systemd:/b", "/docker/" ID, ID},
		/* colons in the path */
		{"0::/system.slice/a:docker:" ID, "/system.slice/a:docker:" ID, ID},
	};
	struct process p = {};
	char root[4096];
	bool ok = true;
	size_t i;

	unit_tree("proc", root, sizeof(root));
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		unit_write(root, "5/cgroup", files[i].file);
		p.pid = 5;
		CHECK(!process__read_cgroup(&p, root));
		if (strcmp(text(p.cgroup), text(files[i].cgroup)) ||
		    strcmp(text(p.container), text(files[i].container)))
			ktap_note("'%s': %s %s", files[i].file, text(p.cgroup), text(p.container));
		CHECK(!strcmp(text(p.cgroup), text(files[i].cgroup)));
		CHECK(!strcmp(text(p.container), text(files[i].container)));
		process__free(&p);
	}
	/* Gone meanwhile: not known, and no error. */
	p.pid = 6;
	CHECK(!process__read_cgroup(&p, root) && !p.cgroup && !p.container);
cleanup:
	process__free(&p);
	unit_tree_remove(root);
	return ok;
}

struct seen {
	char text[4096];
	int stop; /* returned at the first */
};

static int see(void *data, pid_t pid, pid_t tid, int fd, const char *target)
{
	struct seen *s = data;
	size_t len = strlen(s->text);

	snprintf(s->text + len, sizeof(s->text) - len, "%d/%d/%d=%s ", pid, tid, fd, target);
	return s->stop;
}

static bool saw(const struct seen *s, const char *what)
{
	if (strstr(s->text, what))
		return true;
	ktap_note("'%s' is not in '%s'", what, s->text);
	return false;
}

static bool test_walk(void)
{
	struct process_walk w = {.fd = see};
	struct seen s = {};
	char root[4096], long_target[200], path[4200];
	bool ok = true;

	unit_tree("proc", root, sizeof(root));
	w.proc_root = root;
	w.data = &s;
	/* Process 1 is not there: /proc hides processes. */
	make_process(root, 10, "one", 'S', 0, 1, 0);
	make_fd(root, "10/fd", 0, "/dev/null");
	make_fd(root, "10/fd", 7, "anon_inode:bpf-stats");
	memset(long_target, 'x', sizeof(long_target) - 1);
	long_target[sizeof(long_target) - 1] = '\0';
	make_fd(root, "10/fd", 8, long_target);
	/* a zombie and a kernel thread have none, whatever is there */
	make_process(root, 11, "zombie", 'Z', 0, 1, 0);
	make_fd(root, "11/fd", 1, "zombie");
	make_process(root, 12, "kthread", 'S', 0x200000, 1, 0);
	make_fd(root, "12/fd", 1, "kthread");
	/* its first thread has ended, and another one has the table */
	make_process(root, 13, "first ended", 'Z', 0, 3, 0);
	make_fd(root, "13/fd", 1, "first");
	make_fd(root, "13/task/14/fd", 2, "other");
	make_fd(root, "13/task/15/fd", 2, "other");
	/* threads share: these are not looked at twice */
	make_process(root, 16, "threads", 'S', 0, 2, 0);
	make_fd(root, "16/fd", 1, "shared");
	make_fd(root, "16/task/17/fd", 1, "shared");
	/* gone between the listing and the look; no process at all */
	unit_write(root, "18/.keep", "");
	unit_write(root, "19", "a file");
	unit_write(root, "20x/fd/1", "");
	CHECK(!process__walk(&w));
	CHECK(saw(&s, "10/10/0=/dev/null ") && saw(&s, "10/10/7=anon_inode:bpf-stats "));
	CHECK(!strstr(s.text, "zombie") && !strstr(s.text, "kthread") && !strstr(s.text, "first"));
	CHECK(strstr(s.text, "13/14/2=other ") || strstr(s.text, "13/15/2=other "));
	CHECK(!(strstr(s.text, "13/14/2=other ") && strstr(s.text, "13/15/2=other ")));
	CHECK(saw(&s, "16/16/1=shared ") && !strstr(s.text, "16/17/"));
	CHECK(!strstr(s.text, long_target) && strstr(s.text, "10/10/8=xxx"));
	CHECK(!w.unseen && w.hidden && w.nested && !w.same_pids);
	CHECK(process__walk_incomplete(&w));
	EQUAL(1 + 1 + 1 + 3 + 2, w.threads);
	EQUAL(345, w.all_threads);

	/* As it is on the whole machine. */
	make_process(root, 1, "init", 'S', 0, 1, 0);
	make_fd(root, "self/ns", 1, "x");
	snprintf(path, sizeof(path), "%s/self/ns/pid", root);
	CHECK(!symlink("pid:[4026531836]", path));
	s.text[0] = '\0';
	CHECK(!process__walk(&w));
	CHECK(!w.hidden && !w.nested && !process__walk_incomplete(&w));
	/* As it is in a container. */
	CHECK(!unlink(path) && !symlink("pid:[4026532200]", path));
	CHECK(!process__walk(&w) && w.nested && process__walk_incomplete(&w));

	/* The callback ends it. */
	s.text[0] = '\0';
	s.stop = 42;
	EQUAL(42, process__walk(&w));
	CHECK(strchr(s.text, '=') == strrchr(s.text, '='));
	w.proc_root = "/nonexistent";
	EQUAL(-ENOENT, process__walk(&w));
cleanup:
	unit_tree_remove(root);
	return ok;
}

static bool test_no_fds_left(void)
{
	struct process_walk w = {.proc_root = "/proc", .fd = see};
	int fds[64], n = 0, rc;
	struct seen s = {};
	bool ok = true;

	/* What we cannot open ourselves is no process that is gone. */
	while (n < 64 && (fds[n] = dup(0)) >= 0)
		n++;
	w.data = &s;
	rc = process__walk(&w);
	while (n--)
		close(fds[n]);
	EQUAL(-EMFILE, rc);
cleanup:
	return ok;
}

int main(void)
{
	const struct rlimit few = {64, 64};
	struct ktap k;

	/* So that fds are used up soon. */
	setrlimit(RLIMIT_NOFILE, &few);

	ktap_begin(&k, 6);
	ktap_ok(&k, test_container(), "containers by the names of cgroups");
	ktap_ok(&k, test_stat(), "names, threads, start and kind of a process");
	ktap_ok(&k, test_own(), "the process itself");
	ktap_ok(&k, test_cgroup(), "which of its cgroups says where a process is");
	ktap_ok(&k, test_walk(), "fds of all processes");
	ktap_ok(&k, test_no_fds_left(), "without a free fd it is an error");
	return ktap_end(&k);
}
