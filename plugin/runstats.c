// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "cpus.h"
#include "process.h"
#include "runstats.h"

/* Files that other things need: BTF, /proc, links and maps, a pipe, what was open before. */
#define OTHER_FILES 24
/* So many are let go at once when the limit turns out to be lower than it seemed. */
#define FEWER 8
/* So many idle programs are let go at a time. */
#define PROBES 32
/* Ids begin anew at INT_MAX (bpf_prog_alloc_id() in kernel/bpf/syscall.c): near it, all of them
 * are listed. */
#define LAST_IDS (0x7fffffffU - 1000000)

/* ---- limits ---- */

static void raise_limit(struct runstats *rs)
{
	struct rlimit limit;

	rs->max_held = 0;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit higher = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};

		if (!setrlimit(RLIMIT_NOFILE, &higher))
			limit = higher;
	}
	if (limit.rlim_cur > OTHER_FILES)
		rs->max_held = limit.rlim_cur - OTHER_FILES;
}

static void unhold(struct runstats *rs, struct runstats_prog *p)
{
	if (p->how != RUNSTATS_FD)
		return;
	close(p->fd);
	p->fd = -1;
	p->how = RUNSTATS_ID;
	rs->n_held--;
}

/* Somebody else has files open as well: makes room. False if there is none to be made. */
static bool hold_fewer(struct runstats *rs)
{
	size_t i, fewer = 0;

	/* What has no id to open it by again stays: it was opened by its file. */
	for (i = rs->n; rs->list && i > 0 && fewer < FEWER; i--) {
		if (rs->v[i - 1].how == RUNSTATS_FD) {
			unhold(rs, &rs->v[i - 1]);
			fewer++;
		}
	}
	rs->max_held = rs->n_held;
	return fewer != 0;
}

/* The fd of a program, which can be closed or kept. */
static int open_id(struct runstats *rs, __u32 id, struct errmsg *err)
{
	struct errmsg tmp;
	int fd;

	do {
		memset(&tmp, 0, sizeof(tmp));
		fd = prog__fd_by_id(id, &tmp);
	} while (fd == -EMFILE && hold_fewer(rs));
	if (fd < 0 && fd != -ENOENT)
		errmsg__fail(err, fd, "%s", tmp.text);
	return fd;
}

/* ---- reading ---- */

static __u64 now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* No arrays, so that the kernel has nothing to copy but the struct. */
static int read_info(struct runstats *rs, int fd, struct bpf_prog_info *info, struct errmsg *err)
{
	__u32 len = sizeof(*info);
	char buf[128];
	int rc;

	memset(info, 0, sizeof(*info));
	rc = bpf_obj_get_info_by_fd(fd, info, &len);
	if (rc)
		return errmsg__fail(
			err, rc, "cannot read a program's info: %s%s",
			errmsg__errno(rc, buf, sizeof(buf)),
			rc == -EPERM ? "; before 5.19 that needs CAP_BPF, for example: sudo" : "");
	/* The kernel says how much of the struct it knows. */
	rs->missed_known = len >= offsetof(struct bpf_prog_info, recursion_misses) +
					  sizeof(info->recursion_misses);
	return 0;
}

static void set_counters(struct runstats_prog *p, const struct stats_counters *c)
{
	p->idle = p->row.time_ns && p->row.counters.run_cnt == c->run_cnt &&
		  p->row.counters.recursion_misses == c->recursion_misses;
	p->row.counters = *c;
	p->row.time_ns = now_ns(CLOCK_MONOTONIC);
}

static void set_info_counters(struct runstats_prog *p, const struct bpf_prog_info *info)
{
	struct stats_counters c = {
		.run_time_ns = info->run_time_ns,
		.run_cnt = info->run_cnt,
		.recursion_misses = info->recursion_misses,
	};

	set_counters(p, &c);
}

