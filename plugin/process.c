// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "process.h"
#include "sysfs.h"

#define ID_DIGITS 64 /* of the ids that container runtimes make */

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h; the flags in /proc/PID/stat */

/* proc(5): the inode of the pid namespace that the machine booted with (PROC_PID_INIT_INO). */
#define INITIAL_PID_NS "pid:[4026531836]"

static __u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

int process__read_stat(struct process *p, const char *proc_root, pid_t pid)
{
	unsigned long long flags, threads, ticks;
	char *text, *open, *close, state;
	long hz = sysconf(_SC_CLK_TCK);
	int rc;

	memset(p, 0, sizeof(*p));
	p->pid = pid;
	rc = sysfs__text(&text, "%s/%d/stat", proc_root, pid);
	if (rc)
		return rc;
	/* PID (COMM) STATE ...: COMM may be anything, parentheses and newlines included. */
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open ||
	    sscanf(close + 1,
		   " %c %*d %*d %*d %*d %*d %llu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %llu %*d "
		   "%llu",
		   &state, &flags, &threads, &ticks) != 4) {
		rc = -EPROTO;
		goto cleanup;
	}
	*close = '\0';
	snprintf(p->comm, sizeof(p->comm), "%s", open + 1);
	/* A process lives as long as one of its threads does, whatever became of the first. */
	p->first_ended = state == 'Z' && threads > 1;
	p->has_fds = !(flags & PF_KTHREAD) && (state != 'Z' || p->first_ended) && state != 'X';
	p->threads = threads;
	if (hz > 0)
		p->started_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
				ticks * (1000000000ULL / hz);
cleanup:
	free(text);
	return rc;
}

/* ---- containers ------------------------------------------------------------------------------ */

static bool is_id(const char *s, size_t len)
{
	size_t i;

	if (len != ID_DIGITS)
		return false;
	for (i = 0; i < len; i++)
		if (!isdigit((unsigned char)s[i]) && (s[i] < 'a' || s[i] > 'f'))
			return false;
	return true;
}

static bool starts(const char *s, size_t len, const char *with)
{
	return len >= strlen(with) && !strncmp(s, with, strlen(with));
}

static bool is(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && !strncmp(s, word, len);
}

/* Names in units of systemd have \xNN for what would not be allowed there. */
static void copy_unescaped(const char *s, size_t len, char *buf, size_t size)
{
	size_t i, n = 0;
	unsigned c;

	for (i = 0; i < len && n + 1 < size; n++) {
		if (i + 4 <= len && s[i] == '\\' && s[i + 1] == 'x' &&
		    sscanf(s + i + 2, "%2x", &c) == 1) {
			buf[n] = c;
			i += 4;
		} else {
			buf[n] = s[i++];
		}
	}
	buf[n] = '\0';
}

/* What is in a path, from the outermost to the component that is looked at. */
struct component {
	const char *s;
	size_t len;
	const char *parent; /* NULL: none */
	size_t parent_len;
	const char *next; /* "" if there is none */
	bool pods;	  /* below Kubernetes' pods */
};

/* NAME-ID, NAME-ID.scope, and, where a driver was told of systemd and is not it, SLICE:NAME:ID */
static bool named_id(const struct component *c, const char **runtime, char *id, size_t size)
{
	static const struct {
		const char *prefix, *runtime;
	} names[] = {
		{"docker", "docker"},
		{"libpod", "podman"},
		{"libpod-payload", "podman"},
		{"crio", "cri-o"},
		{"cri-containerd", "containerd"},
		{"nerdctl", "containerd"},
	};
	size_t len = c->len, i, n, prefix;
	const char *s = c->s, *colon;

	if (len > 6 && !strncmp(s + len - 6, ".scope", 6))
		len -= 6;
	if (len <= ID_DIGITS + 1 || !is_id(s + len - ID_DIGITS, ID_DIGITS))
		return false;
	prefix = len - ID_DIGITS - 1;
	if (s[prefix] == ':') {
		colon = memrchr(s, ':', prefix);
		if (colon) {
			prefix -= colon + 1 - s;
			s = colon + 1;
		}
	} else if (s[prefix] != '-') {
		return false;
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		n = strlen(names[i].prefix);
		if (prefix != n || strncmp(s, names[i].prefix, n))
			continue;
		*runtime = names[i].runtime;
		copy_unescaped(s + n + 1, ID_DIGITS, id, size);
		return true;
	}
	return false;
}

