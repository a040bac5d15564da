// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Events on every CPU, and CPUs that come and go.
 *
 * Most of this works on any machine, with the kernel's software events and a tree of files that
 * says which CPUs are online. What needs a PMU, or a CPU to switch off, says so.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "counters.skel.h"
#include "ktap.h"
#include "lab.h"
#include "sysfs.h"
#include "unit.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MAX_METRICS   16

/* Counters and what they were made of. */
struct setup {
	struct metric metric[MAX_METRICS];
	const struct metric *metrics[MAX_METRICS];
	size_t n;
	struct counters *counters;
	struct errmsg err;
	struct counters_bpf *skel;
};

static void setup_free(struct setup *s)
{
	size_t i;

	counters__close(s->counters);
	counters_bpf__destroy(s->skel);
	for (i = 0; i < s->n; i++)
		metrics__free(&s->metric[i]);
	memset(s, 0, sizeof(*s));
}

/* Opens the metrics that @words, which ends with NULL, name. */
static int setup(struct setup *s, const char *root, const char *const *words)
{
	int rc;

	memset(s, 0, sizeof(*s));
	for (; words[s->n]; s->n++) {
		rc = metrics__parse(words[s->n], root, &s->metric[s->n], &s->err);
		if (rc) {
			ktap_note("%s", s->err.text);
			return rc;
		}
		s->metrics[s->n] = &s->metric[s->n];
	}
	rc = counters__open(&s->counters, s->metrics, s->n, root, &s->err);
	if (rc && s->counters)
		return -EEXIST; /* no errno that opening could have */
	return rc;
}

/* Loads the program that reads the events, and puts them into its map. */
static int setup_reader(struct setup *s)
{
	int rc;

	s->skel = counters_bpf__open();
	if (!s->skel)
		return -errno;
	rc = bpf_map__set_max_entries(s->skel->maps.events, counters__n_keys(s->counters));
	if (!rc)
		rc = counters_bpf__load(s->skel);
	if (rc)
		return rc;
	s->skel->bss->n_metrics = (unsigned int)s->n;
	return counters__install(s->counters, bpf_map__fd(s->skel->maps.events));
}

/* Has @cpu read its events. Returns 0 or a negative errno; the results are in the skeleton. */
static int read_on(struct setup *s, unsigned int cpu)
{
	__u64 args[2] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);

	if (bpf_prog_test_run_opts(bpf_program__fd(s->skel->progs.read_events), &opts))
		return -errno;
	return s->skel->bss->cpu == cpu ? 0 : -EXDEV;
}

static int map_fd(const struct setup *s)
{
	return bpf_map__fd(s->skel->maps.events);
}

static bool has_capability(cap_value_t cap)
{
	cap_flag_value_t on = CAP_CLEAR;
	cap_t caps = cap_get_proc();

	if (caps && cap_get_flag(caps, cap, CAP_EFFECTIVE, &on))
		on = CAP_CLEAR;
	cap_free(caps);
	return on == CAP_SET;
}

static bool drop_capability(cap_value_t cap)
{
	cap_t caps = cap_get_proc();
	bool ok = caps && !cap_set_flag(caps, CAP_EFFECTIVE, 1, &cap, CAP_CLEAR) &&
		  !cap_set_flag(caps, CAP_PERMITTED, 1, &cap, CAP_CLEAR) && !cap_set_proc(caps);

	cap_free(caps);
	return ok;
}

static bool drop_capabilities(void)
{
	cap_t caps = cap_init();
	bool ok = caps && !cap_set_proc(caps);

	cap_free(caps);
	return ok;
}

