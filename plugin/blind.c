// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "blind.h"

/* So many slots of a prog array are looked at, a system call each. */
#define MAX_SLOTS 4096
/* Timers are in the value itself, or in a struct in it; no program nests deeper. */
#define MAX_DEPTH 8
/* struct bpf_timer and struct bpf_wq (include/uapi/linux/bpf.h) */
#define MIN_CALLBACK_SIZE 16

struct blind_map {
	__u32 id;
	__u32 slots;	      /* of a prog array */
	const char *callback; /* the struct in its values; NULL: a prog array */
};

struct blind_link {
	__u32 id, prog_id, target_id;
};

struct blind_user {
	__u32 prog_id, map_id;
	const char *callback;
};

/* Makes room for one more; the place, zeroed, or NULL. */
static void *grow(void *array, size_t *n, size_t *size, size_t item)
{
	void **v = array, *new;

	if (*n == *size) {
		new = realloc(*v, (*size ? *size * 2 : 16) * item);
		if (!new)
			return NULL;
		*v = new;
		*size = *size ? *size * 2 : 16;
	}
	new = (char *)*v + (*n)++ *item;
	memset(new, 0, item);
	return new;
}

/* What an errno means that opening or listing objects by their ids ended with. */
static void judge(struct blind *b)
{
	/* Gone, or the end of the list; a kernel without links, before 5.8, says EINVAL. */
	if (errno != ENOENT && errno != EINVAL)
		b->refused = -errno;
}

/* What is known of one program in several places becomes one in the end: merge(). */
static struct blind_prog *add(struct blind *b, __u32 prog_id)
{
	struct blind_prog *p = grow(&b->v, &b->n, &b->size, sizeof(*p));

	if (p)
		p->prog_id = prog_id;
	return p;
}

/* ---- maps ---- */

static const char *callback_struct(const struct btf *btf, __u32 type_id, int depth)
{
	static const char *const names[] = {"bpf_timer", "bpf_wq", "bpf_task_work"};
	const struct btf_type *t;
	const char *name, *found = NULL;
	int id, i;

	id = depth < MAX_DEPTH ? btf__resolve_type(btf, type_id) : -1;
	t = id < 0 ? NULL : btf__type_by_id(btf, id);
	if (!t)
		return NULL;
	if (btf_is_array(t))
		return callback_struct(btf, btf_array(t)->type, depth + 1);
	if (btf_is_datasec(t)) {
		for (i = 0; !found && i < btf_vlen(t); i++)
			found = callback_struct(btf, btf_var_secinfos(t)[i].type, depth + 1);
		return found;
	}
	if (!btf_is_struct(t))
		return NULL;
	name = btf__name_by_offset(btf, t->name_off);
	for (i = 0; name && i < 3; i++)
		if (!strcmp(name, names[i]))
			return names[i];
	for (i = 0; !found && i < btf_vlen(t); i++)
		found = callback_struct(btf, btf_members(t)[i].type, depth + 1);
	return found;
}

/*
 * Only what can have a timer is worth reading its BTF for: the kernel lets user space neither map
 * such a map nor keep it from being written (map_check_btf() in kernel/bpf/syscall.c), which leaves
 * out the variables of most programs.
 */
static const char *map_callback(struct blind *b, const struct bpf_map_info *info)
{
	if (!info->btf_value_type_id || info->value_size < MIN_CALLBACK_SIZE ||
	    info->map_flags & (BPF_F_MMAPABLE | BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG))
		return NULL;
	if (b->btf_id != info->btf_id) {
		btf__free(b->btf);
		b->btf = btf__load_from_kernel_by_id(info->btf_id);
		b->btf_id = b->btf ? info->btf_id : 0;
	}
	return b->btf ? callback_struct(b->btf, info->btf_value_type_id, 0) : NULL;
}

static int look_at_map(struct blind *b, __u32 id)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);
	const char *callback;
	struct blind_map *m;
	int fd, rc;

	fd = bpf_map_get_fd_by_id(id);
	if (fd < 0) {
		judge(b);
		return 0;
	}
	rc = bpf_obj_get_info_by_fd(fd, &info, &len);
	close(fd);
	if (rc)
		return 0;
	callback = map_callback(b, &info);
	if (info.type != BPF_MAP_TYPE_PROG_ARRAY && !callback)
		return 0;
	m = grow(&b->maps, &b->n_maps, &b->size_maps, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->id = id;
	m->callback = callback;
	m->slots = info.max_entries < MAX_SLOTS ? info.max_entries : MAX_SLOTS;
	return 0;
}

