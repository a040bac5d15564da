// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "holders.h"

#define STATS_FD "anon_inode:bpf-stats" /* kernel/bpf/syscall.c */

/* An fd of somebody, and all fds in the order of the open files behind them. */
struct file {
	pid_t tid;
	int fd;
};

struct search {
	struct holders *holders;
	struct file *files;
	size_t n_files, max_files;
};

static int found(void *data, pid_t pid, pid_t tid, int fd, const char *target)
{
	struct search *s = data;
	struct holders *h = s->holders;

	if (strcmp(target, STATS_FD))
		return 0;
	if (!h->n || h->v[h->n - 1].process.pid != pid) {
		struct holder *more = realloc(h->v, (h->n + 1) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		h->v = more;
		memset(&h->v[h->n], 0, sizeof(*more));
		h->v[h->n++].process.pid = pid;
	}
	if (s->n_files == s->max_files) {
		size_t max = s->max_files ? s->max_files * 2 : 16;
		struct file *more = realloc(s->files, max * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->files = more;
		s->max_files = max;
	}
	s->files[s->n_files].tid = tid;
	s->files[s->n_files++].fd = fd;
	h->v[h->n - 1].fds++;
	h->fds++;
	return 0;
}

/*
 * How many open files are there? kcmp(2) says of two whether they are one, and else which comes
 * first in an order that means nothing: good for keeping a list sorted, and finding by halves.
 */
static int count_files(struct file *files, size_t n)
{
	size_t i, low, high, mid, distinct = 0;
	struct file file;
	long rc = 1;

	for (i = 0; i < n; i++) {
		file = files[i];
		low = 0;
		high = distinct;
		rc = 1;
		while (low < high) {
			mid = (low + high) / 2;
			rc = syscall(SYS_kcmp, file.tid, files[mid].tid, KCMP_FILE, file.fd,
				     files[mid].fd);
			if (rc < 0 || rc > 2)
				return -1; /* refused, or closed meanwhile */
			if (!rc)
				break;
			if (rc == 1)
				high = mid;
			else
				low = mid + 1;
		}
		if (!rc)
			continue;
		/* distinct <= i: what is moved up has been looked at. */
		memmove(&files[low + 1], &files[low], (distinct - low) * sizeof(*files));
		files[low] = file;
		distinct++;
	}
	return distinct;
}

static int by_pid(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	return (x->process.pid > y->process.pid) - (x->process.pid < y->process.pid);
}

/* Name, start and container; false if the process has gone meanwhile. */
static int read_process(struct holder *h, const char *proc_root, bool *gone)
{
	pid_t pid = h->process.pid;
	int rc;

	rc = process__read_stat(&h->process, proc_root, pid);
	*gone = rc == -ENOENT || rc == -ESRCH || (!rc && !h->process.has_fds);
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	return process__read_cgroup(&h->process, proc_root);
}

int holders__read(struct holders *h, const char *proc_root, struct errmsg *err)
{
	struct search s = {.holders = h};
	char buf[128];
	bool gone;
	size_t i;
	int rc;

	memset(h, 0, sizeof(*h));
	h->files = -1;
	h->seen.proc_root = proc_root;
	h->seen.fd = found;
	h->seen.data = &s;
	rc = process__walk(&h->seen);
	if (rc) {
		errmsg__fail(err, rc, "cannot look for holders in %s: %s", proc_root,
			     errmsg__errno(rc, buf, sizeof(buf)));
		goto cleanup;
	}
	if (h->seen.same_pids)
		h->files = count_files(s.files, s.n_files);
	for (i = 0; i < h->n;) {
		rc = read_process(&h->v[i], proc_root, &gone);
		if (rc) {
			errmsg__fail(err, rc, "out of memory");
			goto cleanup;
		}
		if (!gone) {
			i++;
			continue;
		}
		h->fds -= h->v[i].fds;
		h->files = -1;
		process__free(&h->v[i].process);
		h->v[i] = h->v[--h->n];
	}
	if (h->n)
		qsort(h->v, h->n, sizeof(*h->v), by_pid);
cleanup:
	free(s.files);
	h->seen.data = NULL;
	return rc;
}

void holders__close(struct holders *h)
{
	size_t i;

	if (!h)
		return;
	for (i = 0; i < h->n; i++)
		process__free(&h->v[i].process);
	free(h->v);
	h->v = NULL;
	h->n = 0;
}