/* Runs a test that changes its process for good in one of its own. */
static bool in_child(bool (*test)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		bool ok = test();

		fflush(stdout);
		_exit(!ok);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (!WIFEXITED(status))
		ktap_note("the process died: status 0x%x", status);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* ---- tests ---- */

static const char *const two_software[] = {"cpu-clock", "context-switches", NULL};

static bool test_none(void)
{
	static const char *const words[] = {NULL};
	struct setup s;
	bool ok = true;

	CHECK(!setup(&s, SYSFS_ROOT, words));
	CHECK(counters__n_fds(s.counters) == 0 && counters__n_keys(s.counters) == 0);
	CHECK(!counters__multiplexed(s.counters) && !counters__has(s.counters, 0, 0));
	CHECK(counters__refresh(s.counters, -1) == 0);
cleanup:
	setup_free(&s);
	counters__close(NULL);
	return ok;
}

static bool test_software(void)
{
	struct cpus online = {}, possible = {};
	uint64_t enabled, running, later;
	struct setup s;
	bool ok = true;
	size_t i;
	int cpu;

	CHECK(!setup(&s, SYSFS_ROOT, two_software));
	CHECK(!cpus__read(&online, SYSFS_ROOT, "online"));
	CHECK(!cpus__read(&possible, SYSFS_ROOT, "possible"));
	CHECK(cpus__equal(counters__online(s.counters), &online));
	CHECK(counters__n_fds(s.counters) == 2 * cpus__count(&online));
	CHECK(counters__n_keys(s.counters) == 2 * (unsigned int)(cpus__max(&possible) + 1));
	CHECK(!counters__multiplexed(s.counters));
	cpus__for_each(cpu, &online)
	{
		for (i = 0; i < 2; i++) {
			CHECK(counters__has(s.counters, (unsigned int)cpu, i));
			CHECK(!counters__why_not(s.counters, (unsigned int)cpu, i));
			CHECK(!counters__times(s.counters, (unsigned int)cpu, i, &enabled,
					       &running));
			CHECK(enabled == running && enabled > 0);
			CHECK(!counters__times(s.counters, (unsigned int)cpu, i, &later, &running));
			CHECK(later > enabled);
		}
	}
	/* What is not there is not there, and nothing is read beyond the end. */
	CHECK(!counters__has(s.counters, 0, 2) && !counters__has(s.counters, 1U << 20, 0));
	CHECK(counters__times(s.counters, 0, 2, &enabled, &running) == -ENOENT);
	CHECK(counters__times(s.counters, 1U << 20, 0, &enabled, &running) == -ENOENT);
	CHECK(counters__refresh(s.counters, -1) == 0);
	CHECK(counters__reopen_cpu(s.counters, -1, 1U << 20) == -EINVAL);
cleanup:
	cpus__free(&online);
	cpus__free(&possible);
	setup_free(&s);
	return ok;
}

/* The value at the key of the design is the one of that CPU and metric. */
static bool test_map(void)
{
	static const char *const words[] = {"cpu-clock", "page-faults:u", "cpu-clock", NULL};
	struct setup s;
	bool ok = true;
	int cpu, rc;

	CHECK(!setup(&s, SYSFS_ROOT, words));
	rc = setup_reader(&s);
	if (rc)
		ktap_note("reader: %s", strerror(-rc));
	CHECK(!rc);
	cpus__for_each(cpu, counters__online(s.counters))
	{
		struct counters_bpf__bss *seen = s.skel->bss;

		CHECK(!read_on(&s, (unsigned int)cpu));
		CHECK(!seen->err[0] && !seen->err[1] && !seen->err[2]);
		/* clocks since they were opened, the later one after the earlier one; and the
		 * program ran in the kernel */
		CHECK(seen->values[0].counter > 0 && seen->values[2].counter > 0);
		CHECK(seen->values[0].enabled == seen->values[0].running);
		/* The kernel's clock may advance by ticks only. */
		CHECK(seen->values[0].enabled >= seen->values[2].enabled);
	}
cleanup:
	setup_free(&s);
	return ok;
}

static bool test_unknown_event(void)
{
	static const char *const words[] = {"cpu-clock", "software/config=4095/", NULL};
	struct setup s;
	bool ok = true;

	CHECK(setup(&s, SYSFS_ROOT, words) == -ENOENT);
	CHECK(s.err.status == EXIT_NOT_MEASURED);
	CHECK(!strcmp(s.err.text,
		      "PMU has no 'software/config=4095/' event (ENOENT); try the metric 'ns', "
		      "which needs no PMU"));
cleanup:
	setup_free(&s);
	return ok;
}

/* Whether this machine counts @word; else why not. */
static int probe(const char *word)
{
	struct metric m;
	int rc;

	rc = metrics__parse(word, SYSFS_ROOT, &m, NULL);
	if (!rc)
		rc = counters__probe(&m.events[0], SYSFS_ROOT);
	metrics__free(&m);
	return rc;
}

/* Whatever is refused, the message names the event, the errno, and what works instead. */
static bool test_messages(void)
{
	static const struct {
		const char *word;
		int rc;
		const char *parts[3];
	} messages[] = {
		{"cycles",
		 -ENOENT,
		 {"CPU has no 'cycles' event (ENOENT); try the metric 'ns', which needs no PMU"}},
		{"cgroup-switches",
		 -ENOENT,
		 {"the kernel has no 'cgroup-switches' event (ENOENT)"}},
		{"r1", -EOPNOTSUPP, {"the PMU cannot count 'r1'", "(EOPNOTSUPP)", "'ns'"}},
		{"r1", -EINVAL, {"the PMU cannot count 'r1'", "(EINVAL)", "'ns'"}},
		{"cs", -EINVAL, {"the kernel cannot count 'context-switches'", "(EINVAL)"}},
		{"cycles", -EBUSY, {"'cycles' is in use", "(EBUSY)", "nmi_watchdog"}},
		{"cycles", -ENODEV, {"no online CPU", "'cycles'", "(ENODEV)"}},
		{"cycles", -ENOSYS, {"CONFIG_PERF_EVENTS", "(ENOSYS)", "'ns'"}},
		{"cycles", -E2BIG, {"'cycles'", "(E2BIG)"}},
	};
	struct errmsg err;
	struct metric m;
	bool ok = true;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(messages); i++) {
		memset(&err, 0, sizeof(err));
		if (metrics__parse(messages[i].word, SYSFS_ROOT, &m, NULL))
			return false;
		ok &= counters__explain(&m, messages[i].rc, &err) == messages[i].rc &&
		      err.status == EXIT_NOT_MEASURED;
		metrics__free(&m);
		for (k = 0; k < ARRAY_SIZE(messages[i].parts) && messages[i].parts[k]; k++) {
			if (strstr(err.text, messages[i].parts[k]))
				continue;
			ktap_note("'%s' is not in: %s", messages[i].parts[k], err.text);
			ok = false;
		}
	}
	return ok;
}

