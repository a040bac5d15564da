// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "caps.h"
#include "parse.h"
#include "progs.h"

const char *prog__type_name(__u32 type, char *buf, size_t size)
{
	const char *name = libbpf_bpf_prog_type_str(type);

	if (name)
		return name;
	snprintf(buf, size, "type %u", type);
	return buf;
}

static bool can_be_memlock(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	       caps__have(CAP_BPF);
}

int prog__load_empty(__u32 type, const char *name)
{
	const struct bpf_insn empty[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
	int fd, i;

	for (i = 0;; i++) {
		fd = bpf_prog_load(type, name, "GPL", empty, 2, NULL);
		if (fd != -EPERM || i == 20 || !can_be_memlock())
			return fd;
		nanosleep(&moment, NULL);
	}
}

void prog__close(struct prog *p)
{
	size_t i;

	if (!p)
		return;
	for (i = 0; i < p->n_funcs; i++)
		free(p->funcs[i].name);
	free(p->funcs);
	free(p->name);
	if (p->fd >= 0)
		close(p->fd);
	memset(p, 0, sizeof(*p));
	p->fd = -1;
}

void progs__close(struct progs *progs)
{
	size_t i;

	if (!progs)
		return;
	for (i = 0; i < progs->n; i++)
		prog__close(&progs->v[i]);
	free(progs->v);
	progs->v = NULL;
	progs->n = 0;
}

/* Function names and numbers of arguments, from the program's BTF. */
static int read_funcs(struct prog *p, __u32 n, __u32 rec_size)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info), i;
	struct btf *btf = NULL;
	void *rec = NULL;
	int err = 0;

	btf = btf__load_from_kernel_by_id(p->btf_id);
	if (!btf)
		return -errno;
	rec = calloc(n, rec_size);
	p->funcs = calloc(n, sizeof(*p->funcs));
	if (!rec || !p->funcs) {
		err = -ENOMEM;
		goto cleanup;
	}
	info.nr_func_info = n;
	info.func_info_rec_size = rec_size;
	info.func_info = (unsigned long)rec;
	err = bpf_obj_get_info_by_fd(p->fd, &info, &len);
	if (err)
		goto cleanup;
	for (i = 0; i < n; i++) {
		const struct bpf_func_info *fi = rec + (size_t)i * rec_size;
		const struct btf_type *t = btf__type_by_id(btf, fi->type_id);
		const char *name;

		if (!t || !btf_is_func(t)) {
			err = -EINVAL;
			goto cleanup;
		}
		name = btf__name_by_offset(btf, t->name_off);
		p->funcs[i].name = strdup(name ? name : "");
		if (!p->funcs[i].name) {
			err = -ENOMEM;
			goto cleanup;
		}
		p->n_funcs = i + 1;
		t = btf__type_by_id(btf, t->type);
		if (t && btf_is_func_proto(t))
			p->funcs[i].args = btf_vlen(t);
	}
cleanup:
	free(rec);
	btf__free(btf);
	return err;
}

int prog__open_fd(struct prog *p, int fd, struct errmsg *err)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	char buf[128];
	int rc;

	memset(p, 0, sizeof(*p));
	p->fd = fd;
	rc = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (rc) {
		rc = errmsg__fail(err, rc, "cannot read the program's info: %s",
				  errmsg__errno(rc, buf, sizeof(buf)));
		goto cleanup;
	}
	p->id = info.id;
	p->type = info.type;
	p->jited = info.jited_prog_len != 0;
	p->btf_id = info.btf_id;
	p->load_time = info.load_time;
	memcpy(p->tag, info.tag, sizeof(p->tag));
	memcpy(p->kname, info.name, sizeof(p->kname));
	p->kname[sizeof(p->kname) - 1] = '\0';
	if (p->btf_id && info.nr_func_info) {
		/* A program whose BTF cannot be read is still a program; it only has no name
		 * beyond the kernel's, and no function to attach to. */
		rc = read_funcs(p, info.nr_func_info, info.func_info_rec_size);
		if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE) {
			errmsg__fail(err, rc, "prog %u: cannot read its BTF: %s", p->id,
				     errmsg__errno(rc, buf, sizeof(buf)));
			goto cleanup;
		}
	}
	p->name = strdup(p->n_funcs && p->funcs[0].name[0] ? p->funcs[0].name : p->kname);
	if (!p->name) {
		rc = errmsg__fail(err, -ENOMEM, "prog %u: out of memory", p->id);
		goto cleanup;
	}
	return 0;
cleanup:
	prog__close(p);
	return rc;
}