static bool bare_id(const struct component *c, const char **runtime, char *id, size_t size)
{
	if (!is_id(c->s, c->len))
		return false;
	*runtime = c->parent && is(c->parent, c->parent_len, "docker") ? "docker"
		   : c->pods					       ? "kubernetes"
								       : NULL;
	copy_unescaped(c->s, c->len, id, size);
	return true;
}

/* LXC and systemd-nspawn have names. */
static bool named(const struct component *c, const char **runtime, char *id, size_t size)
{
	static const char payload[] = "lxc.payload.", nspawn[] = "systemd-nspawn@",
			  service[] = ".service", machine[] = "machine-", scope[] = ".scope";
	const char *s = c->s;
	size_t len = c->len, begin = 0, end = 0;

	/* What starts and watches the payload is on the outside. */
	if (starts(c->next, strcspn(c->next, "/"), "supervisor"))
		return false;
	if (starts(s, len, payload)) {
		*runtime = "lxc";
		begin = strlen(payload);
	} else if (c->parent && (is(c->parent, c->parent_len, "lxc") ||
				 is(c->parent, c->parent_len, "lxc.payload"))) {
		*runtime = "lxc";
	} else if (starts(s, len, nspawn) && len > strlen(service) &&
		   !strncmp(s + len - strlen(service), service, strlen(service))) {
		*runtime = "systemd-nspawn";
		begin = strlen(nspawn);
		end = strlen(service);
	} else if (c->parent && is(c->parent, c->parent_len, "machine.slice") &&
		   starts(s, len, machine) && len > strlen(scope) &&
		   !strncmp(s + len - strlen(scope), scope, strlen(scope)) &&
		   /* libvirt's machines: not systemd's */
		   !starts(s, len, "machine-qemu\\x2d") && !starts(s, len, "machine-lxc\\x2d")) {
		*runtime = "systemd-nspawn";
		begin = strlen(machine);
		end = strlen(scope);
	} else {
		return false;
	}
	if (begin + end >= len)
		return false;
	copy_unescaped(s + begin, len - begin - end, id, size);
	return true;
}

bool process__container(const char *cgroup, const char **runtime, char *id, size_t size)
{
	static const char deleted[] = " (deleted)";
	struct component c = {};
	size_t all = strlen(cgroup);
	const char *s;
	bool found = false;

	/* The kernel's mark, on the last component. */
	if (all > strlen(deleted) && !strcmp(cgroup + all - strlen(deleted), deleted))
		all -= strlen(deleted);
	for (s = cgroup; s < cgroup + all;) {
		const char *end = memchr(s, '/', cgroup + all - s);

		if (!end)
			end = cgroup + all;
		if (end > s) {
			c.s = s;
			c.len = end - s;
			c.next = end < cgroup + all ? end + 1 : "";
			/* The innermost wins. */
			if (named_id(&c, runtime, id, size) || bare_id(&c, runtime, id, size) ||
			    named(&c, runtime, id, size))
				found = true;
			c.pods = c.pods || starts(c.s, c.len, "kubepods");
			c.parent = c.s;
			c.parent_len = c.len;
		}
		s = end + 1;
	}
	return found;
}

/* How well a line of /proc/PID/cgroup, "ID:CONTROLLERS:PATH", says where the process is: the unified
 * hierarchy, if it is in use; systemd's, which holds each process; any other but a root. */
static int rank(const char *controllers, size_t len, const char *path)
{
	if (!strcmp(path, "/"))
		return len ? 1 : 2;
	if (!len)
		return 5;
	return is(controllers, len, "name=systemd") ? 4 : 3;
}

