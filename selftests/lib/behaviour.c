// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "behaviour.h"
#include "bstats.h"
#include "insn.h"

#define NOBODY 65534

static int done(int fd)
{
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* A program that returns 0, of any type. */
static int load_empty(unsigned int type, unsigned int attach_type, int btf_id, unsigned int flags)
{
	const struct bpf_insn code[] = {I_MOV(R0, 0), I_EXIT()};
	const struct bstats_load l = {
		.type = type,
		.attach_type = attach_type,
		.attach_btf_id = btf_id < 0 ? 0 : btf_id,
		.flags = flags,
	};

	return btf_id < 0 ? btf_id : bstats_load(&l, code, INSN_COUNT(code));
}

/* Attaches what is to be traced, or replaced. Takes over @prog. */
static int attach_and_close(int prog)
{
	int link;

	if (prog < 0)
		return prog;
	link = bpf_raw_tracepoint_open(NULL, prog);
	link = link < 0 ? -errno : link;
	close(prog);
	return done(link);
}

/* Loads and attaches. Tracing programs of all kinds attach by BPF_RAW_TRACEPOINT_OPEN. */
static int trace_empty(unsigned int type, unsigned int attach_type, const char *func,
		       unsigned int flags)
{
	return attach_and_close(
		load_empty(type, attach_type, bstats_btf_id(func, BTF_KIND_FUNC), flags));
}

static int probe_recursion_misses(void)
{
	struct bstats s;
	int fd = bstats_observer(), rc;

	if (fd < 0)
		return fd;
	rc = bstats_info(fd, &s);
	close(fd);
	if (rc)
		return rc;
	return s.has_recursion_misses ? 0 : -ENOENT;
}

static int probe_syscall_prog(void)
{
	return done(load_empty(BPF_PROG_TYPE_SYSCALL, 0, 0, BPF_F_SLEEPABLE));
}

static int probe_userfaultfd(void)
{
	int fd = (int)syscall(__NR_userfaultfd, O_CLOEXEC);

	return done(fd < 0 ? -errno : fd);
}

static int probe_pidfd_getfd(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0), fd;

	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, pidfd, 0);
	fd = fd < 0 ? -errno : fd;
	close(pidfd);
	return done(fd);
}

static int probe_unshare(int flags)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(unshare(flags) ? errno : 0);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int probe_user_ns(void)
{
	return probe_unshare(CLONE_NEWUSER);
}

static int probe_net_ns(void)
{
	return probe_unshare(CLONE_NEWNET);
}

/* Asks for an fd that there is not: EPERM unless bpf(2) gets as far as looking for it. */
static int probe_unprivileged_info(void)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (!pid) {
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);

		if (syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY))
			_exit(errno);
		bpf_obj_get_info_by_fd(-1, &info, &len);
		_exit(errno == EPERM ? EPERM : 0);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* Older kernels ignore the flag, but not the size of a batch, which came with it. */
static int probe_xdp_live_frames(void)
{
	unsigned char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = 1, .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = 1, );
	const struct bpf_insn drop[] = {I_MOV(R0, 1), I_EXIT()};
	int fd = bstats_load(&(struct bstats_load){.type = BPF_PROG_TYPE_XDP}, drop,
			     INSN_COUNT(drop));
	int rc;

	if (fd < 0)
		return fd;
	rc = bpf_prog_test_run_opts(fd, &opts) ? -errno : 0;
	close(fd);
	return rc;
}

static int probe_fentry_kernel(void)
{
	return trace_empty(BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, "bpf_fentry_test1", 0);
}

static int probe_fmod_ret(void)
{
	return trace_empty(BPF_PROG_TYPE_TRACING, BPF_MODIFY_RETURN, "security_task_getsid", 0);
}

static int probe_fsession(void)
{
	int type = bstats_btf_enum("BPF_TRACE_FSESSION");

	return type < 0 ? type : trace_empty(BPF_PROG_TYPE_TRACING, type, "bpf_fentry_test1", 0);
}

static int probe_sleepable_fentry(void)
{
	return trace_empty(BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, "bpf_fentry_test1",
			   BPF_F_SLEEPABLE);
}