int prog__fd_by_id(__u32 id, struct errmsg *err)
{
	char buf[128];
	int fd, rc;

	fd = bpf_prog_get_fd_by_id(id);
	if (fd >= 0)
		return fd;
	rc = -errno;
	if (rc == -ENOENT)
		return errmsg__fail(err, rc,
				    "there is no program with id %u (ENOENT); "
				    "'bpftool prog show' lists those loaded",
				    id);
	if (rc == -EPERM)
		return errmsg__fail(err, rc,
				    "cannot open program %u: %s; it needs CAP_SYS_ADMIN, "
				    "for example: sudo",
				    id, errmsg__errno(rc, buf, sizeof(buf)));
	return errmsg__fail(err, rc, "cannot open program %u: %s", id,
			    errmsg__errno(rc, buf, sizeof(buf)));
}

int prog__open_id(struct prog *p, __u32 id, struct errmsg *err)
{
	int fd = prog__fd_by_id(id, err);

	if (fd >= 0)
		return prog__open_fd(p, fd, err);
	memset(p, 0, sizeof(*p));
	p->fd = -1;
	return fd;
}

int progs__for_each_id(int (*fn)(__u32 id, void *data), void *data)
{
	__u32 id = 0;
	int rc;

	while (!bpf_prog_get_next_id(id, &id)) {
		rc = fn(id, data);
		if (rc)
			return rc;
	}
	return errno == ENOENT ? 0 : -errno;
}

