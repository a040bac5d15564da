// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "owners.h"
#include "owners.skel.h"
#include "owners_record.h"
#include "sysfs.h"

#define PROG_FD "anon_inode:bpf-prog" /* kernel/bpf/syscall.c */
#define LINK_FD "anon_inode:bpf_link"

/* All fds of programs and links that were found. */
struct records {
	struct owners_record *v;
	size_t n, max;
};

static int add(struct records *r, const struct owners_record *record)
{
	if (r->n == r->max) {
		size_t max = r->max ? r->max * 2 : 64;
		struct owners_record *more = realloc(r->v, max * sizeof(*more));

		if (!more)
			return -ENOMEM;
		r->v = more;
		r->max = max;
	}
	r->v[r->n++] = *record;
	return 0;
}

/* ---- by the iterator ------------------------------------------------------------------------- */

/* Runs through all files once; what the program writes is added to @records. */
static int run_iterator(struct bpf_link *link, struct records *records)
{
	struct owners_record buf[64];
	size_t have = 0, i;
	ssize_t n;
	int fd, rc = 0;

	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		return -errno;
	for (;;) {
		n = read(fd, (char *)buf + have, sizeof(buf) - have);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0) {
			rc = n < 0 ? -errno : have ? -EPROTO : 0;
			break;
		}
		have += n;
		for (i = 0; !rc && i < have / sizeof(*buf); i++)
			rc = add(records, &buf[i]);
		if (rc)
			break;
		memmove(buf, &buf[have / sizeof(*buf)], have % sizeof(*buf));
		have %= sizeof(*buf);
	}
	close(fd);
	return rc;
}

static int read_by_iterator(struct records *records)
{
	struct owners_bpf *skel;
	struct bpf_link *link = NULL;
	int rc;

	skel = owners_bpf__open_and_load();
	if (!skel)
		return -errno;
	link = bpf_program__attach_iter(skel->progs.bpfcost_owners, NULL);
	if (!link) {
		rc = -errno;
		goto cleanup;
	}
	skel->bss->self_tgid = getpid();
	skel->bss->self_prog_fd = bpf_program__fd(skel->progs.bpfcost_owners);
	skel->bss->self_link_fd = bpf_link__fd(link);
	rc = run_iterator(link, records);
	if (!rc && (!skel->bss->prog_ops || !skel->bss->link_ops))
		rc = -ENOENT; /* it does not see even us */
	if (rc)
		goto cleanup;
	skel->data->learn = false;
	rc = run_iterator(link, records);
cleanup:
	bpf_link__destroy(link);
	owners_bpf__destroy(skel);
	return rc;
}

/* ---- by /proc -------------------------------------------------------------------------------- */

struct fdinfo_search {
	struct records *records;
	const char *proc_root;
	pid_t refused; /* the last process whose fdinfo could not be read */
	unsigned unseen;
};

static int found(void *data, pid_t pid, pid_t tid, int fd, const char *target)
{
	struct owners_record record = {.tgid = pid, .fd = fd};
	struct fdinfo_search *s = data;
	char *text, *line;
	int rc;

	record.is_link = !strcmp(target, LINK_FD);
	if (!record.is_link && strcmp(target, PROG_FD))
		return 0;
	if (tid == pid)
		rc = sysfs__text(&text, "%s/%d/fdinfo/%d", s->proc_root, pid, fd);
	else
		rc = sysfs__text(&text, "%s/%d/task/%d/fdinfo/%d", s->proc_root, pid, tid, fd);
	if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
		return rc;
	if (rc == -EACCES || rc == -EPERM) {
		s->unseen += s->refused != pid;
		s->refused = pid;
	}
	if (rc)
		return 0; /* closed meanwhile */
	line = strstr(text, "\nprog_id:");
	if (line && sscanf(line, "\nprog_id: %u", &record.prog_id) == 1)
		rc = add(s->records, &record);
	free(text);
	return rc;
}

static int read_by_fdinfo(struct owners *o, const char *proc_root, struct records *records)
{
	struct fdinfo_search s = {.records = records, .proc_root = proc_root};
	struct process_walk w = {.proc_root = proc_root, .fd = found, .data = &s};
	int rc;

	rc = process__walk(&w);
	o->unseen = w.unseen + s.unseen;
	o->incomplete = process__walk_incomplete(&w) || s.unseen;
	return rc;
}

/* ---- what was found, in order ---------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
	const __u32 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_records(const void *a, const void *b)
{
	const struct owners_record *x = a, *y = b;

	if (x->prog_id != y->prog_id)
		return x->prog_id < y->prog_id ? -1 : 1;
	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->is_link != y->is_link)
		return x->is_link < y->is_link ? -1 : 1;
	return (x->fd > y->fd) - (x->fd < y->fd);
}

static int compare_pids(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Leaves those of the programs in question, each fd once: where the first thread has ended, the
 * iterator shows the table of the others once for each of them. We hold everything we look at
 * ourselves: that says nothing. */