int process__read_cgroup(struct process *p, const char *proc_root)
{
	char *text, *line, *next, *path, *controllers, id[256];
	const char *runtime = NULL, *best = NULL;
	int rc, best_rank = 0;

	rc = sysfs__text(&text, "%s/%d/cgroup", proc_root, p->pid);
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	for (line = text; line && *line; line = next) {
		int r;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		controllers = strchr(line, ':');
		path = controllers ? strchr(++controllers, ':') : NULL;
		if (!path)
			continue;
		r = rank(controllers, path - controllers, path + 1);
		path++;
		/* The line that tells the container is the one to show. */
		if (process__container(path, &runtime, id, sizeof(id)))
			r += 10;
		if (r > best_rank) {
			best_rank = r;
			best = path;
		}
	}
	if (best) {
		p->cgroup = strdup(best);
		if (!p->cgroup)
			rc = -ENOMEM;
		if (process__container(best, &p->runtime, id, sizeof(id))) {
			p->container = strdup(id);
			if (!p->container)
				rc = -ENOMEM;
		}
	}
	free(text);
	return rc;
}

void process__free(struct process *p)
{
	free(p->cgroup);
	free(p->container);
	p->cgroup = p->container = NULL;
}

/* ---- all fds of all processes ---------------------------------------------------------------- */

static int parse_id(const char *name)
{
	char *end;
	long v;

	if (!isdigit((unsigned char)name[0]))
		return -1;
	v = strtol(name, &end, 10);
	return *end || v > 0x7fffffff ? -1 : (int)v;
}