/* The name of the main function in BTF; NULL: not known. Programs of one object share their BTF. */
static const char *btf_name(struct runstats *rs, int fd, __u32 btf_id)
{
	struct bpf_func_info func = {};
	struct bpf_prog_info info = {
		.nr_func_info = 1,
		.func_info_rec_size = sizeof(func),
		.func_info = (unsigned long)&func,
	};
	const struct btf_type *t;
	__u32 len = sizeof(info);

	if (!btf_id || bpf_obj_get_info_by_fd(fd, &info, &len) || !info.nr_func_info)
		return NULL;
	if (rs->btf_id != btf_id) {
		btf__free(rs->btf);
		rs->btf = btf__load_from_kernel_by_id(btf_id);
		rs->btf_id = rs->btf ? btf_id : 0;
	}
	t = rs->btf ? btf__type_by_id(rs->btf, func.type_id) : NULL;
	return t && btf_is_func(t) ? btf__name_by_offset(rs->btf, t->name_off) : NULL;
}

/* BTF takes longer to read than all the rest, so that it is left where it has nothing to add. */
static int read_name(struct runstats *rs, struct runstats_prog *p, int fd,
		     const struct bpf_prog_info *info)
{
	const char *full = NULL;

	memcpy(p->kname, info->name, sizeof(p->kname) - 1);
	if (rs->by_name || !p->kname[0] || strlen(p->kname) == sizeof(p->kname) - 1)
		full = btf_name(rs, fd, info->btf_id);
	p->name = strdup(full && *full ? full : p->kname);
	return p->name ? 0 : -ENOMEM;
}

/* ---- what is looked at ---- */

static bool matches(const struct runstats *rs, const struct prog_filter *f,
		    const struct runstats_prog *p)
{
	switch (f->handle) {
	case PROG_ALL:
		return true;
	case PROG_TAG:
		return !memcmp(f->tag, p->row.tag, sizeof(f->tag));
	case PROG_NAME:
		return !strcmp(f->word, p->name) || !strcmp(f->word, p->kname);
	case PROG_ID:
		/* Else it was there at the beginning; a later one is another program. */
		return rs->fdinfo && f->id == p->row.id;
	case PROG_PINNED:
		break;
	}
	return false;
}

static bool is_wanted(const struct runstats *rs, const struct runstats_prog *p)
{
	size_t i;

	for (i = 0; i < rs->n_filters; i++)
		if (matches(rs, &rs->filters[i], p))
			return true;
	return !rs->n_filters;
}

static int compare(const void *a, const void *b)
{
	const struct runstats_prog *x = a, *y = b;

	return stats_row__compare(&x->row, &y->row);
}

static struct runstats_prog *find(const struct runstats *rs, const struct stats_row *row)
{
	const struct runstats_prog key = {.row = *row};

	return rs->n ? bsearch(&key, rs->v, rs->n, sizeof(*rs->v), compare) : NULL;
}

const struct runstats_prog *runstats__find(const struct runstats *rs, const struct stats_row *row)
{
	return find(rs, row);
}

/* Takes @p over. */
static int append(struct runstats *rs, struct runstats_prog *p)
{
	struct runstats_prog *v;
	size_t size;

	if (rs->n == rs->size) {
		size = rs->size ? rs->size * 2 : 64;
		v = realloc(rs->v, size * sizeof(*v));
		if (!v)
			return -ENOMEM;
		rs->v = v;
		rs->size = size;
	}
	rs->v[rs->n++] = *p;
	if (rs->n > 1 && compare(&rs->v[rs->n - 2], &rs->v[rs->n - 1]) > 0)
		qsort(rs->v, rs->n, sizeof(*rs->v), compare);
	return 0;
}

/*
 * Adds the program behind @fd, which is taken over, if it @must or belongs to what is looked at.
 * One that could have been in @from goes there.
 */
static int add_fd(struct runstats *rs, int fd, bool must, struct stats_sample *from,
		  struct errmsg *err)
{
	struct runstats_prog p = {.how = RUNSTATS_FD, .fd = fd};
	struct bpf_prog_info info;
	struct stats_row *row;
	int rc;

