// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "bstats.h"
#include "insn.h"

#define ARRAY_WORDS 64

const char *bstats_strerror(int err)
{
	err = err < 0 ? -err : err;
	return err == 524 ? "Operation not supported (524)" : strerror(err);
}

int bstats_bpf(int cmd, void *attr, unsigned int size)
{
	long rc = syscall(__NR_bpf, cmd, attr, size);

	return rc < 0 ? -errno : (int)rc;
}

int bstats_open(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.enable_stats.type = BPF_STATS_RUN_TIME;
	return bstats_bpf(BPF_ENABLE_STATS, &attr, sizeof(attr.enable_stats));
}

int bstats_sysctl_read(void)
{
	char buf[64];
	int fd, err;
	ssize_t n;

	fd = open(BSTATS_SYSCTL, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf) - 1);
	err = errno;
	close(fd);
	if (n < 0)
		return -err;
	buf[n] = '\0';
	if (!strcmp(buf, "0\n"))
		return 0;
	return strcmp(buf, "1\n") ? -EPROTO : 1;
}

int bstats_sysctl_write(const char *text, size_t len)
{
	int fd, err;
	ssize_t n;

	fd = open(BSTATS_SYSCTL, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	err = errno;
	close(fd);
	return n < 0 ? -err : (int)n;
}

int bstats_sysctl_set(int value)
{
	int rc = bstats_sysctl_write(value ? "1\n" : "0\n", 2);

	return rc < 0 ? rc : 0;
}

int bstats_info(int prog_fd, struct bstats *s)
{
	struct {
		struct bpf_prog_info info;
		__u64 newer[16];
	} u;
	union bpf_attr attr;
	int rc;

	memset(&u, 0, sizeof(u));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = prog_fd;
	attr.info.info_len = sizeof(u);
	attr.info.info = (__u64)(uintptr_t)&u;
	rc = bstats_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr.info));
	if (rc < 0)
		return rc;
	/* The kernel answers with the size of the structure that it knows. */
	*s = (struct bstats){
		.run_time_ns = u.info.run_time_ns,
		.run_cnt = u.info.run_cnt,
		.recursion_misses = u.info.recursion_misses,
		.has_recursion_misses =
			attr.info.info_len >= offsetof(struct bpf_prog_info, recursion_misses) +
						      sizeof(u.info.recursion_misses),
	};
	return 0;
}

int bstats_fdinfo(int prog_fd, struct bstats *s)
{
	char path[64], line[256], key[64];
	unsigned long long value;
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", prog_fd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	*s = (struct bstats){};
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63[^:]: %llu", key, &value) != 2)
			continue;
		if (!strcmp(key, "run_time_ns")) {
			s->run_time_ns = value;
			found++;
		} else if (!strcmp(key, "run_cnt")) {
			s->run_cnt = value;
			found++;
		} else if (!strcmp(key, "recursion_misses")) {
			s->recursion_misses = value;
			s->has_recursion_misses = true;
		}
	}
	fclose(f);
	return found == 2 ? 0 : -EPROTO;
}

int bstats_load(const struct bstats_load *l, const struct bpf_insn *code, size_t count)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = l->attach_type,
		    .attach_btf_id = l->attach_btf_id, .attach_prog_fd = l->attach_prog_fd,
		    .prog_flags = l->flags, .log_buf = l->log, .log_size = l->log_size,
		    .log_level = l->log ? 1 : 0, );
	int fd;

	fd = bpf_prog_load(l->type, l->name ? l->name : "stats_test", "Dual BSD/GPL", code, count,
			   &opts);
	return fd < 0 ? -errno : fd;
}