static bool test_no_capability(void)
{
	struct setup s = {};
	bool ok = true;

	CHECK(drop_capabilities());
	CHECK(setup(&s, SYSFS_ROOT, two_software) == -EACCES);
	CHECK(strstr(s.err.text, "'cpu-clock'") && strstr(s.err.text, "(EACCES)"));
	CHECK(strstr(s.err.text, "CAP_PERFMON") && strstr(s.err.text, "perf_event_paranoid"));
cleanup:
	setup_free(&s);
	return ok;
}

static bool test_forbidden(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = ARRAY_SIZE(code), .filter = code};
	struct setup s = {};
	bool ok = true;

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
	CHECK(setup(&s, SYSFS_ROOT, two_software) == -EPERM);
	CHECK(strstr(s.err.text, "(EPERM)") && strstr(s.err.text, "seccomp"));
cleanup:
	setup_free(&s);
	return ok;
}

static const char *const ten_software[] = {
	"cpu-clock",	  "task-clock",	  "page-faults",  "context-switches",
	"cpu-migrations", "minor-faults", "major-faults", "alignment-faults",
	"cpu-clock",	  "cpu-clock",	  NULL,
};

static bool test_soft_limit(void)
{
	struct rlimit limit;
	struct setup s = {};
	bool ok = true;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 12;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(!setup(&s, SYSFS_ROOT, ten_software));
	CHECK(counters__n_fds(s.counters) == 10 * cpus__count(counters__online(s.counters)));
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	CHECK(limit.rlim_cur > counters__n_fds(s.counters));
cleanup:
	setup_free(&s);
	return ok;
}

static bool test_hard_limit(void)
{
	struct rlimit limit = {.rlim_cur = 12, .rlim_max = 12};
	struct cpus online = {};
	char needed[32];
	struct setup s = {};
	bool ok = true;

	CHECK(!cpus__read(&online, SYSFS_ROOT, "online"));
	snprintf(needed, sizeof(needed), " %u open files", 10 * cpus__count(&online));
	CHECK(drop_capability(CAP_SYS_RESOURCE) || !has_capability(CAP_SYS_RESOURCE));
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(setup(&s, SYSFS_ROOT, ten_software) == -EMFILE);
	CHECK(strstr(s.err.text, needed) && strstr(s.err.text, "limit is 12:") &&
	      strstr(s.err.text, "(EMFILE)"));
cleanup:
	cpus__free(&online);
	setup_free(&s);
	return ok;
}