	rc = read_info(rs, fd, &info, err);
	if (rc)
		goto cleanup;
	p.type = info.type;
	p.btf_id = info.btf_id;
	p.row.id = info.id;
	p.row.load_time = info.load_time;
	memcpy(p.row.tag, info.tag, sizeof(p.row.tag));
	set_info_counters(&p, &info);
	rc = read_name(rs, &p, fd, &info);
	if (rc) {
		errmsg__fail(err, rc, "out of memory");
		goto cleanup;
	}
	if ((!must && !is_wanted(rs, &p)) || find(rs, &p.row))
		goto cleanup;
	if (from && info.load_time <= from->boot_ns && info.id <= from->last_id) {
		row = stats_sample__add(from);
		if (!row) {
			rc = errmsg__fail(err, -ENOMEM, "out of memory");
			goto cleanup;
		}
		*row = p.row;
		row->late = true;
		stats_sample__sort(from);
	}
	/* A file that is not in the list of ids cannot be opened again. */
	if (rs->n_held >= rs->max_held && !must) {
		close(fd);
		p.fd = -1;
		p.how = RUNSTATS_ID;
	}
	rc = append(rs, &p);
	if (rc) {
		errmsg__fail(err, rc, "out of memory");
		goto cleanup;
	}
	rs->n_held += p.how == RUNSTATS_FD;
	return 0;
cleanup:
	free(p.name);
	if (p.fd >= 0)
		close(p.fd);
	return rc;
}

static int list_ids(struct runstats *rs, struct stats_sample *from, struct errmsg *err)
{
	__u32 id = rs->listed_id > LAST_IDS ? 0 : rs->listed_id;
	char buf[128];
	int fd, rc;

	while (!bpf_prog_get_next_id(id, &id)) {
		if (id > rs->listed_id)
			rs->listed_id = id;
		fd = open_id(rs, id, err);
		if (fd == -ENOENT) /* unloaded since it was listed */
			continue;
		if (fd < 0)
			return fd;
		rs->n_seen++;
		rc = add_fd(rs, fd, false, from, err);
		if (rc)
			return rc;
	}
	if (rs->listed_id > rs->last_id)
		rs->last_id = rs->listed_id;
	if (errno == ENOENT)
		return 0;
	rc = -errno;
	return errmsg__fail(err, rc, "cannot list programs: %s%s",
			    errmsg__errno(rc, buf, sizeof(buf)),
			    rc == -EPERM ? "; it needs CAP_SYS_ADMIN, for example: sudo" : "");
}

/* ---- /proc/PID/fdinfo ---- */

struct walk {
	struct runstats *rs;
	struct errmsg *err;
};

static bool field(const char *line, const char *key, __u64 *value)
{
	size_t len = strlen(key);

	return !strncmp(line, key, len) && line[len] == ':' &&
	       sscanf(line + len + 1, "%" SCNu64, (uint64_t *)value) == 1;
}

/* bpf_prog_show_fdinfo() in kernel/bpf/syscall.c. 1, 0 if it is gone, or a negative errno if it is
 * we who lack something. */
static int read_fdinfo(struct runstats *rs, pid_t tid, int fd, struct runstats_prog *p,
		       struct stats_counters *c)
{
	bool missed = false, counted = false;
	char path[256], line[256];
	unsigned int byte;
	__u64 value;
	FILE *f;
	int i;

	snprintf(path, sizeof(path), "%s/%d/fdinfo/%d", rs->proc_root ? rs->proc_root : "/proc",
		 tid, fd);
	f = fopen(path, "re");
	if (!f)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
	while (fgets(line, sizeof(line), f)) {
		if (field(line, "prog_id", &value))
			p->row.id = value;
		else if (field(line, "prog_type", &value))
			p->type = value;
		else if (field(line, "run_time_ns", &c->run_time_ns))
			counted = true;
		else if (field(line, "recursion_misses", &c->recursion_misses))
			missed = true;
		else if (!field(line, "run_cnt", &c->run_cnt) && !strncmp(line, "prog_tag:\t", 10))
			for (i = 0; i < 8 && sscanf(line + 10 + 2 * i, "%2x", &byte) == 1; i++)
				p->row.tag[i] = byte;
	}
	fclose(f);
	rs->missed_known = missed;
	return p->row.id && counted;
}