/* struct CTX {}; int name(struct CTX *ctx) or int name(int unused): ids into @func_ids. */
static int make_btf(struct btf *btf, const char *ctx_type, const struct bstats_func *funcs,
		    unsigned int count, int *func_ids)
{
	int int_id, ptr_id, ctx_id, proto[2];

	int_id = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	ctx_id = ctx_type ? btf__add_struct(btf, ctx_type, 4) : 0;
	if (int_id < 0 || ctx_id < 0)
		return -EINVAL;
	ptr_id = btf__add_ptr(btf, ctx_id);
	if (ptr_id < 0)
		return ptr_id;
	for (int i = 0; i < 2; i++) {
		int rc;

		proto[i] = btf__add_func_proto(btf, int_id);
		rc = proto[i] < 0
			     ? proto[i]
			     : btf__add_func_param(btf, i ? "ctx" : "unused", i ? ptr_id : int_id);
		if (rc < 0)
			return rc;
	}
	for (unsigned int i = 0; i < count; i++) {
		func_ids[i] = btf__add_func(btf, funcs[i].name,
					    funcs[i].global ? BTF_FUNC_GLOBAL : BTF_FUNC_STATIC,
					    proto[funcs[i].takes_ctx]);
		if (func_ids[i] < 0)
			return func_ids[i];
	}
	return btf__load_into_kernel(btf);
}

int bstats_load_btf(const struct bstats_load *l, const char *ctx_type,
		    const struct bstats_func *funcs, unsigned int func_count,
		    const struct bpf_insn *code, size_t count)
{
	struct bpf_func_info info[8] = {};
	struct btf *btf = btf__new_empty();
	int ids[8], fd;

	if (!btf)
		return -errno;
	fd = func_count > 8 ? -E2BIG : make_btf(btf, ctx_type, funcs, func_count, ids);
	if (fd >= 0) {
		LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = l->attach_type,
			    .attach_btf_id = l->attach_btf_id, .attach_prog_fd = l->attach_prog_fd,
			    .prog_flags = l->flags, .log_buf = l->log, .log_size = l->log_size,
			    .log_level = l->log ? 1 : 0, .prog_btf_fd = btf__fd(btf),
			    .func_info = info, .func_info_cnt = func_count,
			    .func_info_rec_size = sizeof(info[0]), );

		for (unsigned int i = 0; i < func_count; i++)
			info[i] = (struct bpf_func_info){
				.insn_off = funcs[i].insn_off,
				.type_id = ids[i],
			};
		fd = bpf_prog_load(l->type, l->name ? l->name : funcs[0].name, "Dual BSD/GPL", code,
				   count, &opts);
		if (fd < 0)
			fd = -errno;
	}
	btf__free(btf);
	return fd;
}

int bstats_array(unsigned int size)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "stats_test", 4, size, 1, NULL);

	return fd < 0 ? -errno : fd;
}

int bstats_array_get(int map_fd, __u64 *words, size_t count)
{
	__u64 value[ARRAY_WORDS];
	__u32 key = 0;

	/* The values of our maps are never larger; a smaller one fills a part. */
	if (count > ARRAY_WORDS || bpf_map_lookup_elem(map_fd, &key, value))
		return count > ARRAY_WORDS ? -E2BIG : -errno;
	memcpy(words, value, count * sizeof(*words));
	return 0;
}

int bstats_array_set(int map_fd, const __u64 *words, size_t count)
{
	__u64 value[ARRAY_WORDS] = {};
	__u32 key = 0;

	if (count > ARRAY_WORDS)
		return -E2BIG;
	memcpy(value, words, count * sizeof(*words));
	return bpf_map_update_elem(map_fd, &key, value, BPF_ANY) ? -errno : 0;
}

int bstats_observer(void)
{
	const struct bpf_insn code[] = {I_MOV(R0, 0), I_EXIT()};
	const struct bstats_load l = {
		.type = BPF_PROG_TYPE_SOCKET_FILTER,
		.name = "stats_observer",
	};

	return bstats_load(&l, code, INSN_COUNT(code));
}

int bstats_run(int prog_fd, unsigned int repeat)
{
	/* XDP wants more than an Ethernet header, flow dissection and lookups an IP header. */
	unsigned char packet[64] = {[12] = 0x08, [14] = 0x45, [17] = 50, [22] = 64, [23] = 17};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = repeat, );

	return bpf_prog_test_run_opts(prog_fd, &opts) ? -errno : 0;
}