/* False if it is gone. */
static bool read_slots(struct blind *b, const struct blind_map *m, int *rc)
{
	struct blind_prog *p;
	__u32 i, id;
	int fd;

	fd = bpf_map_get_fd_by_id(m->id);
	if (fd < 0)
		return errno != ENOENT;
	for (i = 0; i < m->slots && !*rc; i++) {
		if (bpf_map_lookup_elem(fd, &i, &id)) {
			if (errno == ENOENT)
				continue;
			break;
		}
		p = add(b, id);
		if (!p) {
			*rc = -ENOMEM;
		} else {
			p->kinds |= BLIND_TAIL_CALL;
			p->array_id = m->id;
		}
	}
	close(fd);
	return true;
}

static int look_at_maps(struct blind *b)
{
	size_t i, n = 0;
	int rc = 0;

	while (!rc && !bpf_map_get_next_id(b->last_map, &b->last_map))
		rc = look_at_map(b, b->last_map);
	if (!rc)
		judge(b);
	for (i = 0; i < b->n_maps; i++)
		if (b->maps[i].callback || read_slots(b, &b->maps[i], &rc))
			b->maps[n++] = b->maps[i];
	b->n_maps = n;
	return rc;
}

/* ---- links ---- */

static bool read_link(struct blind *b, __u32 id, struct bpf_link_info *info)
{
	__u32 len = sizeof(*info);
	int fd, rc;

	memset(info, 0, sizeof(*info));
	fd = bpf_link_get_fd_by_id(id);
	if (fd < 0) {
		judge(b);
		return false;
	}
	rc = bpf_obj_get_info_by_fd(fd, info, &len);
	close(fd);
	return !rc;
}

/* Of all that is attached by a tracing link only a replacement has no attach type: it is 0. */
static bool is_replacement(const struct bpf_link_info *info)
{
	return info->type == BPF_LINK_TYPE_TRACING && !info->tracing.attach_type;
}

static int look_at_links(struct blind *b)
{
	struct bpf_link_info info;
	struct blind_prog *p;
	struct blind_link *l;
	size_t i, n = 0;

	while (!bpf_link_get_next_id(b->last_link, &b->last_link)) {
		if (!read_link(b, b->last_link, &info) || !is_replacement(&info))
			continue;
		l = grow(&b->links, &b->n_links, &b->size_links, sizeof(*l));
		if (!l)
			return -ENOMEM;
		l->id = b->last_link;
	}
	judge(b);
	for (i = 0; i < b->n_links; i++) {
		l = &b->links[i];
		if (!read_link(b, l->id, &info) || !is_replacement(&info))
			continue;
		/* Which program it replaces is told since 5.13. */
		l->prog_id = info.prog_id;
		l->target_id = info.tracing.target_obj_id;
		b->links[n++] = *l;
		p = add(b, info.prog_id);
		if (!p)
			return -ENOMEM;
		p->kinds |= BLIND_EXTENSION;
		p->target_id = info.tracing.target_obj_id;
		if (!p->target_id)
			continue;
		p = add(b, info.tracing.target_obj_id);
		if (!p)
			return -ENOMEM;
		p->kinds |= BLIND_REPLACED;
		p->replacement_id = info.prog_id;
	}
	b->n_links = n;
	return 0;
}

/* ---- programs ---- */

/* The maps of a program: ids, at most @max. Their number, or 0. */
static __u32 read_map_ids(const struct runstats_prog *p, __u32 *ids, __u32 max)
{
	struct bpf_prog_info info = {.nr_map_ids = max, .map_ids = (unsigned long)ids};
	__u32 len = sizeof(info);
	int fd = p->fd, rc;

	if (p->how == RUNSTATS_ID)
		fd = bpf_prog_get_fd_by_id(p->row.id);
	if (fd < 0)
		return 0;
	rc = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (fd != p->fd)
		close(fd);
	return rc ? 0 : info.nr_map_ids < max ? info.nr_map_ids : max;
}

static int look_at_user(struct blind *b, const struct runstats_prog *p)
{
	__u32 ids[64], n, i; /* MAX_USED_MAPS in include/linux/bpf_verifier.h */
	struct blind_user *u;
	size_t k;

	n = read_map_ids(p, ids, 64);
	for (i = 0; i < n; i++) {
		for (k = 0; k < b->n_maps; k++)
			if (b->maps[k].id == ids[i] && b->maps[k].callback)
				break;
		if (k == b->n_maps)
			continue;
		u = grow(&b->users, &b->n_users, &b->size_users, sizeof(*u));
		if (!u)
			return -ENOMEM;
		u->prog_id = p->row.id;
		u->map_id = ids[i];
		u->callback = b->maps[k].callback;
		return 0;
	}
	return 0;
}