static int walk_fd(void *data, pid_t pid, pid_t tid, int fd, const char *target)
{
	struct runstats_prog p = {.how = RUNSTATS_FDINFO, .fd = -1}, *known;
	struct walk *w = data;
	struct stats_counters c = {};
	int rc;

	(void)pid;
	if (!strstr(target, "bpf-prog"))
		return 0;
	rc = read_fdinfo(w->rs, tid, fd, &p, &c);
	if (rc <= 0)
		return rc;
	known = find(w->rs, &p.row);
	if (known) {
		known->seen = true;
		known->row.gone = known->reported = false;
		set_counters(known, &c);
		return 0;
	}
	p.seen = true;
	p.name = strdup("");
	if (!p.name)
		return errmsg__fail(w->err, -ENOMEM, "out of memory");
	set_counters(&p, &c);
	if (!is_wanted(w->rs, &p)) {
		free(p.name);
		return 0;
	}
	rc = append(w->rs, &p);
	if (rc) {
		free(p.name);
		return errmsg__fail(w->err, rc, "out of memory");
	}
	return 0;
}

static int walk(struct runstats *rs, struct errmsg *err)
{
	struct walk w = {.rs = rs, .err = err};
	struct process_walk pw = {.proc_root = rs->proc_root, .fd = walk_fd, .data = &w};
	char buf[128];
	size_t i;
	int rc;

	for (i = 0; i < rs->n; i++)
		rs->v[i].seen = false;
	rc = process__walk(&pw);
	if (rc)
		return errmsg__fail(err, rc, "cannot look at the processes in /proc: %s",
				    errmsg__errno(rc, buf, sizeof(buf)));
	for (i = 0; i < rs->n; i++)
		if (rs->v[i].how == RUNSTATS_FDINFO && !rs->v[i].seen)
			rs->v[i].row.gone = true;
	return 0;
}

/* ---- the outside ---- */

int runstats__look(struct runstats *rs, struct stats_sample *from, struct errmsg *err)
{
	return rs->list && !rs->fdinfo ? list_ids(rs, from, err) : 0;
}

/* One that its filter names, and no other. */
static int open_one(struct runstats *rs, const struct prog_filter *f, struct errmsg *err)
{
	struct errmsg tmp = {};
	int fd;

	if (f->handle == PROG_PINNED) {
		fd = prog_filter__open_pinned(f, err);
		return fd < 0 ? fd : add_fd(rs, fd, true, NULL, err);
	}
	fd = prog__fd_by_id(f->id, &tmp);
	if (fd == -ENOENT) /* bad input */
		return errmsg__usage(err, "%s", tmp.text);
	if (fd == -EPERM)
		return fd;
	if (fd < 0)
		return errmsg__fail(err, fd, "%s", tmp.text);
	return add_fd(rs, fd, true, NULL, err);
}

static bool is_one(const struct prog_filter *f)
{
	return f->handle == PROG_ID || f->handle == PROG_PINNED;
}

/* Of what a filter names there must be one, now. */
static int check(const struct runstats *rs, struct errmsg *err)
{
	size_t i, k;

	for (i = 0; i < rs->n_filters; i++) {
		const struct prog_filter *f = &rs->filters[i];

		if (f->handle != PROG_NAME && f->handle != PROG_TAG)
			continue;
		for (k = 0; k < rs->n && !matches(rs, f, &rs->v[k]); k++)
			;
		if (k == rs->n)
			return prog_filter__no_match(f, err);
	}
	return 0;
}

/* Are those that were named by their ids among them? */
static bool has_ids(const struct runstats *rs)
{
	size_t i, k;

	for (i = 0; i < rs->n_filters; i++) {
		if (rs->filters[i].handle != PROG_ID)
			continue;
		for (k = 0; k < rs->n && rs->filters[i].id != rs->v[k].row.id; k++)
			;
		if (k == rs->n)
			return false;
	}
	return true;
}

/* Who may not open programs by their ids still sees those of its own processes. */
static int fall_back(struct runstats *rs, const struct errmsg *why, struct errmsg *err)
{
	int rc;

	if (rs->by_name)
		return errmsg__fail(err, -EPERM, "%s", why->text);
	rs->fdinfo = rs->list = true;
	rc = walk(rs, err);
	if (rc)
		return rc;
	if (!rs->n || !has_ids(rs))
		return errmsg__fail(err, -EPERM,
				    "%s; without it, programs that your own processes have open "
				    "can be read (/proc/PID/fdinfo), but they have none that was "
				    "asked for",
				    why->text);
	return 0;
}