int bstats_is_on(int observer_fd)
{
	struct bstats before, after;
	int rc;

	rc = bstats_info(observer_fd, &before);
	if (!rc)
		rc = bstats_run(observer_fd, 1);
	if (!rc)
		rc = bstats_info(observer_fd, &after);
	if (rc)
		return rc;
	/* One run counts once or not at all; anything else is an answer that we do not know. */
	if (after.run_cnt - before.run_cnt > 1)
		return -EPROTO;
	return after.run_cnt != before.run_cnt;
}

static int stats_fds_of(const char *pid)
{
	char path[300], target[64];
	struct dirent *de;
	int fds = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return 0; /* gone, or a zombie */
	while ((de = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), de->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		fds += !strcmp(target, "anon_inode:bpf-stats");
	}
	closedir(dir);
	return fds;
}

int bstats_fds_of(int pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return stats_fds_of(text);
}

int bstats_holders(int except, char *buf, size_t size)
{
	struct dirent *de;
	size_t used = 0;
	int holders = 0;
	DIR *proc;

	if (size)
		buf[0] = '\0';
	proc = opendir("/proc");
	if (!proc)
		return -errno;
	while ((de = readdir(proc))) {
		char path[300], comm[32] = "?";
		FILE *f;
		int fds;

		if (!isdigit((unsigned char)de->d_name[0]) ||
		    (except && strtol(de->d_name, NULL, 10) == except))
			continue;
		fds = stats_fds_of(de->d_name);
		if (!fds)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", de->d_name);
		f = fopen(path, "re");
		if (f) {
			if (fgets(comm, sizeof(comm), f))
				comm[strcspn(comm, "\n")] = '\0';
			fclose(f);
		}
		if (used < size) {
			int n = snprintf(buf + used, size - used, "%spid %s (%s) with %d fd%s",
					 holders ? ", " : "", de->d_name, comm, fds,
					 fds == 1 ? "" : "s");

			used += n > 0 ? (size_t)n : 0;
		}
		holders++;
	}
	closedir(proc);
	return holders;
}

int bstats_lock(void)
{
	/* The name is the lock. */
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "\0bpf-stats-selftests"};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	for (int tries = 0; bind(fd, (struct sockaddr *)&addr, sizeof(addr)); tries++) {
		int err = errno;

		if (err != EADDRINUSE || tries == 600) {
			close(fd);
			return -err;
		}
		usleep(100000);
	}
	return fd;
}

/* The kernel's type information, or NULL and errno. Kept for good: to read it takes half a second
 * under emulation, and cases are forks of the runner, which reads it for its first probe. */
static const struct btf *kernel_btf(void)
{
	static struct btf *btf;

	if (!btf)
		btf = btf__load_vmlinux_btf();
	return btf;
}

int bstats_btf_id(const char *name, int kind)
{
	const struct btf *btf = kernel_btf();

	return btf ? btf__find_by_name_kind(btf, name, kind) : -errno;
}

int bstats_btf_enum(const char *enumerator)
{
	const struct btf *btf = kernel_btf();
	int rc = -ENOENT;

	if (!btf)
		return -errno;
	for (unsigned int id = 1; id < btf__type_cnt(btf) && rc == -ENOENT; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		if (!btf_is_enum(t))
			continue;
		for (int i = 0; i < btf_vlen(t); i++)
			if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), enumerator))
				rc = btf_enum(t)[i].val;
	}
	return rc;
}

int bstats_btf_member(const char *structure, const char *member)
{
	const struct btf *btf = kernel_btf();
	int id, rc = -ENOENT;

	if (!btf)
		return -errno;
	id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);
	if (id > 0) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		for (int i = 0; i < btf_vlen(t) && rc == -ENOENT; i++)
			if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), member))
				rc = i;
	}
	return rc;
}
