// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "sysfs.h"

/* CAP_PERFMON of 5.8; libcap's constant depends on the headers that it was built with. */
#define CAPABILITY_PERFMON 38

/* Files that are open beside the events: the profiler's programs, maps, and links. */
#define OTHER_FILES 256

/* struct perf_event_attr as of Linux 6.3: config3 behind what was there before. */
#define ATTR_SIZE_CONFIG3   136
#define ATTR_OFFSET_CONFIG3 128

/* A suspend is at least that long, and the two clocks differ by less when read after each other. */
#define SUSPEND_NS 10000000LL

/* One metric on one CPU. */
struct slot {
	int fd;	 /* -1: none */
	int why; /* negative errno of the last try, 0 if it worked or there was none */
	bool pinned;
	bool ever;
	/* of the events before this one */
	uint64_t enabled;
	uint64_t running;
};

struct counters {
	const struct metric *const *metrics;
	size_t n_metrics;
	char *sysfs_root;
	struct cpus online;
	unsigned int n_cpus; /* highest possible id + 1 */
	struct slot *slots;  /* [cpu * n_metrics + i] */
	size_t n_fds;
	bool pin;
	int uevents; /* socket, -1: none */
	int64_t asleep;
};

struct reading {
	uint64_t value;
	uint64_t enabled;
	uint64_t running;
};

/* ---- one event ---- */

