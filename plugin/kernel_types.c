// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/btf.h>

#include "kernel_types.h"

/* What progs/profiler.bpf.c reads. */
static const char *const fields[] = {"nvcsw", "nivcsw"};
#define N_FIELDS   (sizeof(fields) / sizeof(fields[0]))
#define FIELD_BITS 64 /* unsigned long */

/* The offset in bits of a member of a struct, or of the structs without a name in it (which
 * CONFIG_RANDSTRUCT makes). Negative: there is none. */
static long find_member(const struct btf *btf, __u32 type_id, const char *name)
{
	const struct btf_type *type = btf__type_by_id(btf, type_id);
	const struct btf_member *m;
	const char *member;
	long offset;
	__u32 i;

	if (!type || !btf_is_composite(type))
		return -ENOENT;
	for (i = 0, m = btf_members(type); i < btf_vlen(type); i++, m++) {
		member = btf__name_by_offset(btf, m->name_off);
		if (member && !strcmp(member, name))
			return btf_member_bit_offset(type, i);
		if (member && *member)
			continue;
		offset = find_member(btf, m->type, name);
		if (offset >= 0)
			return btf_member_bit_offset(type, i) + offset;
	}
	return -ENOENT;
}

/* Whether the kernel has a helper is asked of this enum: it has the value, or is not there. */
static int add_helper(struct btf *to, const struct btf *from, const char *helper)
{
	static const char name[] = "bpf_func_id";
	const __s32 id = btf__find_by_name_kind(from, name, BTF_KIND_ENUM);
	const struct btf_type *type = id > 0 ? btf__type_by_id(from, id) : NULL;
	const struct btf_enum *e = type ? btf_enum(type) : NULL;
	const char *value;
	int i, rc;

	for (i = 0; e && i < btf_vlen(type); i++, e++) {
		value = btf__name_by_offset(from, e->name_off);
		if (!value || strcmp(value, helper))
			continue;
		rc = btf__add_enum(to, name, sizeof(__u32));
		return rc < 0 ? rc : btf__add_enum_value(to, helper, e->val);
	}
	return 0;
}

static int add_types(struct btf *to, const struct btf *from)
{
	const __s32 task = btf__find_by_name_kind(from, "task_struct", BTF_KIND_STRUCT);
	const struct btf_type *type = task > 0 ? btf__type_by_id(from, task) : NULL;
	long offset;
	int number, id;
	size_t i;

	if (!type)
		return -ENOENT;
	number = btf__add_int(to, "unsigned long", FIELD_BITS / 8, 0);
	if (number < 0)
		return number;
	id = btf__add_struct(to, "task_struct", type->size);
	if (id < 0)
		return id;
	for (i = 0; i < N_FIELDS; i++) {
		offset = find_member(from, task, fields[i]);
		if (offset < 0)
			return offset;
		id = btf__add_field(to, fields[i], number, offset, 0);
		if (id < 0)
			return id;
	}
	return add_helper(to, from, "BPF_FUNC_get_current_task_btf");
}

static int write_all(int fd, const void *data, size_t size)
{
	ssize_t n;

	for (; size; data += n, size -= n) {
		n = write(fd, data, size);
		if (n < 0)
			return -errno;
	}
	return 0;
}

const char *kernel_types__open(struct kernel_types *t)
{
	struct btf *kernel, *own = NULL;
	const void *data;
	__u32 size;
	int rc = -ENOMEM;

	t->fd = -1;
	kernel = btf__load_vmlinux_btf();
	if (!kernel)
		return NULL;
	own = btf__new_empty();
	if (!own)
		goto cleanup;
	rc = add_types(own, kernel);
	if (rc)
		goto cleanup;
	data = btf__raw_data(own, &size);
	if (!data) {
		rc = -ENOMEM;
		goto cleanup;
	}
	t->fd = memfd_create("bpfcost_types", MFD_CLOEXEC);
	if (t->fd < 0) {
		rc = -errno;
		goto cleanup;
	}
	rc = write_all(t->fd, data, size);
	snprintf(t->path, sizeof(t->path), "/proc/self/fd/%d", t->fd);
	/* Without /proc there is no way to it. */
	if (!rc && access(t->path, R_OK))
		rc = -errno;
cleanup:
	btf__free(own);
	btf__free(kernel);
	if (rc)
		kernel_types__close(t);
	return rc ? NULL : t->path;
}

void kernel_types__close(struct kernel_types *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}