static int add(struct progs *progs, struct prog *p)
{
	struct prog *v;
	size_t i;

	/* `id 4 name x` may name one program twice; it is one row. */
	for (i = 0; i < progs->n; i++) {
		if (progs->v[i].id == p->id) {
			prog__close(p);
			return 0;
		}
	}
	v = realloc(progs->v, (progs->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	progs->v = v;
	v[progs->n++] = *p;
	return 0;
}

struct match {
	const struct prog_filter *filter;
	struct progs *progs;
	struct errmsg *err;
	int found;
};

static bool matches(const struct prog_filter *f, const struct prog *p)
{
	switch (f->handle) {
	case PROG_ALL:
		return true;
	case PROG_TAG:
		return !memcmp(f->tag, p->tag, sizeof(f->tag));
	case PROG_NAME:
		return !strcmp(f->word, p->name) || !strcmp(f->word, p->kname);
	default:
		return false;
	}
}

static int match_id(__u32 id, void *data)
{
	struct match *m = data;
	struct errmsg tmp = {};
	struct prog p;
	int rc;

	rc = prog__open_id(&p, id, &tmp);
	if (rc == -ENOENT) /* unloaded since it was listed */
		return 0;
	if (rc)
		return errmsg__fail(m->err, rc, "%s", tmp.text);
	if (!matches(m->filter, &p)) {
		prog__close(&p);
		return 0;
	}
	m->found++;
	rc = add(m->progs, &p);
	if (rc) {
		prog__close(&p);
		return errmsg__fail(m->err, rc, "out of memory");
	}
	return 0;
}

static int find(struct match *m)
{
	char buf[128];
	int rc;

	rc = progs__for_each_id(match_id, m);
	if (rc == -EPERM)
		return errmsg__fail(m->err, rc,
				    "cannot list programs: %s; it needs CAP_SYS_ADMIN, "
				    "for example: sudo",
				    errmsg__errno(rc, buf, sizeof(buf)));
	if (rc)
		return errmsg__fail(m->err, rc, "cannot list programs: %s",
				    errmsg__errno(rc, buf, sizeof(buf)));
	return m->found;
}

static int parse_tag(const char *word, __u8 tag[8])
{
	unsigned int byte;
	int i;

	if (strlen(word) != 16 || strspn(word, "0123456789abcdefABCDEF") != 16)
		return -EINVAL;
	for (i = 0; i < 8; i++) {
		if (sscanf(word + 2 * i, "%2x", &byte) != 1)
			return -EINVAL;
		tag[i] = byte;
	}
	return 0;
}

/* The kind of a bpf object is in the name of its inode (bpftool looks there as well). Negative
 * errno if it cannot be seen. */
static int is_prog(int fd)
{
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	return strstr(target, "bpf-prog") != NULL;
}

bool progs__is_handle(const char *word)
{
	return !strcmp(word, "id") || !strcmp(word, "tag") || !strcmp(word, "name") ||
	       !strcmp(word, "pinned") || !strcmp(word, "all");
}

static int parse_handle(const char *word, enum prog_handle *handle)
{
	static const struct {
		const char *word;
		enum prog_handle handle;
	} handles[] = {
		{"id", PROG_ID},	 {"tag", PROG_TAG}, {"name", PROG_NAME},
		{"pinned", PROG_PINNED}, {"all", PROG_ALL},
	};
	size_t i;

	for (i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
		if (parse__is_prefix(word, handles[i].word)) {
			*handle = handles[i].handle;
			return 0;
		}
	}
	return -EINVAL;
}

int prog_filter__parse(struct prog_filter *f, int *argc, char ***argv, struct errmsg *err)
{
	unsigned long long id;
	const char *word;

	memset(f, 0, sizeof(*f));
	if (*argc < 1)
		return errmsg__usage(err, "a program is missing: "
					  "{ id ID | tag TAG | name NAME | pinned FILE } or all");
	word = **argv;
	if (parse_handle(word, &f->handle))
		return errmsg__usage(
			err, "expected 'id', 'tag', 'name', 'pinned' or 'all', got: '%s'", word);
	--*argc, ++*argv;
	if (f->handle == PROG_ALL)
		return 0;
	if (*argc < 1)
		return errmsg__usage(err, "'%s' needs a value", word);
	f->word = **argv;
	--*argc, ++*argv;
	if (f->handle == PROG_ID) {
		if (parse__number(f->word, 1, 0xffffffffULL, &id))
			return errmsg__usage(err, "'%s' is not a program id", f->word);
		f->id = id;
	}
	if (f->handle == PROG_TAG && parse_tag(f->word, f->tag))
		return errmsg__usage(err, "'%s' is not a tag: 16 hexadecimal digits", f->word);
	return 0;
}

int prog_filter__open_pinned(const struct prog_filter *f, struct errmsg *err)
{
	char buf[128];
	int fd, rc;

	fd = bpf_obj_get(f->word);
	if (fd < 0) {
		rc = -errno;
		errmsg__errno(rc, buf, sizeof(buf));
		if (rc == -EPERM)
			return errmsg__fail(err, rc,
					    "cannot open the pinned program '%s': %s; it "
					    "needs CAP_BPF, for example: sudo",
					    f->word, buf);
		if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
			return errmsg__fail(err, rc, "cannot open the pinned program '%s': %s",
					    f->word, buf);
		/* What is not in a bpffs is EACCES, as is a file that may not be read. */
		return errmsg__usage(err, "cannot open the pinned program '%s': %s%s", f->word, buf,
				     rc == -EACCES ? "; is it a file of a bpf file system?" : "");
	}
	/* A map's info has other fields in the same bytes: ask what it is first. */
	rc = is_prog(fd);
	if (rc > 0)
		return fd;
	close(fd);
	if (!rc)
		return errmsg__usage(err, "'%s' is pinned, but is not a program", f->word);
	return errmsg__fail(err, rc,
			    "cannot see whether the pinned '%s' is a program: /proc/self/fd: %s; "
			    "it needs /proc, or: id ID",
			    f->word, errmsg__errno(rc, buf, sizeof(buf)));
}

int prog_filter__no_match(const struct prog_filter *f, struct errmsg *err)
{
	return errmsg__usage(err, "no loaded program has the %s '%s'",
			     f->handle == PROG_TAG ? "tag" : "name", f->word);
}

int progs__parse(struct progs *progs, int *argc, char ***argv, struct errmsg *err)
{
	struct prog_filter f;
	struct match m = {.filter = &f, .progs = progs, .err = err};
	struct prog p = {.fd = -1};
	struct errmsg tmp = {};
	int rc, fd;

	rc = prog_filter__parse(&f, argc, argv, err);
	if (rc)
		return rc;
	switch (f.handle) {
	case PROG_ID:
		rc = prog__open_id(&p, f.id, &tmp);
		/* Who names an id that is not there has given bad input. */
		if (rc == -ENOENT)
			return errmsg__usage(err, "%s", tmp.text);
		if (rc)
			return errmsg__fail(err, rc, "%s", tmp.text);
		break;
	case PROG_PINNED:
		fd = prog_filter__open_pinned(&f, err);
		rc = fd < 0 ? fd : prog__open_fd(&p, fd, err);
		break;
	default:
		rc = find(&m);
		if (!rc && f.handle != PROG_ALL)
			return prog_filter__no_match(&f, err);
		return rc;
	}
	if (rc)
		return rc;
	rc = add(progs, &p);
	if (rc) {
		prog__close(&p);
		return errmsg__fail(err, rc, "out of memory");
	}
	return 1;
}

int prog__recursion_misses(int fd, __u64 *misses, bool *known)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int rc;

	rc = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (rc)
		return rc;
	/* The kernel says how much of the struct it knows. */
	*known = len >=
		 offsetof(struct bpf_prog_info, recursion_misses) + sizeof(info.recursion_misses);
	*misses = *known ? info.recursion_misses : 0;
	return 0;
}