/* The number of a function in a program's own type information. */
static int func_in(int prog, const char *name)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	struct btf *btf;
	int id;

	if (bpf_obj_get_info_by_fd(prog, &info, &len))
		return -errno;
	btf = btf__load_from_kernel_by_id(info.btf_id);
	id = btf ? btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) : -errno;
	btf__free(btf);
	return id;
}

static int probe_fentry_bpf(void)
{
	const struct bpf_insn code[] = {I_MOV(R0, 0), I_EXIT()};
	const struct bstats_func target = {.name = "probed", .takes_ctx = true};
	const struct bstats_load l = {.type = BPF_PROG_TYPE_SOCKET_FILTER};
	struct bstats_load tracer = {
		.type = BPF_PROG_TYPE_TRACING,
		.attach_type = BPF_TRACE_FENTRY,
	};
	int fd, rc;

	fd = bstats_load_btf(&l, "__sk_buff", &target, 1, code, INSN_COUNT(code));
	if (fd < 0)
		return fd;
	rc = func_in(fd, target.name);
	if (rc > 0) {
		tracer.attach_prog_fd = (unsigned int)fd;
		tracer.attach_btf_id = (unsigned int)rc;
		rc = attach_and_close(bstats_load(&tracer, code, INSN_COUNT(code)));
	}
	close(fd);
	return rc;
}

static int probe_freplace(void)
{
	const struct bpf_insn code[] = {
		I_MOV(R1, 1), I_CALL_SUB(1), I_EXIT(), I_MOV(R0, 0), I_EXIT(),
	};
	const struct bstats_func funcs[] = {
		{.name = "probe_main", .global = true, .takes_ctx = true},
		{.name = "probe_sub", .insn_off = 3, .global = true},
	};
	const struct bpf_insn new_code[] = {I_MOV(R0, 0), I_EXIT()};
	const struct bstats_func new_func = {.name = "probe_new", .global = true};
	const struct bstats_load target = {.type = BPF_PROG_TYPE_SCHED_CLS};
	struct bstats_load l = {.type = BPF_PROG_TYPE_EXT};
	int fd, rc;

	fd = bstats_load_btf(&target, "__sk_buff", funcs, 2, code, INSN_COUNT(code));
	if (fd < 0)
		return fd;
	rc = func_in(fd, funcs[1].name);
	if (rc > 0) {
		l.attach_prog_fd = (unsigned int)fd;
		l.attach_btf_id = (unsigned int)rc;
		rc = attach_and_close(
			bstats_load_btf(&l, NULL, &new_func, 1, new_code, INSN_COUNT(new_code)));
	}
	close(fd);
	return rc;
}

static int probe_netfilter(void)
{
	const struct bpf_insn code[] = {I_MOV(R0, 1), I_EXIT()};
	const struct bstats_load l = {
		.type = BPF_PROG_TYPE_NETFILTER_,
		.attach_type = BPF_NETFILTER_,
	};

	return done(bstats_load(&l, code, INSN_COUNT(code)));
}

static int probe_sleepable_uprobe(void)
{
	return done(load_empty(BPF_PROG_TYPE_KPROBE, 0, 0, BPF_F_SLEEPABLE));
}

