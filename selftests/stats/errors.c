// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What BPF_ENABLE_STATS and its fd refuse, with which errno, and which check comes first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/capability.h>
#include <bpf/bpf.h>

#include "btest.h"

#define NOBODY	 65534
#define ENOTSUPP 524 /* of the kernel, which exports no name */

/* An error of the kernel's own, which no C library knows. */
#define KERNEL_ENOTSUPP 524

/* The attribute of BPF_ENABLE_STATS is one word; room for a page and more behind it. */
union attr {
	struct {
		__u32 type;
	} stats;
	unsigned char bytes[8192];
};

static int enable(union attr *attr, unsigned int size)
{
	return bstats_bpf(BPF_ENABLE_STATS, attr, size);
}

static void unknown_type(struct btest *t)
{
	static const __u32 types[] = {1, 2, 255, 0x7fffffff, 0x80000000, 0xffffffff};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		union attr attr = {.stats.type = types[i]};

		expect_errno(t, EINVAL, enable(&attr, sizeof(attr.stats)),
			     "BPF_ENABLE_STATS of type %u", types[i]);
		expect_off(t, "after type %u was refused", types[i]);
	}
}

/* Bytes that the command has no use for must be 0: EINVAL as far as the kernel's own attribute
 * reaches (120 bytes in 5.8, more since), E2BIG beyond. */
static void stray_bytes(struct btest *t)
{
	int want = EINVAL;

	for (unsigned int at = sizeof(__u32); at < 512; at++) {
		union attr attr = {};
		int rc;

		attr.bytes[at] = 1;
		rc = enable(&attr, 512);
		if (at >= 120 && rc == -E2BIG)
			want = E2BIG;
		expect_errno(t, want, rc, "BPF_ENABLE_STATS with byte %u of the attribute set", at);
	}
	expect_eq(t, E2BIG, want, "errno for a byte beyond the kernel's attribute");
	expect_off(t, "after every stray byte was refused");
}

/* An older program passes a shorter attribute, a newer one a longer: both work while the bytes that
 * one side does not know are 0. */
static void sizes(struct btest *t)
{
	/* Each change of the switch is slow under emulation: this fd keeps it on through most. */
	int held = must_open(t);
	long page = sysconf(_SC_PAGESIZE);

	for (unsigned int size = 0; size <= sizeof(union bpf_attr) + 64; size++) {
		union attr attr = {};
		int another = enable(&attr, size);

		expect_errno(t, 0, another, "BPF_ENABLE_STATS with a zeroed attribute of %u bytes",
			     size);
		close(another);
	}
	close(held);
	expect_off(t, "after fds from attributes of all sizes came and went");
	union attr attr = {};
	unsigned char *big = calloc(1, (size_t)page + 1);
	int fd;

	if (!big)
		btest_broken(t, ENOMEM, "calloc");
	fd = bstats_bpf(BPF_ENABLE_STATS, big, (unsigned int)page);
	expect_errno(t, 0, fd, "BPF_ENABLE_STATS with a zeroed attribute of one page");
	close(fd);
	expect_errno(t, E2BIG, bstats_bpf(BPF_ENABLE_STATS, big, (unsigned int)page + 1),
		     "an attribute of one byte more than a page");
	expect_errno(t, E2BIG, bstats_bpf(BPF_ENABLE_STATS, big, 0xffffffff),
		     "an attribute of 2^32 - 1 bytes");
	/* Beyond what any kernel of today knows. */
	big[1024] = 1;
	expect_errno(t, E2BIG, bstats_bpf(BPF_ENABLE_STATS, big, 1025),
		     "a byte set where the kernel's attribute has ended");
	free(big);
	expect_errno(t, EFAULT, bstats_bpf(BPF_ENABLE_STATS, NULL, sizeof(attr.stats)),
		     "an attribute at address 0");
	expect_errno(t, EFAULT, bstats_bpf(BPF_ENABLE_STATS, (void *)16, sizeof(union bpf_attr)),
		     "an attribute at address 16");
	expect_off(t, "after all sizes");
}