static bool test_hard_limit_raised(void)
{
	struct rlimit limit = {.rlim_cur = 12, .rlim_max = 12};
	struct setup s = {};
	bool ok = true;

	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(!setup(&s, SYSFS_ROOT, ten_software));
cleanup:
	setup_free(&s);
	return ok;
}

/* CPU 1 comes and goes, as the list of online CPUs tells. */
static bool test_refresh(void)
{
	char root[4096];
	uint64_t enabled, running, before;
	struct setup s;
	bool ok = true;

	unit_tree("none", root, sizeof(root));
	unit_write(root, "devices/system/cpu/online", "0");
	CHECK(!setup(&s, root, two_software));
	CHECK(!setup_reader(&s));
	CHECK(counters__n_fds(s.counters) == 2 && !counters__has(s.counters, 1, 0));
	CHECK(counters__times(s.counters, 1, 0, &enabled, &running) == -ENOENT);
	CHECK(!read_on(&s, 1) && s.skel->bss->err[0] == -ENOENT);
	CHECK(counters__refresh(s.counters, map_fd(&s)) == 0);

	unit_write(root, "devices/system/cpu/online", "0-1");
	CHECK(counters__refresh(s.counters, map_fd(&s)) == 1);
	CHECK(counters__n_fds(s.counters) == 4 && counters__has(s.counters, 1, 1));
	CHECK(!read_on(&s, 1) && !s.skel->bss->err[0] && !s.skel->bss->err[1]);
	CHECK(!counters__times(s.counters, 1, 0, &before, &running) && before > 0);
	CHECK(counters__refresh(s.counters, map_fd(&s)) == 0);

	unit_write(root, "devices/system/cpu/online", "0");
	CHECK(counters__refresh(s.counters, map_fd(&s)) == 1);
	CHECK(counters__n_fds(s.counters) == 2 && !counters__has(s.counters, 1, 1));
	CHECK(!read_on(&s, 1) && s.skel->bss->err[0] == -ENOENT);
	/* what was counted is not forgotten, and does not grow */
	CHECK(!counters__times(s.counters, 1, 0, &enabled, &running) && enabled >= before);
	before = enabled;
	CHECK(!counters__times(s.counters, 1, 0, &enabled, &running) && enabled == before);

	unit_write(root, "devices/system/cpu/online", "0-1");
	CHECK(counters__refresh(s.counters, map_fd(&s)) == 1);
	CHECK(!read_on(&s, 1) && !s.skel->bss->err[0]);
	CHECK(!counters__times(s.counters, 1, 0, &enabled, &running) && enabled > before);
	CHECK(enabled == running && !counters__multiplexed(s.counters));

	/* the other one was never touched */
	CHECK(!read_on(&s, 0) && !s.skel->bss->err[0]);

	unit_write(root, "devices/system/cpu/online", "0-,");
	CHECK(counters__refresh(s.counters, map_fd(&s)) == -EINVAL);
	CHECK(counters__n_fds(s.counters) == 4);
cleanup:
	setup_free(&s);
	unit_tree_remove(root);
	return ok;
}

static bool test_reopen(void)
{
	uint64_t enabled, running, before;
	struct setup s;
	bool ok = true;
	size_t n;

	CHECK(!setup(&s, SYSFS_ROOT, two_software));
	CHECK(!setup_reader(&s));
	n = counters__n_fds(s.counters);
	CHECK(!counters__times(s.counters, 0, 0, &before, &running));
	CHECK(!read_on(&s, 0) && s.skel->bss->values[0].enabled > 0);
	CHECK(counters__reopen_cpu(s.counters, map_fd(&s), 0) == 1);
	CHECK(counters__n_fds(s.counters) == n);
	/* the new event begins at 0, the times go on */
	CHECK(!counters__times(s.counters, 0, 0, &enabled, &running) && enabled > before);
	CHECK(!read_on(&s, 0) && !s.skel->bss->err[0]);
	CHECK(s.skel->bss->values[0].enabled < enabled);
cleanup:
	setup_free(&s);
	return ok;
}