static int sys_perf_event_open(const void *attr, int cpu)
{
	long fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int open_event(const struct metric_event *e, unsigned int cpu, bool pinned)
{
	union {
		struct perf_event_attr attr;
		uint8_t bytes[sizeof(struct perf_event_attr) > ATTR_SIZE_CONFIG3
				      ? sizeof(struct perf_event_attr)
				      : ATTR_SIZE_CONFIG3];
	} u;
	bool typed;
	int fd;

	memset(&u, 0, sizeof(u));
	u.attr = e->attr;
	u.attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	u.attr.pinned = pinned;
	if (e->config3) {
		memcpy(u.bytes + ATTR_OFFSET_CONFIG3, &e->config3, sizeof(e->config3));
		if (u.attr.size < ATTR_SIZE_CONFIG3)
			u.attr.size = ATTR_SIZE_CONFIG3;
	}
	fd = sys_perf_event_open(&u, (int)cpu);

	/* A kernel that does not know PMU types in a generic event's configuration (arm64 before
	 * 6.6) asks each PMU instead whether the event on this CPU is its own. */
	typed = (u.attr.type == PERF_TYPE_HARDWARE || u.attr.type == PERF_TYPE_HW_CACHE) &&
		u.attr.config >> 32;
	if (typed && (fd == -EINVAL || fd == -ENOENT)) {
		u.attr.config &= UINT32_MAX;
		fd = sys_perf_event_open(&u, (int)cpu);
	}
	return fd;
}

/* -EBUSY: a pinned event that has no counter. */
static int read_event(int fd, struct reading *r)
{
	ssize_t got = read(fd, r, sizeof(*r));

	if (got < 0)
		return -errno;
	if (got == 0)
		return -EBUSY;
	return got == sizeof(*r) ? 0 : -EIO;
}

/* The event of @m that is for @cpu; NULL if there is none. */
static const struct metric_event *event_for(const struct metric *m, const char *sysfs_root,
					    unsigned int cpu)
{
	const struct metric_event *found = NULL;
	struct cpus cpus = {};
	size_t i;

	for (i = 0; i < m->n_events; i++) {
		if (!m->events[i].some_cpus || cpus__has(&m->events[i].cpus, cpu))
			return &m->events[i];
	}
	/* A PMU of x86 lists a CPU only after that was online. */
	for (i = 0; i < m->n_events && !found; i++) {
		if (metric_event__cpus(&m->events[i], sysfs_root, &cpus) == 1 &&
		    cpus__has(&cpus, cpu))
			found = &m->events[i];
	}
	cpus__free(&cpus);
	return found;
}

int counters__probe(const struct metric_event *e, const char *sysfs_root)
{
	struct cpus online = {};
	int cpu, fd, err;

	err = cpus__read(&online, sysfs_root, "online");
	if (err)
		return err;
	err = -ENODEV;
	cpus__for_each(cpu, &online)
	{
		if (e->some_cpus && !cpus__has(&e->cpus, (unsigned int)cpu))
			continue;
		fd = open_event(e, (unsigned int)cpu, false);
		if (fd >= 0)
			close(fd);
		err = fd < 0 ? fd : 0;
		break;
	}
	cpus__free(&online);
	return err;
}

/* ---- messages ---- */

static bool has_capability(cap_value_t cap)
{
	cap_flag_value_t on = CAP_CLEAR;
	cap_t caps = cap_get_proc();

	if (!caps)
		return false;
	if (cap_get_flag(caps, cap, CAP_EFFECTIVE, &on))
		on = CAP_CLEAR;
	cap_free(caps);
	return on == CAP_SET;
}

static int explain_refusal(const struct metric *m, int rc, struct errmsg *err)
{
	char *paranoid = NULL, why[128];

	errmsg__errno(rc, why, sizeof(why));
	if (has_capability(CAPABILITY_PERFMON) || has_capability(CAP_SYS_ADMIN))
		return errmsg__fail(err, rc,
				    "the event '%s' may not be opened: %s, though the capabilities "
				    "are there: a seccomp filter, a security module or kernel "
				    "lockdown forbids it; try the metric 'ns', which needs no perf "
				    "event",
				    m->name, why);
	if (sysfs__text(&paranoid, "/proc/sys/kernel/perf_event_paranoid"))
		paranoid = NULL;
	errmsg__fail(err, rc,
		     "the event '%s' may not be opened: %s; it takes CAP_PERFMON (before Linux "
		     "5.8 CAP_SYS_ADMIN), or a kernel.perf_event_paranoid of 0 or less (it is %s)",
		     m->name, why, paranoid ? paranoid : "not readable");
	free(paranoid);
	return rc;
}

int counters__explain(const struct metric *m, int rc, struct errmsg *err)
{
	bool pmu = m->family == METRIC_PMU;
	char why[128];

	errmsg__errno(rc, why, sizeof(why));
	switch (rc) {
	case -ENOENT:
		if (m->family == METRIC_SOFTWARE)
			return errmsg__fail(err, rc, "the kernel has no '%s' event (ENOENT)",
					    m->name);
		return errmsg__fail(err, rc,
				    "%s has no '%s' event (ENOENT); try the metric 'ns', which "
				    "needs no PMU",
				    pmu ? "PMU" : "CPU", m->name);
	case -EACCES:
	case -EPERM:
		return explain_refusal(m, rc, err);
	case -EOPNOTSUPP:
	case -EINVAL:
		return errmsg__fail(err, rc,
				    "the %s cannot count '%s' on a CPU: %s; try the metric 'ns', "
				    "which needs no PMU",
				    m->family == METRIC_SOFTWARE ? "kernel" : "PMU", m->name, why);
	case -EBUSY:
		return errmsg__fail(err, rc,
				    "the event '%s' is in use elsewhere: %s; end other profilers "
				    "(or the NMI watchdog, kernel.nmi_watchdog=0), or try the "
				    "metric 'ns', which needs no PMU",
				    m->name, why);
	case -ENODEV:
	case -ENXIO:
		return errmsg__fail(err, rc,
				    "no online CPU has the PMU of '%s': %s; try the metric 'ns', "
				    "which needs no PMU",
				    m->name, why);
	case -ENOSYS:
		return errmsg__fail(err, rc,
				    "the kernel has no perf events, so no '%s': %s "
				    "(CONFIG_PERF_EVENTS); try the metric 'ns'",
				    m->name, why);
	default:
		return errmsg__fail(err, rc, "cannot open the event '%s': %s", m->name, why);
	}
}

static int explain_limit(const struct counters *c, int rc, struct errmsg *err)
{
	unsigned int n = cpus__count(&c->online);
	struct rlimit limit = {};
	char why[128];

	errmsg__errno(rc, why, sizeof(why));
	if (rc == -ENFILE || getrlimit(RLIMIT_NOFILE, &limit))
		return errmsg__fail(err, rc,
				    "the system has no more files to open: %s (fs.file-max)", why);
	return errmsg__fail(
		err, rc,
		"%u CPUs x %zu metrics need %llu open files, and some for the profiler, "
		"but the limit is %llu: %s; raise it (ulimit -Hn, LimitNOFILE=), or "
		"measure fewer metrics at once",
		n, c->n_metrics, (unsigned long long)n * c->n_metrics,
		(unsigned long long)limit.rlim_cur, why);
}

/* ---- limits ---- */

/* Makes room for the events, as far as allowed; whether it was enough, opening them will tell. */
static void raise_limit(const struct counters *c)
{
	rlim_t must = (rlim_t)cpus__count(&c->online) * c->n_metrics + OTHER_FILES;
	rlim_t want = (rlim_t)c->n_cpus * c->n_metrics + OTHER_FILES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
		return;
	if (limit.rlim_max < must) {
		struct rlimit higher = {.rlim_cur = must, .rlim_max = must};

		if (!setrlimit(RLIMIT_NOFILE, &higher))
			return;
	}
	limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return;
}

/* ---- the events of one CPU ---- */

static struct slot *slot(const struct counters *c, unsigned int cpu, size_t i)
{
	return &c->slots[cpu * c->n_metrics + i];
}

/* What is wrong with the whole undertaking, and not with an event on a CPU. */
static bool is_fatal(int rc)
{
	return rc == -EACCES || rc == -EPERM || rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM ||
	       rc == -ENOSYS;
}

static void close_slot(struct counters *c, struct slot *s)
{
	struct reading last;

	if (s->fd < 0)
		return;
	/* A map that has the event keeps it alive for a while. Off, it frees its counter now. */
	if (!ioctl(s->fd, PERF_EVENT_IOC_DISABLE, 0) && !read_event(s->fd, &last)) {
		s->enabled += last.enabled;
		s->running += last.running;
	}
	close(s->fd);
	s->fd = -1;
	c->n_fds--;
}

static void close_cpu(struct counters *c, unsigned int cpu)
{
	size_t i;

	for (i = 0; i < c->n_metrics; i++)
		close_slot(c, slot(c, cpu, i));
}

/* Opens every metric on @cpu. *fits: every pinned event got its counter. Returns 0, or a negative
 * errno that is_fatal(); then *failed is the metric. */
static int open_cpu(struct counters *c, unsigned int cpu, bool pinned, bool *fits, size_t *failed)
{
	const struct metric_event *e;
	struct reading r;
	struct slot *s;
	size_t i;

	*fits = true;
	for (i = 0; i < c->n_metrics; i++) {
		s = slot(c, cpu, i);
		e = event_for(c->metrics[i], c->sysfs_root, cpu);
		s->fd = e ? open_event(e, cpu, pinned) : -ENODEV;
		s->why = s->fd < 0 ? s->fd : 0;
		if (s->fd < 0) {
			s->fd = -1;
			if (!is_fatal(s->why))
				continue;
			*failed = i;
			return s->why;
		}
		s->pinned = pinned;
		s->ever = true;
		c->n_fds++;
	}
	for (i = 0; pinned && i < c->n_metrics; i++) {
		s = slot(c, cpu, i);
		if (s->fd >= 0 && read_event(s->fd, &r) == -EBUSY)
			*fits = false;
	}
	return 0;
}

static int open_all(struct counters *c, bool pinned, bool *fits, size_t *failed)
{
	int cpu, rc;

	*fits = true;
	cpus__for_each(cpu, &c->online)
	{
		rc = open_cpu(c, (unsigned int)cpu, pinned, fits, failed);
		if (rc || !*fits)
			return rc;
	}
	return 0;
}

static void close_all(struct counters *c)
{
	unsigned int cpu;

	for (cpu = 0; cpu < c->n_cpus; cpu++)
		close_cpu(c, cpu);
}

/* ---- CPUs that come and go ---- */

/* How long the machine has been suspended since boot, in ns. */
static int64_t time_asleep(void)
{
	struct timespec boot, mono;

	if (clock_gettime(CLOCK_MONOTONIC, &mono) || clock_gettime(CLOCK_BOOTTIME, &boot))
		return 0;
	return (boot.tv_sec - mono.tv_sec) * 1000000000LL + (boot.tv_nsec - mono.tv_nsec);
}

/* The kernel's own uevents about things that go online and offline. -1 if there are none. */
static int open_uevents(void)
{
	/* Messages start with ACTION@DEVPATH. All the others could fill the queue. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f6e6c69 /* onli */, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f66666c /* offl */, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(*code), .filter = code};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK, .nl_groups = 1};
	int fd;

	fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
	    bind(fd, (struct sockaddr *)&kernel, sizeof(kernel))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Adds to @touched the CPUs that uevents tell of; all that are open if some were dropped. */