/* A program's maps are there before it is, so that each has to be looked at only once. */
static int look_at_progs(struct blind *b, const struct runstats *rs)
{
	bool any = false;
	size_t i;
	int rc = 0;

	for (i = 0; i < b->n_maps; i++)
		any |= b->maps[i].callback != NULL;
	for (i = 0; i < rs->n && !rc; i++) {
		const struct runstats_prog *p = &rs->v[i];

		if (p->row.id <= b->last_prog || p->row.gone)
			continue;
		b->last_prog = p->row.id;
		if (any)
			rc = look_at_user(b, p);
	}
	for (i = 0; i < b->n_users && !rc; i++) {
		struct blind_prog *p = add(b, b->users[i].prog_id);

		if (!p)
			return -ENOMEM;
		p->kinds |= BLIND_CALLBACK;
		p->callback_map_id = b->users[i].map_id;
		p->callback = b->users[i].callback;
	}
	return rc;
}

/* A replacement is known by its type where its links may not be looked at. */
static int look_at_types(struct blind *b, const struct runstats *rs)
{
	struct blind_prog *p;
	size_t i;

	for (i = 0; i < rs->n; i++) {
		if (rs->v[i].type != BPF_PROG_TYPE_EXT)
			continue;
		p = add(b, rs->v[i].row.id);
		if (!p)
			return -ENOMEM;
		p->kinds |= BLIND_EXTENSION;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct blind_prog *x = a, *y = b;

	return (x->prog_id > y->prog_id) - (x->prog_id < y->prog_id);
}

static void merge(struct blind *b)
{
	size_t i, n = 0;

	if (!b->n)
		return;
	qsort(b->v, b->n, sizeof(*b->v), compare);
	for (i = 1; i < b->n; i++) {
		struct blind_prog *to = &b->v[n], *from = &b->v[i];

		if (to->prog_id != from->prog_id) {
			b->v[++n] = *from;
			continue;
		}
		to->kinds |= from->kinds;
		to->array_id = to->array_id ?: from->array_id;
		to->target_id = to->target_id ?: from->target_id;
		to->replacement_id = to->replacement_id ?: from->replacement_id;
		to->callback_map_id = to->callback_map_id ?: from->callback_map_id;
		to->callback = to->callback ?: from->callback;
	}
	b->n = n + 1;
}

int blind__look(struct blind *b, const struct runstats *rs)
{
	int rc;

	b->n = 0;
	rc = look_at_types(b, rs) ?: look_at_maps(b) ?: look_at_links(b) ?: look_at_progs(b, rs);
	merge(b);
	return rc;
}

const struct blind_prog *blind__of(const struct blind *b, __u32 prog_id)
{
	const struct blind_prog key = {.prog_id = prog_id};

	return b->n ? bsearch(&key, b->v, b->n, sizeof(*b->v), compare) : NULL;
}

const char *blind__reason(const struct blind_prog *p, enum blind_kind kind, char *buf, size_t size)
{
	switch (kind) {
	case BLIND_TAIL_CALL:
		snprintf(buf, size,
			 "reached by tail call (it is in the prog array %u): such runs are in its "
			 "caller's",
			 p->array_id);
		break;
	case BLIND_EXTENSION:
		if (p->target_id)
			snprintf(buf, size,
				 "replaces a function of program %u (freplace): its runs are in "
				 "that one's",
				 p->target_id);
		else
			snprintf(buf, size,
				 "replaces a function of another program (freplace): its runs are "
				 "in that one's");
		break;
	case BLIND_REPLACED:
		snprintf(buf, size,
			 "program %u replaces a function of it (freplace): what that takes is in "
			 "here",
			 p->replacement_id);
		break;
	case BLIND_CALLBACK:
		snprintf(buf, size,
			 "its map %u has a %s: what it does in callbacks is counted nowhere",
			 p->callback_map_id, p->callback);
		break;
	}
	return buf;
}

const char *blind__name(enum blind_kind kind)
{
	switch (kind) {
	case BLIND_TAIL_CALL:
		return "tail_call";
	case BLIND_EXTENSION:
		return "extension";
	case BLIND_REPLACED:
		return "replaced";
	case BLIND_CALLBACK:
		return "callback";
	}
	return "";
}

void blind__close(struct blind *b)
{
	if (!b)
		return;
	free(b->v);
	free(b->maps);
	free(b->links);
	free(b->users);
	btf__free(b->btf);
	memset(b, 0, sizeof(*b));
}