/* Two kinds of CPUs: the PMUs are the kernel's software events under other names. */
static bool test_hybrid(void)
{
	static const char *const raw[] = {"r0", NULL};
	static const char *const one[] = {"fake_b/config=0/k", NULL};
	char root[4096];
	struct setup s = {};
	bool ok = true;

	unit_tree("none", root, sizeof(root));
	unit_write(root, "bus/event_source/devices/fake_a/type", "1");
	unit_write(root, "bus/event_source/devices/fake_a/cpus", "0");
	unit_write(root, "bus/event_source/devices/fake_b/type", "1");
	unit_write(root, "bus/event_source/devices/fake_b/cpus", "1");
	CHECK(!setup(&s, root, raw));
	CHECK(s.metric[0].n_events == 2 && counters__n_fds(s.counters) == 2);
	CHECK(!setup_reader(&s));
	CHECK(!read_on(&s, 0) && !s.skel->bss->err[0]);
	CHECK(!read_on(&s, 1) && !s.skel->bss->err[0]);
	setup_free(&s);

	/* an event of one kind: the other CPU has none, and that is no error */
	CHECK(!setup(&s, root, one));
	CHECK(counters__n_fds(s.counters) == 1 && !counters__has(s.counters, 0, 0));
	CHECK(counters__why_not(s.counters, 0, 0) == -ENODEV);
	CHECK(counters__has(s.counters, 1, 0));
	/* the PMU gains a CPU that comes online */
	unit_write(root, "bus/event_source/devices/fake_b/cpus", "0-1");
	CHECK(counters__reopen_cpu(s.counters, -1, 0) == 1);
	CHECK(counters__has(s.counters, 0, 0) && !counters__why_not(s.counters, 0, 0));
	setup_free(&s);

	/* no CPU of that kind is online */
	unit_write(root, "bus/event_source/devices/fake_b/cpus", "");
	CHECK(setup(&s, root, one) == -ENODEV);
	CHECK(strstr(s.err.text, "no online CPU has the PMU of 'fake_b/config=0/k'"));
cleanup:
	setup_free(&s);
	unit_tree_remove(root);
	return ok;
}

static bool test_broken_sets(void)
{
	char root[4096];
	struct setup s = {};
	bool ok = true;

	unit_tree("broken", root, sizeof(root));
	CHECK(setup(&s, root, two_software) == -EINVAL);
	CHECK(strstr(s.err.text, "which CPUs there are"));
	setup_free(&s);
	unit_write(root, "devices/system/cpu/online", "0-4");
	CHECK(setup(&s, root, two_software) == -EINVAL);
	setup_free(&s);
	unit_write(root, "devices/system/cpu/online", "");
	CHECK(setup(&s, root, two_software) == -ENODEV);
cleanup:
	setup_free(&s);
	unit_tree_remove(root);
	return ok;
}

/* ---- with a PMU ---- */

static bool test_pinned(void)
{
	static const char *const words[] = {"cycles", "instructions", NULL};
	uint64_t enabled, running;
	struct setup s;
	bool ok = true;
	size_t i;
	int cpu;

	CHECK(!setup(&s, SYSFS_ROOT, words));
	CHECK(!counters__multiplexed(s.counters));
	CHECK(!setup_reader(&s));
	cpus__for_each(cpu, counters__online(s.counters))
	{
		CHECK(!read_on(&s, (unsigned int)cpu));
		for (i = 0; i < 2; i++) {
			CHECK(!s.skel->bss->err[i] && s.skel->bss->values[i].counter > 0);
			CHECK(!counters__times(s.counters, (unsigned int)cpu, i, &enabled,
					       &running));
			CHECK(enabled > 0 && enabled == running);
		}
	}
	/* The old events are still in the map for a while: their counters are free all the same. */
	cpus__for_each(cpu, counters__online(s.counters))
	{
		for (i = 0; i < 10; i++)
			CHECK(counters__reopen_cpu(s.counters, map_fd(&s), (unsigned int)cpu) == 1);
	}
	CHECK(!counters__multiplexed(s.counters));
cleanup:
	setup_free(&s);
	return ok;
}