static void select_records(struct records *r, const __u32 *ids, size_t n_ids)
{
	size_t i, n = 0;

	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), compare_records);
	for (i = 0; i < r->n; i++) {
		if (r->v[i].tgid == (__u32)getpid() ||
		    !bsearch(&r->v[i].prog_id, ids, n_ids, sizeof(*ids), compare_ids) ||
		    (n && !compare_records(&r->v[n - 1], &r->v[i])))
			continue;
		r->v[n++] = r->v[i];
	}
	r->n = n;
}

static int read_processes(struct owners *o, const char *proc_root, const struct records *r)
{
	size_t i, n = 0;
	int rc;

	o->processes = calloc(r->n, sizeof(*o->processes));
	if (!o->processes)
		return -ENOMEM;
	for (i = 0; i < r->n; i++) {
		o->processes[i].pid = r->v[i].tgid;
		snprintf(o->processes[i].comm, sizeof(o->processes[i].comm), "%s", r->v[i].comm);
	}
	qsort(o->processes, r->n, sizeof(*o->processes), compare_pids);
	for (i = 0; i < r->n; i++)
		if (!n || o->processes[n - 1].pid != o->processes[i].pid)
			o->processes[n++] = o->processes[i];
	o->n_processes = n;
	for (i = 0; i < n; i++) {
		struct process p;

		rc = process__read_stat(&p, proc_root, o->processes[i].pid);
		if (rc)
			continue; /* gone, or hidden: the name is known, from the iterator */
		o->processes[i] = p;
		rc = process__read_cgroup(&o->processes[i], proc_root);
		if (rc)
			return rc;
	}
	return 0;
}

static int make_owners(struct owners *o, const char *proc_root, const struct records *r)
{
	struct process key = {};
	struct owner *owner = NULL;
	size_t i;
	int rc;

	if (!r->n)
		return 0;
	rc = read_processes(o, proc_root, r);
	if (rc)
		return rc;
	o->v = calloc(r->n, sizeof(*o->v));
	if (!o->v)
		return -ENOMEM;
	for (i = 0; i < r->n; i++) {
		if (!owner || owner->prog_id != r->v[i].prog_id ||
		    owner->process->pid != (pid_t)r->v[i].tgid) {
			owner = &o->v[o->n++];
			owner->prog_id = r->v[i].prog_id;
			key.pid = r->v[i].tgid;
			owner->process = bsearch(&key, o->processes, o->n_processes,
						 sizeof(*o->processes), compare_pids);
		}
		if (r->v[i].is_link)
			owner->link_fds++;
		else
			owner->prog_fds++;
	}
	return 0;
}

int owners__read_by(struct owners *o, enum owners_how how, const char *proc_root, const __u32 *ids,
		    size_t n_ids, struct errmsg *err)
{
	struct records records = {};
	__u32 *sorted = NULL;
	char buf[128];
	int rc;

	memset(o, 0, sizeof(*o));
	o->how = how;
	if (!n_ids)
		return 0;
	sorted = malloc(n_ids * sizeof(*sorted));
	if (!sorted) {
		rc = -ENOMEM;
		goto cleanup;
	}
	memcpy(sorted, ids, n_ids * sizeof(*sorted));
	qsort(sorted, n_ids, sizeof(*sorted), compare_ids);
	if (how == OWNERS_FDINFO)
		rc = read_by_fdinfo(o, proc_root, &records);
	else
		rc = process__is_nested(proc_root) ? -EXDEV : read_by_iterator(&records);
	if (rc)
		goto cleanup;
	select_records(&records, sorted, n_ids);
	rc = make_owners(o, proc_root, &records);
cleanup:
	free(records.v);
	free(sorted);
	if (rc)
		errmsg__fail(err, rc, "cannot find the owners of programs by %s: %s",
			     how == OWNERS_ITER ? "a BPF iterator" : proc_root,
			     errmsg__errno(rc, buf, sizeof(buf)));
	return rc;
}

int owners__read(struct owners *o, const char *proc_root, const __u32 *ids, size_t n_ids,
		 struct errmsg *err)
{
	if (!owners__read_by(o, OWNERS_ITER, proc_root, ids, n_ids, NULL))
		return 0;
	owners__close(o);
	return owners__read_by(o, OWNERS_FDINFO, proc_root, ids, n_ids, err);
}

const struct owner *owners__of(const struct owners *o, __u32 prog_id, size_t *n)
{
	size_t low = 0, high = o->n, mid, i;

	while (low < high) {
		mid = (low + high) / 2;
		if (o->v[mid].prog_id < prog_id)
			low = mid + 1;
		else
			high = mid;
	}
	for (i = low; i < o->n && o->v[i].prog_id == prog_id; i++)
		;
	*n = i - low;
	return *n ? &o->v[low] : NULL;
}

void owners__close(struct owners *o)
{
	size_t i;

	if (!o)
		return;
	for (i = 0; i < o->n_processes; i++)
		process__free(&o->processes[i]);
	free(o->processes);
	free(o->v);
	memset(o, 0, sizeof(*o));
}