/* With every byte of a short attribute cut off, the type is 0, which is BPF_STATS_RUN_TIME. */
static void cut_type(struct btest *t)
{
	union attr attr = {.stats.type = 1};
	int fd = enable(&attr, 0);

	expect_errno(t, 0, fd, "an attribute of 0 bytes, whatever is at its address");
	close(fd);
	attr.stats.type = 0x01000000;
	attr.bytes[0] = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	fd = enable(&attr, 3);
	expect_errno(t, 0, fd, "an attribute of 3 bytes, the fourth not looked at");
	close(fd);
#endif
	expect_errno(t, EINVAL, enable(&attr, 4), "an attribute of 4 bytes, type 0x1000000");
}

/* ---- privileges ---- */

struct caller {
	unsigned int id;
	uint64_t keep;
	bool user_ns;
	union attr attr;
	unsigned int size;
};

static void calls(struct btest *t, struct peer *me, void *arg)
{
	struct caller *c = arg;
	int rc;

	if (c->user_ns) {
		need(t, unshare(CLONE_NEWUSER), "unshare(CLONE_NEWUSER)");
		/* All capabilities, in this namespace only. */
	} else if (c->id) {
		need(t, become(c->id, c->keep), "setuid");
	} else {
		need(t, caps_keep(c->keep), "capset");
	}
	rc = enable(&c->attr, c->size);
	/* Hold until told, so that whoever got an fd can be seen. */
	peer_ask(t, me, rc < 0 ? rc : 0);
}

static void call_as(struct btest *t, struct caller c, int err, const char *what)
{
	struct peer p = peer_start(t, calls, &c);

	expect_errno(t, err, peer_hear(t, &p), "%s", what);
	if (err)
		expect_off(t, "after this was refused: %s", what);
	else
		expect_on(t, "while this holds: %s", what);
	peer_say(t, &p, 0);
	peer_wait(t, &p);
	expect_off(t, "afterwards");
}

#define PLAIN .size = sizeof(__u32)

static void needs_sys_admin(struct btest *t)
{
	call_as(t, (struct caller){PLAIN, .id = NOBODY}, EPERM, "BPF_ENABLE_STATS as a user");
	call_as(t, (struct caller){PLAIN, .keep = 0}, EPERM,
		"BPF_ENABLE_STATS as root without capabilities");
	call_as(t, (struct caller){PLAIN, .keep = ~CAP_BIT(CAP_SYS_ADMIN)}, EPERM,
		"BPF_ENABLE_STATS as root without CAP_SYS_ADMIN");
	call_as(t, (struct caller){PLAIN, .keep = CAP_BIT(CAP_BPF) | CAP_BIT(CAP_PERFMON)}, EPERM,
		"BPF_ENABLE_STATS with CAP_BPF and CAP_PERFMON only");
	call_as(t, (struct caller){PLAIN, .keep = CAP_BIT(CAP_SYS_ADMIN)}, 0,
		"BPF_ENABLE_STATS as root with CAP_SYS_ADMIN only");
	call_as(t, (struct caller){PLAIN, .id = NOBODY, .keep = CAP_BIT(CAP_SYS_ADMIN)}, 0,
		"BPF_ENABLE_STATS as a user with CAP_SYS_ADMIN only");
}

static void user_namespace(struct btest *t)
{
	call_as(t, (struct caller){PLAIN, .user_ns = true}, EPERM,
		"BPF_ENABLE_STATS with all capabilities of a user namespace");
}

/* CAP_BPF keeps kernels that ask for it first (kernel.unprivileged_bpf_disabled, before 5.19) from
 * answering before the command does. */
static void order(struct btest *t)
{
	struct caller c = {.keep = CAP_BIT(CAP_BPF), .size = sizeof(union bpf_attr)};

	c.attr.bytes[20] = 1;
	call_as(t, c, EINVAL, "stray bytes, without CAP_SYS_ADMIN: the attribute is checked first");
	c.attr.bytes[20] = 0;
	c.attr.stats.type = 77;
	call_as(t, c, EPERM, "an unknown type, without CAP_SYS_ADMIN: the type is checked last");
	c.size = sizeof(c.attr);
	call_as(t, c, E2BIG, "too large, without CAP_SYS_ADMIN: the size is checked before all");
	c.keep |= CAP_BIT(CAP_SYS_ADMIN);
	c.size = sizeof(union bpf_attr);
	call_as(t, c, EINVAL, "an unknown type, with CAP_SYS_ADMIN");
}