static int drain_uevents(struct counters *c, struct cpus *touched)
{
	static const char on[] = "online@/devices/system/cpu/cpu";
	static const char off[] = "offline@/devices/system/cpu/cpu";
	struct sockaddr_nl from = {};
	socklen_t from_len;
	const char *id;
	char text[2048];
	unsigned long n;
	char *end;
	ssize_t got;
	int err;

	if (c->uevents < 0)
		return 0;
	for (;;) {
		from_len = sizeof(from);
		got = recvfrom(c->uevents, text, sizeof(text) - 1, 0, (struct sockaddr *)&from,
			       &from_len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == ENOBUFS) {
			err = cpus__copy(touched, &c->online);
			if (err)
				return err;
			continue;
		}
		if (got < 0)
			return 0; /* EAGAIN: that was all */
		if (from.nl_pid)  /* not the kernel */
			continue;
		text[got] = '\0';
		if (!strncmp(text, on, sizeof(on) - 1))
			id = text + sizeof(on) - 1;
		else if (!strncmp(text, off, sizeof(off) - 1))
			id = text + sizeof(off) - 1;
		else
			continue;
		n = strtoul(id, &end, 10);
		if (end == id || *end || n >= c->n_cpus)
			continue;
		err = cpus__add(touched, (unsigned int)n);
		if (err)
			return err;
	}
}