/* The hook exists wherever CONFIG_BPF_LSM is set, but is called only if the LSM is active. */
static int probe_lsm(void)
{
	int map = bstats_array(8), fd = -1, link = -1, rc;
	__u64 calls = 0;

	if (map < 0)
		return map;
	const struct bpf_insn code[] = {
		I_LD_VALUE(R1, map, 0), I_MOV(R2, 1), I_ATOMIC_ADD64(R1, R2, 0),
		I_MOV(R0, 0), I_EXIT(),
	};
	const struct bstats_load l = {
		.type = BPF_PROG_TYPE_LSM,
		.attach_type = BPF_LSM_MAC,
		.attach_btf_id = bstats_btf_id("bpf_lsm_file_open", BTF_KIND_FUNC),
	};

	rc = (int)l.attach_btf_id;
	if (rc > 0)
		rc = fd = bstats_load(&l, code, INSN_COUNT(code));
	if (rc > 0) {
		link = bpf_raw_tracepoint_open(NULL, fd);
		rc = link < 0 ? -errno : 0;
	}
	if (!rc) {
		done(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
		rc = bstats_array_get(map, &calls, 1);
	}
	if (!rc && !calls)
		rc = -ENOENT;
	done(link);
	done(fd);
	close(map);
	return rc;
}

static int probe_struct_ops_run(void)
{
	int id = bstats_btf_id("bpf_dummy_ops", BTF_KIND_STRUCT);
	int member = bstats_btf_member("bpf_dummy_ops", "test_1");

	if (id < 0 || member < 0)
		return id < 0 ? id : member;
	return done(load_empty(BPF_PROG_TYPE_STRUCT_OPS, member, id, 0));
}

static int probe_iter(void)
{
	return done(load_empty(BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER,
			       bstats_btf_id("bpf_iter_task", BTF_KIND_FUNC), 0));
}

static int probe_timer(void)
{
	int rc = bstats_btf_enum("BPF_FUNC_timer_init");

	return rc < 0 ? rc : 0;
}

/* From 7.0 on, programs call it by a name without _impl, but the verifier looks for this one, which
 * is missing where the BTF was made by an old pahole (1.24 of Debian 12). */
static int probe_workqueue(void)
{
	int rc = bstats_btf_id("bpf_wq_set_callback_impl", BTF_KIND_FUNC);

	return rc < 0 ? rc : 0;
}

static int probe_file(const char *path)
{
	return access(path, R_OK) ? -errno : 0;
}

static int probe_tracepoint(void)
{
	return probe_file("/sys/kernel/tracing/events/sched/sched_process_fork/id");
}

static int probe_kprobe(void)
{
	return probe_file("/sys/bus/event_source/devices/kprobe/type");
}

static int probe_uprobe(void)
{
	return probe_file("/sys/bus/event_source/devices/uprobe/type");
}

static int probe_kprobe_multi(void)
{
	const char *sym = "bpf_fentry_test1";
	LIBBPF_OPTS(bpf_link_create_opts, opts, .kprobe_multi.syms = &sym, .kprobe_multi.cnt = 1, );
	int fd, link;

	fd = load_empty(BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI, 0, 0);
	if (fd < 0)
		return fd;
	link = bpf_link_create(fd, 0, BPF_TRACE_KPROBE_MULTI, &opts);
	link = link < 0 ? -errno : link;
	close(fd);
	return done(link);
}

const struct behaviour_info behaviours[] = {
	{BH_RECURSION_MISSES, "recursion_misses", "5.12",
	 "runs that the recursion guard skips are counted in recursion_misses",
	 "the size of the kernel's struct bpf_prog_info", probe_recursion_misses},
	{BH_SLEEPABLE_COUNTED, "sleepable counted", "5.12",
	 "runs of sleepable programs on a trampoline are counted",
	 "recursion_misses, which came with the same series", probe_recursion_misses},
	{BH_SYSCALL_PROG, "syscall programs", "5.14",
	 "a sleepable program type that BPF_PROG_TEST_RUN runs", "loading one", probe_syscall_prog},
	{BH_USERFAULTFD, "userfaultfd", "4.3",
	 "a page fault that is answered when the test likes (CONFIG_USERFAULTFD)", "opening one",
	 probe_userfaultfd},
	{BH_PIDFD_GETFD, "pidfd_getfd", "5.6", "a copy of another process's file descriptor",
	 "copying one of our own", probe_pidfd_getfd},
	{BH_USER_NS, "user namespaces", "3.8", "capabilities that hold in a namespace only",
	 "unshare(2) in a child", probe_user_ns},
	{BH_NET_NS, "network namespaces", "3.0", "devices and sockets of our own",
	 "unshare(2) in a child", probe_net_ns},
	{BH_FENTRY_KERNEL, "fentry on kernel functions", "5.5 (arm64: 6.4)",
	 "trampolines around kernel functions (CONFIG_FUNCTION_TRACER, direct calls)",
	 "attaching to bpf_fentry_test1", probe_fentry_kernel},
	{BH_FENTRY_BPF, "fentry on BPF programs", "5.5 (arm64: 6.0)",
	 "trampolines around BPF programs", "attaching to an empty program", probe_fentry_bpf},
	{BH_FREPLACE, "freplace", "5.6 (arm64: 6.0)",
	 "programs that replace another one's function", "replacing one", probe_freplace},
	{BH_FMOD_RET, "fmod_ret", "5.7 (arm64: 6.4)",
	 "programs that replace the return value of a hook (CONFIG_SECURITY)",
	 "attaching to security_task_getsid", probe_fmod_ret},
	{BH_FSESSION, "fsession", "7.0",
	 "one program at a function's entry and exit, counted at both",
	 "BPF_TRACE_FSESSION in the kernel's BTF, and attaching", probe_fsession},
	{BH_SLEEPABLE_FENTRY, "sleepable fentry in test runs", "6.3",
	 "sleepable tracing programs on bpf_fentry_test1", "attaching one", probe_sleepable_fentry},
	{BH_LSM, "lsm programs", "5.7 (arm64: 6.4)",
	 "LSM hooks as BPF programs (CONFIG_BPF_LSM, and bpf in the lsm= boot parameter)",
	 "a program on file_open that counts its calls itself", probe_lsm},
	{BH_STRUCT_OPS_RUN, "struct_ops test runs", "5.16 (arm64: 6.0)",
	 "struct bpf_dummy_ops, which exists to be run by BPF_PROG_TEST_RUN",
	 "the structure in the kernel's BTF, and loading a program for it", probe_struct_ops_run},
	{BH_ITER, "iterators", "5.8", "programs that walk kernel objects when a file is read",
	 "loading one for tasks", probe_iter},
	{BH_TIMER, "timers", "5.15", "callbacks of bpf_timer",
	 "BPF_FUNC_timer_init in the kernel's BTF", probe_timer},
	{BH_WORKQUEUE, "work queues", "6.10", "callbacks of bpf_wq",
	 "bpf_wq_set_callback_impl in the kernel's BTF", probe_workqueue},
	{BH_TRACEPOINT, "tracepoints", "4.7", "programs on tracepoints by perf events",
	 "sched_process_fork in tracefs", probe_tracepoint},
	{BH_KPROBE, "kprobes", "4.17", "kprobes as perf events (CONFIG_KPROBE_EVENTS)",
	 "the kprobe PMU in sysfs", probe_kprobe},
	{BH_UPROBE, "uprobes", "4.17", "uprobes as perf events (CONFIG_UPROBE_EVENTS)",
	 "the uprobe PMU in sysfs", probe_uprobe},
	{BH_KPROBE_MULTI, "kprobe_multi", "5.18 (arm64: 6.14)",
	 "one link on many functions (CONFIG_FPROBE)", "linking to bpf_fentry_test1",
	 probe_kprobe_multi},
	{BH_SLEEPABLE_UPROBE, "sleepable uprobes", "6.0", "programs on uprobes that may sleep",
	 "loading one", probe_sleepable_uprobe},
	{BH_NETFILTER, "netfilter programs", "6.4",
	 "programs on netfilter's hooks (CONFIG_NETFILTER)", "loading one", probe_netfilter},
	{BH_XDP_LIVE_FRAMES, "live frames", "5.18", "XDP test runs with frames that exist",
	 "a test run of an empty program", probe_xdp_live_frames},
	{BH_UNPRIVILEGED_INFO, "unprivileged info", "5.19",
	 "kernel.unprivileged_bpf_disabled leaves reading of what one was given",
	 "asking as a user for an fd that there is not", probe_unprivileged_info},
	{},
};

bool behaviour__have(struct behaviour_found *found, unsigned int needs, char *why, size_t size)
{
	for (const struct behaviour_info *b = behaviours; b->name; b++) {
		int *rc = &found->rc[__builtin_ctz(b->bit)];

		if (!(needs & b->bit))
			continue;
		if (!(found->probed & b->bit))
			*rc = b->probe();
		found->probed |= b->bit;
		if (*rc) {
			snprintf(why, size, "needs %s (%s, since %s); probed by %s: %s", b->name,
				 b->what, b->since, b->probe_by, bstats_strerror(*rc));
			return false;
		}
	}
	return true;
}