static void held_and_refused(struct btest *t)
{
	union attr bad = {.stats.type = 9};
	int fd = must_open(t);

	for (int i = 0; i < 100; i++) {
		expect_errno(t, EINVAL, enable(&bad, sizeof(bad.stats)), "an unknown type");
		expect_errno(t, E2BIG, enable(&bad, sizeof(bad)), "too large an attribute");
	}
	expect_on(t, "while I hold an fd, after 200 calls of others were refused");
	close(fd);
	expect_off(t, "after I closed it");
}

static int emfile_call(union attr *attr)
{
	return enable(attr, sizeof(attr->stats));
}

/* The number for the new fd is looked for last. */
static void emfile_last(struct btest *t)
{
	union attr bad = {.stats.type = 9}, good = {};
	struct rlimit rl;

	need(t, getrlimit(RLIMIT_NOFILE, &rl), "getrlimit");
	rl.rlim_cur = 0;
	need(t, setrlimit(RLIMIT_NOFILE, &rl), "setrlimit");
	expect_errno(t, EMFILE, emfile_call(&good), "BPF_ENABLE_STATS with a limit of 0 fds");
	expect_errno(t, EINVAL, emfile_call(&bad), "an unknown type with a limit of 0 fds");
	expect_off(t, "after both were refused");
}

/* ---- the fd ---- */

static long result(long rc)
{
	return rc < 0 ? -errno : rc;
}

static void fd_reads(struct btest *t)
{
	int fd = must_open(t);
	char buf[64] = "";

	expect_errno(t, EINVAL, result(read(fd, buf, sizeof(buf))), "read of a stats fd");
	/* It has no position, so that pread fails before the file is asked. */
	expect_errno(t, ESPIPE, result(pread(fd, buf, sizeof(buf), 0)), "pread of a stats fd");
	/* It is read-only, so that writes fail before the file is asked. */
	expect_errno(t, EBADF, result(write(fd, buf, sizeof(buf))), "write to a stats fd");
	expect_errno(t, ESPIPE, result(lseek(fd, 0, SEEK_SET)), "lseek of a stats fd");
	expect_errno(t, EINVAL, result(ftruncate(fd, 0)), "ftruncate of a stats fd");
	expect_on(t, "after the fd was read, written and sought");
	close(fd);
}

static void fd_polls(struct btest *t)
{
	int fd = must_open(t);
	struct pollfd pfd = {.fd = fd, .events = POLLIN | POLLOUT};

	/* A file that knows no poll is always ready. */
	expect_eq(t, 1, poll(&pfd, 1, 0), "files ready of one stats fd");
	expect_eq(t, POLLIN | POLLOUT, pfd.revents, "events of a stats fd (POLLIN and POLLOUT)");
	close(fd);
}

static void fd_ioctls(struct btest *t)
{
	static const unsigned long requests[] = {
		TCGETS, FIONREAD, 0, 1, 0xffffffff, 0x2400, 0x2403, /* perf: enable, reset */
	};
	int fd = must_open(t), arg = 0;

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		expect_errno(t, ENOTTY, result(ioctl(fd, requests[i], &arg)),
			     "ioctl 0x%lx of a stats fd", requests[i]);
	expect_on(t, "after ioctls");
	close(fd);
}

static void fd_maps(struct btest *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = must_open(t);
	void *p = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);

	expect_errno(t, ENODEV, p == MAP_FAILED ? -errno : 0, "mmap of a stats fd");
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	expect_errno(t, EACCES, p == MAP_FAILED ? -errno : 0, "writable mmap of a stats fd");
	close(fd);
	expect_off(t, "after refused mmaps, and close");
}

/* It is no program, map, link or BTF, and does not pass for one. */
static void fd_is_no_object(struct btest *t)
{
	int fd = must_open(t);
	__u32 key = 0, len;
	char value[256] = "";
	union bpf_attr attr;

	expect_errno(t, EINVAL, result(bpf_obj_pin(fd, "/sys/fs/bpf/stats_test_pin")),
		     "pinning a stats fd");
	len = sizeof(value);
	expect_errno(t, EINVAL, result(bpf_obj_get_info_by_fd(fd, value, &len)),
		     "BPF_OBJ_GET_INFO_BY_FD of a stats fd");
	expect_errno(t, EINVAL, result(bpf_map_lookup_elem(fd, &key, value)),
		     "BPF_MAP_LOOKUP_ELEM on a stats fd");
	expect_errno(t, EINVAL, bstats_run(fd, 1), "BPF_PROG_TEST_RUN of a stats fd");
	memset(&attr, 0, sizeof(attr));
	attr.link_detach.link_fd = fd;
	expect_errno(t, EINVAL, bstats_bpf(BPF_LINK_DETACH, &attr, sizeof(attr.link_detach)),
		     "BPF_LINK_DETACH of a stats fd");
	memset(&attr, 0, sizeof(attr));
	attr.task_fd_query.pid = (__u32)getpid();
	attr.task_fd_query.fd = (__u32)fd;
	expect_errno(t, KERNEL_ENOTSUPP,
		     bstats_bpf(BPF_TASK_FD_QUERY, &attr, sizeof(attr.task_fd_query)),
		     "BPF_TASK_FD_QUERY of a stats fd");
	expect_on(t, "after the fd was refused as an object");
	close(fd);
}