static int unmap_cpu(const struct counters *c, int map_fd, unsigned int cpu)
{
	uint32_t key;
	size_t i;

	for (i = 0; map_fd >= 0 && i < c->n_metrics; i++) {
		key = (uint32_t)(cpu * c->n_metrics + i);
		if (bpf_map_delete_elem(map_fd, &key) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

static int map_cpu(const struct counters *c, int map_fd, unsigned int cpu)
{
	uint32_t key;
	size_t i;

	for (i = 0; map_fd >= 0 && i < c->n_metrics; i++) {
		key = (uint32_t)(cpu * c->n_metrics + i);
		if (slot(c, cpu, i)->fd < 0)
			continue;
		if (bpf_map_update_elem(map_fd, &key, &slot(c, cpu, i)->fd, BPF_ANY))
			return -errno;
	}
	return 0;
}

/* Exchanges the events of @cpu, which is online or not as @online says. */
static int exchange_cpu(struct counters *c, int map_fd, unsigned int cpu, bool online)
{
	size_t failed, i;
	bool fits;
	int rc;

	rc = unmap_cpu(c, map_fd, cpu);
	if (rc)
		return rc;
	close_cpu(c, cpu);
	if (!online) {
		cpus__del(&c->online, cpu);
		return 0;
	}
	rc = open_cpu(c, cpu, c->pin, &fits, &failed);
	if (!rc && !fits)
		/* Somebody else took counters here meanwhile. Those who read pinned events do not
		 * scale: what runs here is lost, rather than too small. */
		rc = -EBUSY;
	if (rc == -EACCES || rc == -EPERM || rc == -EBUSY) {
		/* It was possible when the others were opened. What runs here cannot be counted,
		 * and the rest goes on. */
		close_cpu(c, cpu);
		for (i = 0; i < c->n_metrics; i++)
			slot(c, cpu, i)->why = rc;
		rc = 0;
	}
	if (!rc)
		rc = map_cpu(c, map_fd, cpu);
	if (!rc)
		rc = cpus__add(&c->online, cpu);
	return rc;
}

int counters__reopen_cpu(struct counters *c, int map_fd, unsigned int cpu)
{
	struct cpus online = {};
	int rc;

	if (cpu >= c->n_cpus)
		return -EINVAL;
	rc = cpus__read(&online, c->sysfs_root, "online");
	if (!rc)
		rc = exchange_cpu(c, map_fd, cpu, cpus__has(&online, cpu));
	cpus__free(&online);
	return rc ? rc : 1;
}

int counters__refresh(struct counters *c, int map_fd)
{
	struct cpus online = {}, touched = {};
	int64_t asleep = time_asleep();
	int rc, changed = 0;
	unsigned int cpu;
	bool now;

	/* Uevents first: one that comes after is about a change that the list below may have, and
	 * costs an exchange too many next time; the other way round it would be missed. */
	rc = drain_uevents(c, &touched);
	if (!rc)
		rc = cpus__read(&online, c->sysfs_root, "online");
	if (!rc && asleep - c->asleep > SUSPEND_NS)
		rc = cpus__copy(&touched, &c->online);
	if (rc)
		goto cleanup;
	c->asleep = asleep;
	for (cpu = 0; cpu < c->n_cpus; cpu++) {
		now = cpus__has(&online, cpu);
		if (now == cpus__has(&c->online, cpu) && !(now && cpus__has(&touched, cpu)))
			continue;
		rc = exchange_cpu(c, map_fd, cpu, now);
		if (rc)
			goto cleanup;
		changed++;
	}
cleanup:
	cpus__free(&online);
	cpus__free(&touched);
	return rc ? rc : changed;
}

/* ---- all of them ---- */

int counters__open(struct counters **out, const struct metric *const *metrics, size_t n_metrics,
		   const char *sysfs_root, struct errmsg *err)
{
	struct cpus possible = {};
	size_t i, n_slots, failed = 0;
	struct counters *c;
	char why[128];
	bool fits;
	int rc, cpu;

	*out = NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	c->uevents = -1;
	c->metrics = metrics;
	c->n_metrics = n_metrics;
	c->sysfs_root = strdup(sysfs_root);
	if (!c->sysfs_root) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	c->asleep = time_asleep();
	c->uevents = open_uevents();
	rc = cpus__read(&possible, sysfs_root, "possible");
	if (!rc)
		rc = cpus__read(&c->online, sysfs_root, "online");
	if (!rc && cpus__max(&c->online) > cpus__max(&possible))
		rc = -EINVAL;
	if (!rc && cpus__max(&c->online) < 0)
		rc = -ENODEV;
	if (rc) {
		errmsg__fail(err, rc,
			     "cannot tell which CPUs there are from %s/devices/system/cpu: %s",
			     sysfs_root, errmsg__errno(rc, why, sizeof(why)));
		goto cleanup;
	}
	c->n_cpus = (unsigned int)cpus__max(&possible) + 1;
	n_slots = c->n_cpus * n_metrics;
	c->slots = calloc(n_slots ? n_slots : 1, sizeof(*c->slots));
	if (!c->slots) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	for (i = 0; i < n_slots; i++)
		c->slots[i].fd = -1;
	raise_limit(c);

	c->pin = true;
	rc = open_all(c, true, &fits, &failed);
	if (!rc && !fits) {
		close_all(c);
		c->pin = false;
		rc = open_all(c, false, &fits, &failed);
	}
	if (rc == -EMFILE || rc == -ENFILE)
		explain_limit(c, rc, err);
	else if (rc)
		counters__explain(metrics[failed], rc, err);
	if (rc)
		goto cleanup;
	for (i = 0; i < n_metrics; i++) {
		bool somewhere = false;

		cpus__for_each(cpu, &c->online)
		{
			somewhere |= counters__has(c, (unsigned int)cpu, i);
			if (!rc || rc == -ENODEV)
				rc = slot(c, (unsigned int)cpu, i)->why;
		}
		if (!somewhere) {
			counters__explain(metrics[i], rc, err);
			goto cleanup;
		}
		rc = 0;
	}
	/* The time until here was spent on finding out whether they fit. */
	for (i = 0; i < n_slots; i++)
		c->slots[i].enabled = c->slots[i].running = 0;
	*out = c;
	c = NULL;
	rc = 0;
cleanup:
	cpus__free(&possible);
	counters__close(c);
	return rc;
}

void counters__close(struct counters *c)
{
	if (!c)
		return;
	if (c->slots)
		close_all(c);
	if (c->uevents >= 0)
		close(c->uevents);
	cpus__free(&c->online);
	free(c->slots);
	free(c->sysfs_root);
	free(c);
}

unsigned int counters__n_keys(const struct counters *c)
{
	return (unsigned int)(c->n_cpus * c->n_metrics);
}

int counters__install(struct counters *c, int map_fd)
{
	int cpu, rc;

	cpus__for_each(cpu, &c->online)
	{
		rc = map_cpu(c, map_fd, (unsigned int)cpu);
		if (rc)
			return rc;
	}
	return 0;
}

bool counters__multiplexed(const struct counters *c)
{
	size_t i;

	for (i = 0; i < c->n_cpus * c->n_metrics; i++) {
		if (c->slots[i].fd >= 0 && !c->slots[i].pinned)
			return true;
	}
	return false;
}

bool counters__has(const struct counters *c, unsigned int cpu, size_t i)
{
	return cpu < c->n_cpus && i < c->n_metrics && slot(c, cpu, i)->fd >= 0;
}

int counters__why_not(const struct counters *c, unsigned int cpu, size_t i)
{
	return cpu < c->n_cpus && i < c->n_metrics ? slot(c, cpu, i)->why : 0;
}

int counters__times(const struct counters *c, unsigned int cpu, size_t i, uint64_t *enabled,
		    uint64_t *running)
{
	struct reading r = {};
	struct slot *s;
	int rc = 0;

	*enabled = *running = 0;
	if (cpu >= c->n_cpus || i >= c->n_metrics)
		return -ENOENT;
	s = slot(c, cpu, i);
	if (!s->ever)
		return -ENOENT;
	if (s->fd >= 0)
		rc = read_event(s->fd, &r);
	if (rc)
		return rc;
	*enabled = s->enabled + r.enabled;
	*running = s->running + r.running;
	return 0;
}

const struct cpus *counters__online(const struct counters *c)
{
	return &c->online;
}

size_t counters__n_fds(const struct counters *c)
{
	return c->n_fds;
}