static DIR *open_dir(const char *proc_root, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static DIR *open_dir(const char *proc_root, const char *fmt, ...)
{
	char rest[64], path[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(rest, sizeof(rest), fmt, ap);
	va_end(ap);
	if (snprintf(path, sizeof(path), "%s%s", proc_root, rest) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return opendir(path);
}

/* One table of fds. Returns 0, or what the callback did. */
static int walk_table(struct process_walk *w, DIR *dir, pid_t pid, pid_t tid)
{
	char target[64];
	struct dirent *de;
	int rc = 0, fd;
	ssize_t n;

	while (!rc && (de = readdir(dir))) {
		fd = parse_id(de->d_name);
		if (fd < 0)
			continue;
		n = readlinkat(dirfd(dir), de->d_name, target, sizeof(target) - 1);
		if (n < 0)
			continue; /* closed meanwhile */
		target[n] = '\0';
		rc = w->fd(w->data, pid, tid, fd, target);
	}
	return rc;
}

/* What is gone is nothing, what is refused is counted, and what we lack ourselves is an error. */
static int judge(int err, bool *refused)
{
	switch (err) {
	case ENOENT:
	case ESRCH:
	case ENOTDIR:
		return 0;
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENAMETOOLONG:
		return -err;
	}
	*refused = true;
	return 0;
}

/* Tables of one process that have been looked at, each by a thread that has it, in the order that
 * kcmp(2) gives them, which means nothing else. */
struct tables {
	pid_t *tid;
	size_t n, max;
};

/* Has the table of @tid been looked at? If not, *@at is its place. */
static bool is_known(const struct process_walk *w, const struct tables *t, pid_t tid, size_t *at)
{
	size_t low = 0, high = t->n, mid;
	long rc;

	/* Where it cannot be told: threads that share are the rule. */
	if (t->n && !w->same_pids)
		return true;
	while (low < high) {
		mid = (low + high) / 2;
		rc = syscall(SYS_kcmp, tid, t->tid[mid], KCMP_FILES, 0, 0);
		if (rc <= 0 || rc > 2)
			return true;
		if (rc == 1)
			high = mid;
		else
			low = mid + 1;
	}
	*at = low;
	return false;
}

static int add_table(struct tables *t, pid_t tid, size_t at)
{
	pid_t *more;

	if (t->n == t->max) {
		more = realloc(t->tid, (t->max ? t->max * 2 : 16) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		t->tid = more;
		t->max = t->max ? t->max * 2 : 16;
	}
	memmove(&t->tid[at + 1], &t->tid[at], (t->n - at) * sizeof(*t->tid));
	t->tid[at] = tid;
	t->n++;
	return 0;
}

/*
 * Threads share a table, nearly always, and that of the first is all there is. But a thread can
 * have one of its own (unshare(2)), which kcmp(2) tells; and a first thread that has ended has none
 * any more, while the others go on with theirs.
 */
static int walk_threads(struct process_walk *w, const struct process *p, bool *refused)
{
	struct tables known = {};
	struct dirent *de;
	DIR *tasks, *dir;
	int rc = 0, tid;
	size_t at = 0;

	if (!p->first_ended && add_table(&known, p->pid, 0))
		return -ENOMEM;
	tasks = open_dir(w->proc_root, "/%d/task", p->pid);
	if (!tasks)
		rc = judge(errno, refused);
	while (tasks && !rc && (de = readdir(tasks))) {
		tid = parse_id(de->d_name);
		if (tid <= 0 || tid == p->pid || is_known(w, &known, tid, &at))
			continue;
		dir = open_dir(w->proc_root, "/%d/task/%d/fd", p->pid, tid);
		if (!dir) {
			rc = judge(errno, refused);
			continue;
		}
		rc = walk_table(w, dir, p->pid, tid);
		closedir(dir);
		rc = rc ?: add_table(&known, tid, at);
	}
	if (tasks)
		closedir(tasks);
	free(known.tid);
	return rc;
}

static int walk_process(struct process_walk *w, pid_t pid)
{
	bool refused = false;
	struct process p;
	DIR *dir;
	int rc;

	rc = process__read_stat(&p, w->proc_root, pid);
	if (rc) {
		rc = judge(-rc, &refused);
		goto cleanup;
	}
	w->threads += p.threads;
	if (!p.has_fds)
		return 0;
	if (!p.first_ended) {
		dir = open_dir(w->proc_root, "/%d/fd", pid);
		if (!dir) {
			rc = judge(errno, &refused);
			goto cleanup;
		}
		rc = walk_table(w, dir, pid, pid);
		closedir(dir);
	}
	if (!rc && p.threads > 1)
		rc = walk_threads(w, &p, &refused);
cleanup:
	w->unseen += refused;
	return rc;
}

/* The last but one number of "0.00 0.01 0.05 1/345 12345". */
static unsigned read_all_threads(const char *proc_root)
{
	unsigned n = 0;
	char *text;

	if (sysfs__text(&text, "%s/loadavg", proc_root))
		return 0;
	if (sscanf(text, "%*s %*s %*s %*u/%u", &n) != 1)
		n = 0;
	free(text);
	return n;
}

static bool link_is(const char *proc_root, const char *path, const char *expected)
{
	char file[4096], target[64];
	ssize_t n;

	if (snprintf(file, sizeof(file), "%s/%s", proc_root, path) >= (int)sizeof(file))
		return false;
	n = readlink(file, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return !strcmp(target, expected);
}

bool process__is_nested(const char *proc_root)
{
	return !link_is(proc_root, "self/ns/pid", INITIAL_PID_NS);
}

int process__walk(struct process_walk *w)
{
	char self[16];
	struct dirent *de;
	int rc = 0, pid;
	DIR *proc;

	w->unseen = w->threads = 0;
	w->hidden = true; /* until process 1 is seen, which is in each pid namespace */
	snprintf(self, sizeof(self), "%d", getpid());
	w->same_pids = link_is(w->proc_root, "self", self);
	w->nested = process__is_nested(w->proc_root);
	proc = opendir(w->proc_root);
	if (!proc)
		return -errno;
	while (!rc && (de = readdir(proc))) {
		pid = parse_id(de->d_name);
		if (pid <= 0)
			continue;
		if (pid == 1)
			w->hidden = false;
		rc = walk_process(w, pid);
	}
	closedir(proc);
	w->all_threads = read_all_threads(w->proc_root);
	return rc;
}

bool process__walk_incomplete(const struct process_walk *w)
{
	return w->unseen || w->hidden || w->nested;
}