int runstats__open(struct runstats *rs, const struct prog_filter *filters, size_t n_filters,
		   struct errmsg *err)
{
	struct errmsg why = {};
	bool refused = false;
	size_t i;
	int rc;

	rs->filters = filters;
	rs->n_filters = n_filters;
	rs->list = !n_filters;
	raise_limit(rs);
	for (i = 0; i < n_filters; i++) {
		rs->by_name |= filters[i].handle == PROG_NAME;
		rs->list |= !is_one(&filters[i]);
	}
	for (i = 0; i < n_filters; i++) {
		if (!is_one(&filters[i]))
			continue;
		rc = open_one(rs, &filters[i], err);
		if (rc == -EPERM && filters[i].handle == PROG_ID) {
			refused = true;
			errmsg__fail(&why, rc,
				     "cannot open program %u: Operation not permitted (EPERM); it "
				     "needs CAP_SYS_ADMIN, for example: sudo",
				     filters[i].id);
		} else if (rc) {
			return rc;
		}
	}
	if (!refused && rs->list) {
		rc = list_ids(rs, NULL, &why);
		refused = rc == -EPERM;
		if (rc && !refused)
			return errmsg__fail(err, rc, "%s", why.text);
	}
	if (refused) {
		rc = fall_back(rs, &why, err);
		if (rc)
			return rc;
	}
	return check(rs, err);
}

/* Ids that were given out meanwhile, even if those programs are gone. */
static void probe_id(struct runstats *rs)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int fd;

	fd = prog__load_empty(BPF_PROG_TYPE_SOCKET_FILTER, "bpfcost_probe");
	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.id > rs->last_id) {
		rs->last_id = info.id;
		rs->n_seen++;
	}
	close(fd);
}

void runstats__skip_ids(struct runstats *rs)
{
	__u32 last_id = rs->last_id;

	if (!rs->list || rs->fdinfo)
		return;
	probe_id(rs);
	if (rs->last_id > last_id)
		rs->n_seen += rs->last_id - last_id - 1;
}

static void drop_gone(struct runstats *rs)
{
	size_t i, n = 0;

	for (i = 0; i < rs->n; i++) {
		struct runstats_prog *p = &rs->v[i];

		if (p->dropped || (p->row.gone && p->reported)) {
			unhold(rs, p);
			free(p->name);
		} else {
			rs->v[n++] = *p;
		}
	}
	rs->n = n;
}

/* Is it there, and the same? Its fd, or -1; then it is gone. */
static int reopen(struct runstats *rs, struct runstats_prog *p, struct bpf_prog_info *info,
		  struct errmsg *err)
{
	int fd, rc;

	fd = open_id(rs, p->row.id, err);
	if (fd == -ENOENT) {
		p->row.gone = true;
		return 0;
	}
	if (fd < 0)
		return fd;
	rc = read_info(rs, fd, info, err);
	if (!rc && (info->load_time != p->row.load_time ||
		    memcmp(info->tag, p->row.tag, sizeof(info->tag)))) {
		/* The id is used again, for a program that is listed by itself. */
		p->row.gone = true;
	}
	if (!rc && !p->row.gone)
		return fd;
	close(fd);
	return rc;
}

static int read_prog(struct runstats *rs, struct runstats_prog *p, struct errmsg *err)
{
	struct bpf_prog_info info;
	int fd, rc;

	if (p->how == RUNSTATS_FDINFO || p->row.gone)
		return 0;
	if (p->how == RUNSTATS_FD) {
		rc = read_info(rs, p->fd, &info, err);
		if (rc)
			return rc;
	} else {
		fd = reopen(rs, p, &info, err);
		if (fd <= 0)
			return fd;
		close(fd);
	}
	set_info_counters(p, &info);
	return 0;
}