static bool test_multiplexed(void)
{
	const char *words[MAX_METRICS + 1] = {};
	uint64_t enabled, running, most = 0;
	struct setup s;
	bool ok = true;
	size_t i;

	/* more than any PMU that is known has counters for one event */
	for (i = 0; i < MAX_METRICS; i++)
		words[i] = i ? "instructions" : "cpu-clock";
	CHECK(!setup(&s, SYSFS_ROOT, words));
	CHECK(counters__multiplexed(s.counters));
	CHECK(counters__n_fds(s.counters) ==
	      MAX_METRICS * cpus__count(counters__online(s.counters)));
	usleep(200000);
	for (i = 1; i < MAX_METRICS; i++) {
		CHECK(!counters__times(s.counters, 0, i, &enabled, &running));
		CHECK(enabled > running);
		if (running > most)
			most = running;
	}
	CHECK(most > 0);
	/* a software event always runs */
	CHECK(!counters__times(s.counters, 0, 0, &enabled, &running) && enabled == running);
cleanup:
	setup_free(&s);
	return ok;
}

/* A kernel that does not know PMU types in a generic event's configuration is asked without. */
static bool test_type_unknown(void)
{
	static const char *const words[] = {"cycles", NULL};
	char root[4096];
	struct setup s = {};
	bool ok = true;

	unit_tree("none", root, sizeof(root));
	unit_write(root, "devices/system/cpu/online", "0");
	unit_write(root, "bus/event_source/devices/fake_a/type", "4000");
	unit_write(root, "bus/event_source/devices/fake_a/cpus", "0");
	unit_write(root, "bus/event_source/devices/fake_b/type", "4001");
	unit_write(root, "bus/event_source/devices/fake_b/cpus", "1");
	CHECK(!setup(&s, root, words));
	CHECK(s.metric[0].n_events == 2 && counters__n_fds(s.counters) == 1);
cleanup:
	setup_free(&s);
	unit_tree_remove(root);
	return ok;
}

/* ---- with a CPU that may be switched off ---- */

#define CPU1_ONLINE "devices/system/cpu/cpu1/online"

static bool test_hotplug(void)
{
	const char *const words[] = {probe("cycles") ? "cpu-clock" : "cycles", "context-switches",
				     NULL};
	uint64_t enabled, running, before;
	struct setup s;
	bool ok = true;
	int i;

	CHECK(!setup(&s, SYSFS_ROOT, words));
	CHECK(!setup_reader(&s));
	CHECK(!read_on(&s, 1) && !s.skel->bss->err[0]);

	unit_write(SYSFS_ROOT, CPU1_ONLINE, "0");
	CHECK(counters__refresh(s.counters, map_fd(&s)) == 1);
	CHECK(!counters__has(s.counters, 1, 0));
	CHECK(read_on(&s, 1) == -ENXIO);
	CHECK(counters__refresh(s.counters, map_fd(&s)) == 0);
	/* it cannot be opened there, and that is no error */
	CHECK(counters__reopen_cpu(s.counters, map_fd(&s), 1) == 1);
	CHECK(!counters__has(s.counters, 1, 0));

	unit_write(SYSFS_ROOT, CPU1_ONLINE, "1");
	CHECK(counters__refresh(s.counters, map_fd(&s)) == 1);
	CHECK(counters__has(s.counters, 1, 0) && counters__has(s.counters, 1, 1));
	CHECK(!read_on(&s, 1) && !s.skel->bss->err[0]);
	CHECK(counters__refresh(s.counters, map_fd(&s)) == 0);

	/* away and back before anybody looks */
	for (i = 0; i < 3; i++) {
		unit_write(SYSFS_ROOT, CPU1_ONLINE, "0");
		unit_write(SYSFS_ROOT, CPU1_ONLINE, "1");
		CHECK(counters__refresh(s.counters, map_fd(&s)) == 1);
		CHECK(!read_on(&s, 1) && !s.skel->bss->err[0]);
		CHECK(!counters__times(s.counters, 1, 0, &before, &running));
		CHECK(!counters__times(s.counters, 1, 0, &enabled, &running));
		CHECK(enabled > before);
		CHECK(counters__refresh(s.counters, map_fd(&s)) == 0);
	}
	CHECK(!counters__multiplexed(s.counters));
cleanup:
	unit_write(SYSFS_ROOT, CPU1_ONLINE, "1");
	setup_free(&s);
	return ok;
}