static void fd_flags(struct btest *t)
{
	int fd = must_open(t), flags;

	flags = (int)need(t, fcntl(fd, F_GETFL), "F_GETFL");
	expect_eq(t, O_RDONLY, flags & O_ACCMODE, "access mode of a stats fd");
	/* What may be set on any file may be set here, and changes nothing. */
	need(t, fcntl(fd, F_SETFL, O_NONBLOCK), "F_SETFL");
	expect_on(t, "after O_NONBLOCK was set on the only fd");
	expect_errno(t, EINVAL, result(fsync(fd)), "fsync of a stats fd");
	close(fd);
	expect_off(t, "after close");
}

static void fd_name(struct btest *t)
{
	char path[64], target[64] = "";
	int fd = must_open(t);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	need(t, readlink(path, target, sizeof(target) - 1), "readlink");
	if (strcmp(target, "anon_inode:bpf-stats"))
		btest_failed(t, "a link to anon_inode:bpf-stats in /proc/self/fd", "'%s'", target);
	close(fd);
}

static const char type_rule[] =
	"BPF_ENABLE_STATS knows the type BPF_STATS_RUN_TIME; others are EINVAL";
static const char attr_rule[] = "attributes may be shorter or longer than the kernel's while what "
				"one side does not know is 0";
static const char perm_rule[] =
	"BPF_ENABLE_STATS needs CAP_SYS_ADMIN in the initial user namespace, and nothing else";
static const char order_rule[] = "size (E2BIG), stray bytes (EINVAL), CAP_SYS_ADMIN (EPERM), type "
				 "(EINVAL), fd (EMFILE): in that order";
static const char fd_rule[] = "a stats fd holds the switch and does nothing else";

static const struct btest_case cases[] = {
	{ .name = "unknown-type", .rule = type_rule, .run = unknown_type, .tags = "input" },
	{ .name = "stray-bytes", .rule = attr_rule, .run = stray_bytes, .tags = "input" },
	{ .name = "sizes", .rule = attr_rule, .run = sizes, .tags = "input" },
	{ .name = "cut-type", .rule = attr_rule, .run = cut_type, .tags = "input" },
	{ .name = "needs-sys-admin", .rule = perm_rule, .run = needs_sys_admin,
	  .tags = "privilege" },
	{ .name = "user-namespace", .rule = perm_rule, .run = user_namespace, .needs = BH_USER_NS,
	  .tags = "privilege,namespace" },
	{ .name = "order", .rule = order_rule, .run = order, .tags = "privilege,input" },
	{ .name = "emfile-last", .rule = order_rule, .run = emfile_last, .tags = "input" },
	{ .name = "held-and-refused", .rule = "a refused call changes nothing for those who hold",
	  .run = held_and_refused },
	{ .name = "fd-read-write-seek", .rule = fd_rule, .run = fd_reads, .tags = "fd" },
	{ .name = "fd-poll", .rule = fd_rule, .run = fd_polls, .tags = "fd" },
	{ .name = "fd-ioctl", .rule = fd_rule, .run = fd_ioctls, .tags = "fd" },
	{ .name = "fd-mmap", .rule = fd_rule, .run = fd_maps, .tags = "fd" },
	{ .name = "fd-no-object", .rule = fd_rule, .run = fd_is_no_object, .tags = "fd" },
	{ .name = "fd-flags", .rule = fd_rule, .run = fd_flags, .tags = "fd" },
	{ .name = "fd-name", .rule = "a stats fd can be told from others in /proc", .run = fd_name,
	  .tags = "fd" },
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