static unsigned count_online(const struct runstats *rs)
{
	struct cpus online = {};
	unsigned n = 0;

	if (!cpus__read(&online, rs->sysfs_root ? rs->sysfs_root : "/sys", "online"))
		n = cpus__count(&online);
	cpus__free(&online);
	return n ? n : sysconf(_SC_NPROCESSORS_ONLN);
}

int runstats__read(struct runstats *rs, struct stats_sample *s, bool probe, struct errmsg *err)
{
	struct stats_row *row;
	size_t i;
	int rc;

	stats_sample__reset(s);
	drop_gone(rs);
	s->online_cpus = count_online(rs);
	s->time_ns = now_ns(CLOCK_MONOTONIC);
	s->boot_ns = now_ns(CLOCK_BOOTTIME);
	if (probe && rs->list && !rs->fdinfo)
		probe_id(rs);
	rc = rs->fdinfo ? walk(rs, err) : runstats__look(rs, NULL, err);
	if (rc)
		return rc;
	for (i = 0; i < rs->n; i++) {
		struct runstats_prog *p = &rs->v[i];

		rc = read_prog(rs, p, err);
		if (rc)
			return rc;
		row = stats_sample__add(s);
		if (!row)
			return errmsg__fail(err, -ENOMEM, "out of memory");
		*row = p->row;
		p->reported = p->row.gone;
	}
	stats_sample__sort(s);
	s->missed_known = rs->missed_known;
	/* Only a full list says which ids were there. */
	s->last_id = rs->fdinfo ? 0 : rs->last_id;
	s->n_seen = rs->n_seen;
	return 0;
}

/* Looks once more, so that nothing is lost; then nobody but us can have it run. */
static int let_go(struct runstats *rs, struct runstats_prog *p, struct errmsg *err)
{
	struct bpf_prog_info info;
	int fd, rc;

	rc = read_info(rs, p->fd, &info, err);
	if (rc || info.run_cnt != p->row.counters.run_cnt ||
	    info.recursion_misses != p->row.counters.recursion_misses)
		return rc;
	unhold(rs, p);
	fd = reopen(rs, p, &info, err);
	if (fd < 0)
		return fd;
	p->dropped = !fd;
	if (!fd)
		return 0;
	p->fd = fd;
	p->how = RUNSTATS_FD;
	rs->n_held++;
	return 0;
}

int runstats__let_go(struct runstats *rs, struct errmsg *err)
{
	size_t i, left = PROBES;
	int rc = 0;

	if (!rs->list || rs->fdinfo)
		return 0;
	for (i = 0; i < rs->n && left && !rc; i++) {
		struct runstats_prog *p;

		rs->next_probe = rs->next_probe < rs->n ? rs->next_probe : 0;
		p = &rs->v[rs->next_probe++];
		if (p->how != RUNSTATS_FD || !p->idle || p->row.gone || p->dropped)
			continue;
		left--;
		rc = let_go(rs, p, err);
	}
	return rc;
}

const char *runstats__how(const struct runstats *rs, char *buf, size_t size)
{
	size_t i, len, n[3] = {};

	for (i = 0; i < rs->n; i++)
		n[rs->v[i].how]++;
	if (rs->fdinfo)
		snprintf(buf, size, "programs read from /proc/PID/fdinfo: %zu", n[RUNSTATS_FDINFO]);
	else
		snprintf(buf, size,
			 "programs read by fds that are kept (BPF_OBJ_GET_INFO_BY_FD): %zu",
			 n[RUNSTATS_FD]);
	len = strlen(buf);
	if (n[RUNSTATS_ID])
		snprintf(buf + len, size - len,
			 ", by fds that are opened each time, as the limit of open files is too "
			 "low: %zu",
			 n[RUNSTATS_ID]);
	return buf;
}

void runstats__close(struct runstats *rs)
{
	size_t i;

	if (!rs)
		return;
	for (i = 0; i < rs->n; i++) {
		unhold(rs, &rs->v[i]);
		free(rs->v[i].name);
	}
	free(rs->v);
	btf__free(rs->btf);
	rs->v = NULL;
	rs->btf = NULL;
	rs->n = rs->size = 0;
}