/* ---- what is there to test with ---- */

static bool have_cpus(unsigned int n)
{
	struct cpus online = {};
	bool yes = !cpus__read(&online, SYSFS_ROOT, "online") && cpus__count(&online) >= n &&
		   cpus__has(&online, 0) && cpus__has(&online, 1);

	cpus__free(&online);
	return yes;
}

static int paranoid(void)
{
	char *text;
	int value;

	if (sysfs__text(&text, "/proc/sys/kernel/perf_event_paranoid"))
		return 0;
	value = atoi(text);
	free(text);
	return value;
}

static bool in_lab(void)
{
	const char *where = getenv("WHERE");

	return where && !strncmp(where, "lab", 3);
}

static const char *nothing(void)
{
	return NULL;
}

static const char *no_root(void)
{
	return has_capability(CAP_SYS_ADMIN) ? NULL : "not root";
}

static const char *no_two_cpus(void)
{
	return no_root() ?: have_cpus(2) ? NULL : "CPUs 0 and 1 are not both there";
}

static const char *no_paranoia(void)
{
	return paranoid() > 0 ? NULL : "kernel.perf_event_paranoid allows it to everybody";
}

static const char *no_sys_resource(void)
{
	return no_root() ?: has_capability(CAP_SYS_RESOURCE) ? NULL : "no CAP_SYS_RESOURCE";
}

static const char *no_pmu(void)
{
	return no_root() ?: probe("cycles") || probe("instructions") ? "no PMU here" : NULL;
}

static const char *no_hotplug(void)
{
	if (no_two_cpus())
		return no_two_cpus();
	if (!in_lab())
		return "only the lab's CPUs are switched off";
	return sysfs__exists("%s/%s", SYSFS_ROOT, CPU1_ONLINE) ? NULL : "CPU 1 cannot be switched";
}

static const struct {
	const char *name;
	const char *(*missing)(void);
	bool (*test)(void);
	bool child;
} tests[] = {
	{"no metric, no event", no_root, test_none, false},
	{"an event on every online CPU", no_root, test_software, false},
	{"a program reads its CPU's events", no_root, test_map, false},
	{"an event that no PMU has", no_root, test_unknown_event, false},
	{"messages offer what works", nothing, test_messages, false},
	{"a missing capability is named", no_paranoia, test_no_capability, true},
	{"a seccomp filter is suspected", no_root, test_forbidden, true},
	{"the soft limit of open files is raised", no_root, test_soft_limit, true},
	{"the hard limit of open files is raised", no_sys_resource, test_hard_limit_raised, true},
	{"a limit that cannot be raised is told", no_root, test_hard_limit, true},
	{"CPUs come and go", no_two_cpus, test_refresh, false},
	{"the events of a CPU are exchanged", no_root, test_reopen, false},
	{"two kinds of CPUs", no_two_cpus, test_hybrid, false},
	{"broken sets of CPUs", no_root, test_broken_sets, false},
	{"events are pinned where they fit", no_pmu, test_pinned, false},
	{"events are multiplexed where they do not", no_pmu, test_multiplexed, false},
	{"a PMU type that the kernel does not know", no_pmu, test_type_unknown, false},
	{"a CPU is switched off and on", no_hotplug, test_hotplug, false},
};

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char text[1024];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), fmt, ap);
	ktap_note("%s", text);
	return 0;
}

int main(void)
{
	const char *missing;
	struct ktap k;
	size_t i;

	libbpf_set_print(quiet);
	ktap_begin(&k, ARRAY_SIZE(tests));
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		missing = tests[i].missing();
		if (missing)
			ktap_result(&k, KTAP_SKIP, tests[i].name, missing);
		else
			ktap_ok(&k, tests[i].child ? in_child(tests[i].test) : tests[i].test(),
				tests[i].name);
	}
	return ktap_end(&k);
}
