// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What run_cnt counts: for every way to run a program that this kernel has, exactly the runs, while
 * the switch is on, and nothing while it is off. Each program counts its runs in a map as well, so
 * that other processes may run it too, and the numbers must still be equal.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "btest.h"

#ifdef __aarch64__
#define SYS_PREFIX "__arm64_sys_"
#else
#define SYS_PREFIX "__x64_sys_"
#endif

struct scene;

/* One way to run a program. */
struct kind {
	unsigned int type, attach_type, flags;
	const char *func;      /* the kernel function that it attaches to, or the structure */
	const char *member;    /* of the structure */
	const char *enumerator; /* an attach type that older headers lack */
	int ret;	       /* what the program returns */
	int runs;	       /* that one provocation makes; 0: others may make some, too */
	unsigned int link_flags;
	bool stays; /* attached all the time; next to nobody else can run it */
	/* Puts the scene up, once; attaches, and returns an fd whose close detaches, or 0 if
	 * there is nothing to attach; makes @n runs happen. */
	void (*setup)(struct btest *t, struct scene *s);
	int (*attach)(struct btest *t, struct scene *s);
	void (*provoke)(struct btest *t, struct scene *s, int n);
};

struct scene {
	const struct kind *kind;
	int map, prog, link;
	int a, b, c; /* what setup() made: sockets, directories, interfaces */
	int target;  /* the program that ours is attached to, and the function there */
	int target_func;
};

/* ---- loading ---- */

/* The errnos by which a kernel says that it has not got something. Anything else is a failure. */
static bool is_refusal(int err)
{
	return err == -EINVAL || err == -ENOENT || err == -EOPNOTSUPP || err == -524 ||
	       err == -EPERM || err == -ENODEV || err == -ESRCH || err == -EACCES ||
	       err == -EPROTONOSUPPORT || err == -EAFNOSUPPORT;
}

static long have(struct btest *t, long rc, const char *what)
{
	if (rc < 0 && is_refusal(rc == -1 ? -errno : (int)rc))
		btest_skip(t, "this kernel refuses %s: %s", what,
			   bstats_strerror(rc == -1 ? errno : (int)rc));
	return need(t, rc, what);
}

static int load_counting(struct btest *t, const struct scene *s)
{
	const struct kind *k = s->kind;
	const struct bpf_insn code[] = {
		I_LD_VALUE(R1, s->map, 0), I_MOV(R2, 1), I_ATOMIC_ADD64(R1, R2, 0),
		I_MOV(R0, k->ret), I_EXIT(),
	};
	struct bstats_load l = {
		.type = k->type,
		.attach_type = k->attach_type,
		.flags = k->flags,
		.name = "stats_counted",
	};

	if (k->enumerator)
		l.attach_type = (unsigned int)have(t, bstats_btf_enum(k->enumerator),
						   k->enumerator);
	if (k->member) {
		l.attach_type = (unsigned int)have(t, bstats_btf_member(k->func, k->member),
						   k->func);
		l.attach_btf_id = (unsigned int)have(t, bstats_btf_id(k->func, BTF_KIND_STRUCT),
						     k->func);
	} else if (s->target > 0) {
		l.attach_prog_fd = (unsigned int)s->target;
		l.attach_btf_id = (unsigned int)s->target_func;
	} else if (k->func && k->type != BPF_PROG_TYPE_KPROBE) {
		/* Tracepoints are typedefs there. */
		bool tp = k->attach_type == BPF_TRACE_RAW_TP;

		l.attach_btf_id = (unsigned int)have(
			t, bstats_btf_id(k->func, tp ? BTF_KIND_TYPEDEF : BTF_KIND_FUNC), k->func);
	}
	return (int)have(t, bstats_load(&l, code, INSN_COUNT(code)), "the program");
}

/* ---- ways to attach and to provoke ---- */

static void run_packet(struct btest *t, struct scene *s, int n)
{
	have(t, bstats_run(s->prog, (unsigned int)n), "BPF_PROG_TEST_RUN");
}

/* Frames that come from nowhere, and that the program drops. */
static void run_live(struct btest *t, struct scene *s, int n)
{
	unsigned char packet[64] = {[12] = 0x08, [14] = 0x45};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = n, .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = 4, );

	need(t, bpf_prog_test_run_opts(s->prog, &opts) ? -errno : 0,
	     "BPF_PROG_TEST_RUN with live frames");
}

static void run_bare(struct btest *t, struct scene *s, int n)
{
	for (int i = 0; i < n; i++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts);

		have(t, bpf_prog_test_run_opts(s->prog, &opts) ? -errno : 0, "BPF_PROG_TEST_RUN");
	}
}

static void run_ctx(struct btest *t, struct scene *s, int n)
{
	__u64 ctx[8] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = sizeof(ctx), );

	for (int i = 0; i < n; i++)
		have(t, bpf_prog_test_run_opts(s->prog, &opts) ? -errno : 0, "BPF_PROG_TEST_RUN");
}

/* struct bpf_sk_lookup and the flow dissector want a context and a packet of their own. */
static void run_sk_lookup(struct btest *t, struct scene *s, int n)
{
	struct bpf_sk_lookup ctx = {.family = AF_INET, .protocol = IPPROTO_UDP};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &ctx, .ctx_size_in = sizeof(ctx),
		    .repeat = n, );

	have(t, bpf_prog_test_run_opts(s->prog, &opts) ? -errno : 0, "BPF_PROG_TEST_RUN");
}

static void run_struct_ops(struct btest *t, struct scene *s, int n)
{
	int state = 0;
	__u64 args[1] = {(__u64)(uintptr_t)&state};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args), );

	for (int i = 0; i < n; i++)
		have(t, bpf_prog_test_run_opts(s->prog, &opts) ? -errno : 0, "BPF_PROG_TEST_RUN");
}

static int attach_trace(struct btest *t, struct scene *s)
{
	return (int)have(t, bpf_raw_tracepoint_open(NULL, s->prog), "attaching");
}

/* The id of a function in a program's own type information. */
static int func_id(struct btest *t, int prog, const char *name)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	struct btf *btf;
	int id;

	need(t, bpf_obj_get_info_by_fd(prog, &info, &len), "the program's info");
	btf = btf__load_from_kernel_by_id(info.btf_id);
	id = btf ? btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) : -errno;
	btf__free(btf);
	return (int)need(t, id, "the function in the program's BTF");
}

/* An empty program that is run by nobody but us, to attach to. */
static void setup_target(struct btest *t, struct scene *s)
{
	const struct bpf_insn code[] = {I_MOV(R0, 0), I_EXIT()};
	const struct bstats_func func = {.name = "stats_target", .takes_ctx = true};
	const struct bstats_load l = {.type = BPF_PROG_TYPE_SOCKET_FILTER};

	s->target = (int)need(t, bstats_load_btf(&l, "__sk_buff", &func, 1, code, INSN_COUNT(code)),
			      "a program to attach to");
	s->target_func = func_id(t, s->target, func.name);
}

static void run_target(struct btest *t, struct scene *s, int n)
{
	must_run(t, s->target, (unsigned int)n);
}

static int attach_raw_tp(struct btest *t, struct scene *s)
{
	return (int)have(t, bpf_raw_tracepoint_open("sched_process_fork", s->prog),
			 "the raw tracepoint sched_process_fork");
}

static void fork_n(struct btest *t, struct scene *s, int n)
{
	(void)s;
	for (int i = 0; i < n; i++) {
		pid_t pid = (pid_t)need(t, fork(), "fork");

		if (!pid)
			_exit(0);
		need(t, waitpid(pid, NULL, 0), "waitpid");
	}
}

static void getpgid_n(struct btest *t, struct scene *s, int n)
{
	(void)s;
	for (int i = 0; i < n; i++)
		need(t, syscall(SYS_getpgid, 0), "getpgid");
}

static void open_n(struct btest *t, struct scene *s, int n)
{
	(void)s;
	for (int i = 0; i < n; i++)
		close((int)need(t, open("/proc/self/stat", O_RDONLY | O_CLOEXEC), "open"));
}

/* Next to nobody else asks for the session of a process. */
static void getsid_n(struct btest *t, struct scene *s, int n)
{
	(void)s;
	for (int i = 0; i < n; i++)
		need(t, getsid(getpid()), "getsid");
}

static long long number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	long long n = -ENOENT;

	if (!f)
		return -errno;
	if (fscanf(f, "%lld", &n) != 1)
		n = -EPROTO;
	fclose(f);
	return n;
}

static int perf_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int perf_attach(struct btest *t, struct scene *s, int fd)
{
	have(t, fd, "perf_event_open");
	have(t, ioctl(fd, PERF_EVENT_IOC_SET_BPF, s->prog), "PERF_EVENT_IOC_SET_BPF");
	need(t, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), "PERF_EVENT_IOC_ENABLE");
	return fd;
}

static int attach_tp(struct btest *t, struct scene *s)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.config = (__u64)have(
			t, number_in("/sys/kernel/tracing/events/sched/sched_process_fork/id"),
			"the id of sched_process_fork"),
		.sample_period = 1,
	};

	return perf_attach(t, s, perf_open(&attr, -1, 0));
}

static int attach_kprobe(struct btest *t, struct scene *s)
{
	struct perf_event_attr attr = {
		.type = (__u32)have(t, number_in("/sys/bus/event_source/devices/kprobe/type"),
				    "the kprobe PMU"),
		.kprobe_func = (__u64)(uintptr_t)s->kind->func,
	};

	return perf_attach(t, s, perf_open(&attr, -1, 0));
}

static int attach_kprobe_multi(struct btest *t, struct scene *s)
{
	const char *sym = s->kind->func;
	LIBBPF_OPTS(bpf_link_create_opts, opts, .kprobe_multi.syms = &sym, .kprobe_multi.cnt = 1, );

	return (int)have(t, bpf_link_create(s->prog, 0, BPF_TRACE_KPROBE_MULTI, &opts),
			 "a kprobe_multi link");
}

/* What the uprobe is on. */
static __attribute__((noinline)) int probed(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

/* Where in our file the function is: its address by the mapping that has it. */
static long long file_offset(const void *address)
{
	unsigned long long start, end, offset, at = (unsigned long long)(uintptr_t)address;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");
	long long found = -ENOENT;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f) && found < 0)
		if (sscanf(line, "%llx-%llx %*s %llx", &start, &end, &offset) == 3 &&
		    start <= at && at < end)
			found = (long long)(at - start + offset);
	fclose(f);
	return found;
}

static int attach_uprobe(struct btest *t, struct scene *s)
{
	struct perf_event_attr attr = {
		.type = (__u32)have(t, number_in("/sys/bus/event_source/devices/uprobe/type"),
				    "the uprobe PMU"),
		.uprobe_path = (__u64)(uintptr_t) "/proc/self/exe",
		.probe_offset =
			(__u64)need(t, file_offset((const void *)probed), "/proc/self/maps"),
	};

	return perf_attach(t, s, perf_open(&attr, -1, 0));
}

static void call_n(struct btest *t, struct scene *s, int n)
{
	(void)t;
	(void)s;
	for (int i = 0; i < n; i++)
		probed(i);
}

static int attach_faults(struct btest *t, struct scene *s)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
	};

	return perf_attach(t, s, perf_open(&attr, 0, -1));
}

static void fault_n(struct btest *t, struct scene *s, int n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, page * (size_t)n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	(void)s;
	if (p == MAP_FAILED)
		btest_broken(t, errno, "mmap");
	madvise(p, page * (size_t)n, MADV_NOHUGEPAGE);
	for (int i = 0; i < n; i++)
		((volatile char *)p)[page * (size_t)i] = 1;
	munmap(p, page * (size_t)n);
}

static int attach_iter(struct btest *t, struct scene *s)
{
	return (int)have(t, bpf_link_create(s->prog, 0, BPF_TRACE_ITER, NULL), "an iterator link");
}

static void read_iter(struct btest *t, struct scene *s, int n)
{
	char buf[4096];

	for (int i = 0; i < n; i++) {
		int fd = (int)need(t, bpf_iter_create(s->link), "bpf_iter_create");

		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	}
}

/* A unix socket runs its filter for each packet that comes in. */
static void setup_socket(struct btest *t, struct scene *s)
{
	int socks[2];

	need(t, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, socks), "socketpair");
	s->a = socks[0];
	s->b = socks[1];
}

static int attach_socket(struct btest *t, struct scene *s)
{
	need(t, setsockopt(s->b, SOL_SOCKET, SO_ATTACH_BPF, &s->prog, sizeof(s->prog)),
	     "SO_ATTACH_BPF");
	return 0;
}

static void send_n(struct btest *t, struct scene *s, int n)
{
	char byte = 0;

	for (int i = 0; i < n; i++) {
		need(t, send(s->a, &byte, 1, 0), "send");
		need(t, recv(s->b, &byte, 1, 0), "recv");
	}
}

/* ---- networks of our own ---- */

static void interface_up(struct btest *t, const char *name)
{
	struct ifreq ifr = {};
	int fd = (int)need(t, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	need(t, ioctl(fd, SIOCGIFFLAGS, &ifr), "SIOCGIFFLAGS");
	ifr.ifr_flags |= IFF_UP;
	need(t, ioctl(fd, SIOCSIFFLAGS, &ifr), "SIOCSIFFLAGS");
	close(fd);
}

static void own_network(struct btest *t)
{
	if (unshare(CLONE_NEWNET))
		btest_skip(t, "needs a network namespace: %s", strerror(errno));
	interface_up(t, "lo");
}

struct request {
	struct nlmsghdr nh;
	struct ifinfomsg ifi;
	char attrs[256];
};

static struct rtattr *attr_add(struct request *r, int type, const void *data, size_t len)
{
	/* By the whole request's address, as what follows the header is not part of it. */
	struct rtattr *a = (struct rtattr *)((char *)r + NLMSG_ALIGN(r->nh.nlmsg_len));

	a->rta_type = (unsigned short)type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), data, len);
	r->nh.nlmsg_len = NLMSG_ALIGN(r->nh.nlmsg_len) + (unsigned int)RTA_ALIGN(a->rta_len);
	return a;
}

static void attr_end(struct request *r, struct rtattr *a)
{
	a->rta_len = (unsigned short)((char *)r + r->nh.nlmsg_len - (char *)a);
}

/* ip link add stats0 type veth peer name stats1 */
static int make_veth(void)
{
	struct ifinfomsg peer = {};
	struct rtattr *info, *data, *other;
	struct {
		struct nlmsghdr nh;
		struct nlmsgerr err;
		char rest[512];
	} answer;
	struct request r = {
		.nh.nlmsg_len = NLMSG_LENGTH(sizeof(r.ifi)),
		.nh.nlmsg_type = RTM_NEWLINK,
		.nh.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n;

	if (fd < 0)
		return -errno;
	attr_add(&r, IFLA_IFNAME, "stats0", 7);
	info = attr_add(&r, IFLA_LINKINFO, NULL, 0);
	attr_add(&r, IFLA_INFO_KIND, "veth", 4);
	data = attr_add(&r, IFLA_INFO_DATA, NULL, 0);
	other = attr_add(&r, VETH_INFO_PEER, &peer, sizeof(peer));
	attr_add(&r, IFLA_IFNAME, "stats1", 7);
	attr_end(&r, other);
	attr_end(&r, data);
	attr_end(&r, info);
	n = send(fd, &r, r.nh.nlmsg_len, 0) < 0 ? -1 : recv(fd, &answer, sizeof(answer), 0);
	n = n < 0 ? -errno : n;
	close(fd);
	if (n < 0)
		return (int)n;
	return answer.nh.nlmsg_type == NLMSG_ERROR ? answer.err.error : -EPROTO;
}

static void setup_veth(struct btest *t, struct scene *s)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};

	own_network(t);
	have(t, make_veth(), "a veth pair");
	interface_up(t, "stats0");
	interface_up(t, "stats1");
	s->a = (int)have(t, socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), "a packet socket");
	addr.sll_ifindex = (int)if_nametoindex("stats0");
	need(t, bind(s->a, (struct sockaddr *)&addr, sizeof(addr)), "bind to stats0");
	s->b = (int)if_nametoindex("stats1");
}

/* Ends the scene's XDP or tc program, which no link holds. */
static int attach_xdp(struct btest *t, struct scene *s)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = s->kind->link_flags, );

	return (int)have(t, bpf_link_create(s->prog, s->b, BPF_XDP, &opts), "an XDP link on veth");
}

/* Packets that nothing on the other side understands; ours are the only ones but for IPv6's own. */
static void packets_n(struct btest *t, struct scene *s, int n)
{
	unsigned char packet[64] = {[0] = 2, [6] = 2, [11] = 1, [12] = 0x08, [14] = 0x45};
	__u64 before = 0, now = 0;

	need(t, bstats_array_get(s->map, &before, 1), "reading the map");
	/* The other side is served by a soft interrupt, and drops what comes while it starts. */
	for (int i = 0; i < 2000 && (i < n || now < before + (__u64)n); i++) {
		need(t, send(s->a, packet, sizeof(packet), 0), "sending a packet");
		if (i >= n)
			sleep_ms(1);
		need(t, bstats_array_get(s->map, &now, 1), "reading the map");
	}
}

static int attach_tc(struct btest *t, struct scene *s)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = s->b, .attach_point = BPF_TC_INGRESS, );
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = s->prog, .handle = 1, .priority = 1, );
	int rc = bpf_tc_hook_create(&hook);

	have(t, rc == -EEXIST ? 0 : rc, "the clsact qdisc");
	have(t, bpf_tc_attach(&hook, &opts), "a tc filter");
	return 0;
}

/* ---- cgroups ---- */

static bool cgroup2_mount(char *dir, size_t size)
{
	char line[1024], at[512], type[64];
	FILE *f = fopen("/proc/self/mounts", "re");
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %511s %63s", at, type) == 2 && !strcmp(type, "cgroup2"))
			found = snprintf(dir, size, "%s", at) < (int)size;
	fclose(f);
	return found;
}

static void setup_cgroup(struct btest *t, struct scene *s)
{
	char dir[600], path[700], number[16];

	own_network(t);
	if (!cgroup2_mount(dir, sizeof(dir)))
		btest_skip(t, "needs a cgroup2 mount");
	snprintf(path, sizeof(path), "%s/bpf_stats_test", dir);
	if (mkdir(path, 0755) && errno != EEXIST)
		btest_skip(t, "needs a cgroup of its own: %s: %s", path, strerror(errno));
	s->a = (int)need(t, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path);
	s->c = (int)need(t, open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir);
	snprintf(number, sizeof(number), "%d", getpid());
	strcat(path, "/cgroup.procs");
	have(t, put_file(path, number), "moving to a cgroup");
}

static int attach_cgroup(struct btest *t, struct scene *s)
{
	return (int)have(t, bpf_link_create(s->prog, s->a, s->kind->attach_type, NULL),
			 "a cgroup link");
}

static void udp_n(struct btest *t, struct scene *s, int n)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(9),
	};
	int fd = (int)need(t, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");

	(void)s;
	for (int i = 0; i < n; i++)
		need(t, sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), "sendto");
	close(fd);
}

static void udp_connect_n(struct btest *t, struct scene *s, int n)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(9),
	};

	(void)s;
	for (int i = 0; i < n; i++) {
		int fd = (int)need(t, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");

		need(t, connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
		close(fd);
	}
}

static void tcp_n(struct btest *t, struct scene *s, int n)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(at);
	int fd = (int)need(t, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");

	(void)s;
	need(t, bind(fd, (struct sockaddr *)&at, sizeof(at)), "bind");
	need(t, listen(fd, 16), "listen");
	need(t, getsockname(fd, (struct sockaddr *)&at, &len), "getsockname");
	for (int i = 0; i < n; i++) {
		int c = (int)need(t, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");

		need(t, connect(c, (struct sockaddr *)&at, len), "connect");
		close((int)need(t, accept4(fd, NULL, NULL, SOCK_CLOEXEC), "accept"));
		close(c);
	}
	close(fd);
}

static void sockopt_n(struct btest *t, struct scene *s, int n)
{
	int fd = (int)need(t, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"), value;
	socklen_t len = sizeof(value);

	(void)s;
	for (int i = 0; i < n; i++)
		need(t, getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &len), "getsockopt");
	close(fd);
}

static void sysctl_n(struct btest *t, struct scene *s, int n)
{
	(void)s;
	for (int i = 0; i < n; i++)
		need(t, bstats_sysctl_read(), "reading a sysctl");
}

/* ---- the case: every phase of the switch ---- */

static __u64 own_count(struct btest *t, const struct scene *s)
{
	__u64 count;

	need(t, bstats_array_get(s->map, &count, 1), "reading the map");
	return count;
}

/* Attaches, provokes, detaches; returns the runs that the program saw itself. A run that began on
 * another CPU may still have to be counted; that is done when the numbers rest. */
static __u64 runs_of(struct btest *t, struct scene *s, int n)
{
	__u64 before = own_count(t, s), seen, last;
	struct bstats b;

	if (!s->link)
		s->link = s->kind->attach ? s->kind->attach(t, s) : 0;
	s->kind->provoke(t, s, n);
	/* Before 5.13, a program is attached to a function once. */
	if (s->link > 0 && !s->kind->stays) {
		close(s->link);
		s->link = 0;
	}
	if (s->kind->attach == attach_socket)
		need(t, setsockopt(s->b, SOL_SOCKET, SO_DETACH_FILTER, &n, sizeof(n)), "detaching");
	if (s->kind->attach == attach_tc) {
		LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = s->b,
			    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS, );

		need(t, bpf_tc_hook_destroy(&hook), "removing the clsact qdisc");
	}
	do {
		last = must_info(t, s->prog).run_cnt + own_count(t, s);
		sleep_ms(1);
		b = must_info(t, s->prog);
		seen = own_count(t, s);
	} while (b.run_cnt + seen != last);
	return seen - before;
}

static void phases(struct btest *t)
{
	const struct kind *k = t->tc->data;
	struct scene s = {.kind = k};
	const int n = 10, least = n * (k->runs ? k->runs : 1);
	__u64 runs, total;
	struct bstats b;
	int fd;

	s.map = (int)need(t, bstats_array(8), "a map");
	if (k->setup)
		k->setup(t, &s);
	s.prog = load_counting(t, &s);

	runs = runs_of(t, &s, n);
	if (k->runs)
		expect_eq(t, least, (long long)runs,
			  "runs that the program counts itself, provoked %d times", n);
	else if (runs < (__u64)least)
		btest_failed(t, "at least 10 runs that the program counts itself",
			     "%llu runs", (unsigned long long)runs);
	b = must_info(t, s.prog);
	expect_eq(t, 0, (long long)b.run_cnt, "run_cnt after %llu runs with the switch off",
		  (unsigned long long)runs);
	expect_eq(t, 0, (long long)b.run_time_ns, "run_time_ns after runs with the switch off");

	fd = must_open(t);
	total = runs = runs_of(t, &s, n);
	b = must_info(t, s.prog);
	expect_eq(t, (long long)total, (long long)b.run_cnt, "run_cnt after %llu runs, switch on",
		  (unsigned long long)runs);
	if (!b.run_time_ns)
		btest_failed(t, "run_time_ns above 0 after runs with the switch on", "0");
	close(fd);

	runs = runs_of(t, &s, n);
	expect_eq(t, (long long)total, (long long)must_info(t, s.prog).run_cnt,
		  "run_cnt, frozen after the last close, after %llu more runs",
		  (unsigned long long)runs);
	expect_eq(t, (long long)b.run_time_ns, (long long)must_info(t, s.prog).run_time_ns,
		  "run_time_ns, frozen after the last close");

	/* The other holder continues where the first one stopped. */
	must_set(t, 1);
	total += runs_of(t, &s, n);
	must_set(t, 0);
	expect_eq(t, (long long)total, (long long)must_info(t, s.prog).run_cnt,
		  "run_cnt, continued after the switch went on again");
	runs_of(t, &s, n);
	expect_eq(t, (long long)total, (long long)must_info(t, s.prog).run_cnt,
		  "run_cnt after the sysctl went to 0");
	if (s.c > 0) {
		char number[16];
		int procs = openat(s.c, "cgroup.procs", O_WRONLY | O_CLOEXEC);

		/* Out of the cgroup, so that it can be removed. */
		snprintf(number, sizeof(number), "%d", getpid());
		if (procs >= 0 && write(procs, number, strlen(number)) < 0)
			btest_note(t, "could not leave the cgroup: %s", strerror(errno));
		if (unlinkat(s.c, "bpf_stats_test", AT_REMOVEDIR))
			btest_note(t, "could not remove the cgroup: %s", strerror(errno));
	}
}

/* ---- exact, and on several CPUs ---- */

static void exact(struct btest *t)
{
	static const unsigned int counts[] = {1, 2, 3, 1000, 100000};
	int fd = must_open(t);
	__u64 total = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		int prog = (int)need(t, bstats_observer(), "a program");

		must_run(t, prog, counts[i]);
		expect_eq(t, counts[i], (long long)must_info(t, prog).run_cnt, "run_cnt of %u runs",
			  counts[i]);
		total += counts[i];
	}
	close(fd);
	btest_note(t, "%llu runs", (unsigned long long)total);
}

#define AT_ONCE 4

struct runner {
	int prog;
	unsigned int nth;
	bool bare; /* on a trampoline, by a run that takes no packet */
};

/* The CPUs are those that we may use, in turn. */
static void runs_on_cpu(struct btest *t, struct peer *me, void *arg)
{
	const struct runner *r = arg;
	struct scene s = {.prog = r->prog};

	peer_ask(t, me, (int)need(t, stay_on_cpu(r->nth), "staying on a CPU"));
	for (int i = 0; i < 100; i++) {
		if (r->bare)
			run_bare(t, &s, 10);
		else
			must_run(t, r->prog, 100);
	}
	peer_say(t, me, 0);
}

static void four_cpus(struct btest *t)
{
	const struct kind *k = t->tc->data;
	struct scene s = {.kind = k};
	struct runner r[AT_ONCE];
	struct peer p[AT_ONCE];
	struct bstats b;
	cpu_set_t used;
	int fd, calls;

	s.map = (int)need(t, bstats_array(8), "a map");
	s.prog = load_counting(t, &s);
	if (k->attach)
		s.link = k->attach(t, &s);
	calls = AT_ONCE * 100 * (k->attach ? 10 : 100);
	fd = must_open(t);
	CPU_ZERO(&used);
	for (int i = 0; i < AT_ONCE; i++) {
		r[i] = (struct runner){.prog = s.prog, .nth = i, .bare = k->attach};
		p[i] = peer_start(t, runs_on_cpu, &r[i]);
		CPU_SET(peer_hear(t, &p[i]), &used);
	}
	for (int i = 0; i < AT_ONCE; i++)
		peer_say(t, &p[i], 0);
	for (int i = 0; i < AT_ONCE; i++) {
		peer_hear(t, &p[i]);
		peer_wait(t, &p[i]);
	}
	close(fd);
	b = must_info(t, s.prog);
	expect_eq(t, (long long)own_count(t, &s), (long long)b.run_cnt,
		  "run_cnt, as many as the program counts itself on %d CPUs at once",
		  CPU_COUNT(&used));
	/* On a trampoline, a run that another one of the same CPU interrupts is in its way. */
	if (!k->attach || b.has_recursion_misses)
		expect_eq(t, calls, (long long)(b.run_cnt + b.recursion_misses),
			  "runs counted or skipped, of %d processes on %d CPUs at once", AT_ONCE,
			  CPU_COUNT(&used));
	btest_note(t, "%d calls on %d CPUs", calls, CPU_COUNT(&used));
}

/* ---- what is not counted, or not where one would look for it ---- */

static void tail_call(struct btest *t)
{
	int map = (int)need(t, bstats_array(8), "a map"), fd, array, caller, callee;
	__u32 key = 0;

	array = (int)need(t, bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "stats_test", 4, 4, 1, NULL),
			  "a program array");
	const struct kind k = {.type = BPF_PROG_TYPE_SOCKET_FILTER};
	const struct scene s = {.kind = &k, .map = map};
	const struct bpf_insn code[] = {
		I_LD_MAP(R2, array), I_MOV(R3, 0), I_CALL(BPF_FUNC_tail_call),
		I_MOV(R0, 0), I_EXIT(),
	};

	callee = load_counting(t, &s);
	caller = (int)need(t, bstats_load(&(struct bstats_load){.type = k.type}, code,
					  INSN_COUNT(code)), "a program with a tail call");
	need(t, bpf_map_update_elem(array, &key, &callee, BPF_ANY), "filling the program array");
	fd = must_open(t);
	must_run(t, caller, 100);
	close(fd);
	need(t, bpf_map_delete_elem(array, &key), "emptying the program array");
	expect_eq(t, 100, (long long)own_count(t, &s),
		  "runs that the called program counts itself");
	expect_eq(t, 100, (long long)must_info(t, caller).run_cnt, "run_cnt of the caller");
	expect_eq(t, 0, (long long)must_info(t, callee).run_cnt,
		  "run_cnt of the program that is only reached by a tail call");
}

static void subprograms(struct btest *t)
{
	int map = (int)need(t, bstats_array(8), "a map"), prog, fd;
	const struct bpf_insn code[] = {
		I_CALL_SUB(2), I_CALL_SUB(1), I_EXIT(),
		I_LD_VALUE(R1, map, 0), I_MOV(R2, 1), I_ATOMIC_ADD64(R1, R2, 0),
		I_MOV(R0, 0), I_EXIT(),
	};

	prog = (int)need(t, bstats_load(&(struct bstats_load){.type = BPF_PROG_TYPE_SOCKET_FILTER},
					code, INSN_COUNT(code)), "a program with a subprogram");
	fd = must_open(t);
	must_run(t, prog, 100);
	close(fd);
	expect_eq(t, 200, (long long)own_count(t, &(struct scene){.map = map}),
		  "calls of the subprogram");
	expect_eq(t, 100, (long long)must_info(t, prog).run_cnt, "run_cnt of the program");
}

static void replaced(struct btest *t)
{
	int map = (int)need(t, bstats_array(8), "a map"), target, ext, link, fd;
	const struct bpf_insn code[] = {
		I_MOV(R1, 1), I_CALL_SUB(1), I_EXIT(),
		I_MOV(R0, 0), I_EXIT(),
	};
	const struct bstats_func funcs[] = {
		{ .name = "stats_main", .global = true, .takes_ctx = true },
		{ .name = "stats_sub", .insn_off = 3, .global = true },
	};
	const struct bpf_insn new_code[] = {
		I_LD_VALUE(R1, map, 0), I_MOV(R2, 1), I_ATOMIC_ADD64(R1, R2, 0),
		I_MOV(R0, 0), I_EXIT(),
	};
	const struct bstats_func new_func = {.name = "stats_new", .global = true};
	struct bstats_load l = {.type = BPF_PROG_TYPE_EXT};

	target = (int)have(t,
			   bstats_load_btf(&(struct bstats_load){.type = BPF_PROG_TYPE_SCHED_CLS},
					   "__sk_buff", funcs, 2, code, INSN_COUNT(code)),
			   "a program with a global function");
	l.attach_prog_fd = (unsigned int)target;
	l.attach_btf_id = (unsigned int)func_id(t, target, "stats_sub");
	ext = (int)have(t, bstats_load_btf(&l, NULL, &new_func, 1, new_code, INSN_COUNT(new_code)),
			"a replacement for a function");
	link = (int)have(t, bpf_raw_tracepoint_open(NULL, ext), "attaching the replacement");
	fd = must_open(t);
	must_run(t, target, 100);
	close(fd);
	close(link);
	expect_eq(t, 100, (long long)own_count(t, &(struct scene){.map = map}),
		  "runs of the replacement that it counts itself");
	expect_eq(t, 100, (long long)must_info(t, target).run_cnt,
		  "run_cnt of the program with the replaced function");
	expect_eq(t, 0, (long long)must_info(t, ext).run_cnt, "run_cnt of the replacement");
}

/* A callback runs long after the run that asked for it, and is no run of its own. Returns a map of
 * one value, which is a structure that the kernel knows by its @name. */
static int opaque_map(struct btest *t, const char *name)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	struct btf *btf = btf__new_empty();
	int word, id, map;

	if (!btf)
		btest_broken(t, errno, "BTF");
	/* struct NAME { u64 a; u64 b; }; struct value { struct NAME t; }; */
	opts.btf_key_type_id = (__u32)need(t, btf__add_int(btf, "int", 4, BTF_INT_SIGNED), "BTF");
	word = (int)need(t, btf__add_int(btf, "u64", 8, 0), "BTF");
	id = (int)need(t, btf__add_struct(btf, name, 16), "BTF");
	need(t, btf__add_field(btf, "a", word, 0, 0), "BTF");
	need(t, btf__add_field(btf, "b", word, 64, 0), "BTF");
	opts.btf_value_type_id = (__u32)need(t, btf__add_struct(btf, "value", 16), "BTF");
	need(t, btf__add_field(btf, "t", id, 0, 0), "BTF");
	need(t, btf__load_into_kernel(btf), "loading BTF");
	opts.btf_fd = (__u32)btf__fd(btf);
	map = (int)need(t, bpf_map_create(BPF_MAP_TYPE_ARRAY, "stats_test", 4, 16, 1, &opts), name);
	btf__free(btf);
	return map;
}

/* A program and its callback, which counts itself in @map: five runs ask for five callbacks. */
static void five_callbacks(struct btest *t, const struct bpf_insn *code, size_t count,
			   unsigned int callback_at, int map)
{
	const struct bstats_func funcs[] = {
		{.name = "stats_main", .global = true, .takes_ctx = true},
		{.name = "stats_callback", .insn_off = callback_at},
	};
	const struct bstats_load l = {.type = BPF_PROG_TYPE_SCHED_CLS};
	const struct scene s = {.map = map};
	int prog, fd;

	prog = (int)need(t, bstats_load_btf(&l, "__sk_buff", funcs, 2, code, count),
			 "a program with a callback");
	fd = must_open(t);
	for (int i = 0; i < 5; i++) {
		must_run(t, prog, 1);
		for (int ms = 0; ms < 2000 && own_count(t, &s) <= (__u64)i; ms++)
			sleep_ms(1);
	}
	/* What counted a callback would do so at its end. */
	sleep_ms(5);
	close(fd);
	expect_eq(t, 5, (long long)own_count(t, &s), "callbacks");
	expect_eq(t, 5, (long long)must_info(t, prog).run_cnt,
		  "run_cnt of a program that ran 5 times, and whose callback ran 5 times");
}

#define COUNT_IN(map) \
	I_LD_VALUE(R1, map, 0), I_MOV(R2, 1), I_ATOMIC_ADD64(R1, R2, 0), I_MOV(R0, 0), I_EXIT()

static void timer(struct btest *t)
{
	int count = (int)need(t, bstats_array(8), "a map"), timers = opaque_map(t, "bpf_timer");
	const struct bpf_insn code[] = {
		I_ST(BPF_W, R10, -4, 0),
		I_LD_MAP(R1, timers),
		I_MOVR(R2, R10),
		I_ADD(R2, -4),
		I_CALL(BPF_FUNC_map_lookup_elem),
		I_JEQ(R0, 0, 14),
		I_MOVR(R6, R0),
		I_MOVR(R1, R6),
		I_LD_MAP(R2, timers),
		I_MOV(R3, 1 /* CLOCK_MONOTONIC */),
		I_CALL(BPF_FUNC_timer_init),
		I_MOVR(R1, R6),
		I_LD_FUNC(R2, 8),
		I_CALL(BPF_FUNC_timer_set_callback),
		I_MOVR(R1, R6),
		I_MOV(R2, 1000),
		I_MOV(R3, 0),
		I_CALL(BPF_FUNC_timer_start),
		I_MOV(R0, 0),
		I_EXIT(),
		COUNT_IN(count),
	};

	five_callbacks(t, code, INSN_COUNT(code), 23, count);
}

static void workqueue(struct btest *t)
{
	int count = (int)need(t, bstats_array(8), "a map"), queues = opaque_map(t, "bpf_wq");
	int init = (int)need(t, bstats_btf_id("bpf_wq_init", BTF_KIND_FUNC), "bpf_wq_init");
	int start = (int)need(t, bstats_btf_id("bpf_wq_start", BTF_KIND_FUNC), "bpf_wq_start");
	int set = bstats_btf_id("bpf_wq_set_callback", BTF_KIND_FUNC);

	/* With the program as an argument that the caller names, until 6.19. */
	if (set < 0)
		set = (int)need(t, bstats_btf_id("bpf_wq_set_callback_impl", BTF_KIND_FUNC),
				"bpf_wq_set_callback_impl");
	const struct bpf_insn code[] = {
		I_ST(BPF_W, R10, -4, 0),
		I_LD_MAP(R1, queues),
		I_MOVR(R2, R10),
		I_ADD(R2, -4),
		I_CALL(BPF_FUNC_map_lookup_elem),
		I_JEQ(R0, 0, 15),
		I_MOVR(R6, R0),
		I_MOVR(R1, R6),
		I_LD_MAP(R2, queues),
		I_MOV(R3, 0),
		I_CALL_KERNEL(init),
		I_MOVR(R1, R6),
		I_LD_FUNC(R2, 9),
		I_MOV(R3, 0),
		I_MOV(R4, 0),
		I_CALL_KERNEL(set),
		I_MOVR(R1, R6),
		I_MOV(R2, 0),
		I_CALL_KERNEL(start),
		I_MOV(R0, 0),
		I_EXIT(),
		COUNT_IN(count),
	};

	five_callbacks(t, code, INSN_COUNT(code), 24, count);
}

/* ---- recursion ---- */

/* An entry program on the deletion from a hash map that itself deletes from one: the second is
 * skipped by the recursion guard, once for each first. */
static void recursion(struct btest *t)
{
	int map = (int)need(t, bstats_array(8), "a map"), hash, prog, link, fd;
	const int n = 25;

	hash = (int)need(t, bpf_map_create(BPF_MAP_TYPE_HASH, "stats_test", 4, 4, 4, NULL),
			 "a hash map");
	const struct bpf_insn code[] = {
		I_LD_VALUE(R1, map, 0), I_MOV(R2, 1), I_ATOMIC_ADD64(R1, R2, 0),
		I_ST(BPF_W, R10, -4, 7), I_LD_MAP(R1, hash), I_MOVR(R2, R10), I_ADD(R2, -4),
		I_CALL(BPF_FUNC_map_delete_elem), I_MOV(R0, 0), I_EXIT(),
	};
	struct bstats_load l = {
		.type = BPF_PROG_TYPE_TRACING,
		.attach_type = BPF_TRACE_FENTRY,
		.attach_btf_id = (unsigned int)have(
			t, bstats_btf_id("htab_map_delete_elem", BTF_KIND_FUNC),
			"htab_map_delete_elem"),
	};

	prog = (int)have(t, bstats_load(&l, code, INSN_COUNT(code)), "the program");
	for (int on = 0; on < 2; on++) {
		struct bstats before = must_info(t, prog), after;
		__u64 own = own_count(t, &(struct scene){.map = map});
		__u32 key = 7;

		fd = on ? must_open(t) : -1;
		link = (int)have(t, bpf_raw_tracepoint_open(NULL, prog), "attaching");
		for (int i = 0; i < n; i++)
			bpf_map_delete_elem(hash, &key);
		close(link);
		sleep_ms(5);
		after = must_info(t, prog);
		own = own_count(t, &(struct scene){.map = map}) - own;
		if (own < (__u64)n)
			btest_failed(t, "25 runs that the program counts itself", "%llu",
				     (unsigned long long)own);
		expect_eq(t, (long long)own,
			  (long long)(after.recursion_misses - before.recursion_misses),
			  "recursion_misses, switch %s", on ? "on" : "off");
		expect_eq(t, on ? (long long)own : 0, (long long)(after.run_cnt - before.run_cnt),
			  "run_cnt of the runs that were not skipped, switch %s",
			  on ? "on" : "off");
		if (fd >= 0)
			close(fd);
	}
}

/* ---- the table ---- */

#define RULE_COUNTED                                                                           \
	"run_cnt is the number of runs while the switch is on, for every kind of program; it " \
	"never "                                                                               \
	"counts while off, is frozen then, and goes on from there"

#define TEST_RUN(NAME, TYPE, ...)             \
	static const struct kind k_##NAME = { \
		.type = BPF_PROG_TYPE_##TYPE, .runs = 1, .provoke = run_packet, __VA_ARGS__}

TEST_RUN(socket_filter, SOCKET_FILTER);
TEST_RUN(sched_cls, SCHED_CLS);
TEST_RUN(sched_act, SCHED_ACT);
TEST_RUN(xdp, XDP, .ret = 2);
TEST_RUN(cgroup_skb, CGROUP_SKB, .ret = 1);
TEST_RUN(lwt_in, LWT_IN);
TEST_RUN(lwt_out, LWT_OUT);
TEST_RUN(lwt_xmit, LWT_XMIT);
TEST_RUN(flow_dissector, FLOW_DISSECTOR);

static const struct kind k_xdp_live = {
	.type = BPF_PROG_TYPE_XDP,
	.ret = 1,
	.runs = 1,
	.provoke = run_live,
};
static const struct kind k_netfilter = {
	.type = BPF_PROG_TYPE_NETFILTER_,
	.attach_type = BPF_NETFILTER_,
	.ret = 1,
	.runs = 1,
	.provoke = run_packet,
};
static const struct kind k_sk_lookup = {
	.type = BPF_PROG_TYPE_SK_LOOKUP,
	.attach_type = BPF_SK_LOOKUP,
	.ret = 1,
	.runs = 1,
	.provoke = run_sk_lookup,
};
static const struct kind k_raw_tp_run = {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.runs = 1,
	.provoke = run_ctx,
};
static const struct kind k_syscall = {
	.type = BPF_PROG_TYPE_SYSCALL,
	.flags = BPF_F_SLEEPABLE,
	.runs = 1,
	.provoke = run_ctx,
};
static const struct kind k_struct_ops = {
	.type = BPF_PROG_TYPE_STRUCT_OPS,
	.func = "bpf_dummy_ops",
	.member = "test_1",
	.runs = 1,
	.provoke = run_struct_ops,
};
static const struct kind k_raw_tp = {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT, .attach = attach_raw_tp, .provoke = fork_n,
};
static const struct kind k_tp_btf = {
	.type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_RAW_TP, .attach = attach_trace,
	.func = "btf_trace_sched_process_fork", .provoke = fork_n,
};
static const struct kind k_tracepoint = {
	.type = BPF_PROG_TYPE_TRACEPOINT, .attach = attach_tp, .provoke = fork_n,
};
static const struct kind k_kprobe = {
	.type = BPF_PROG_TYPE_KPROBE, .func = SYS_PREFIX "getpgid", .attach = attach_kprobe,
	.provoke = getpgid_n,
};
static const struct kind k_kprobe_multi = {
	.type = BPF_PROG_TYPE_KPROBE, .attach_type = BPF_TRACE_KPROBE_MULTI,
	.func = SYS_PREFIX "getpgid", .attach = attach_kprobe_multi, .provoke = getpgid_n,
};
static const struct kind k_uprobe = {
	.type = BPF_PROG_TYPE_KPROBE, .attach = attach_uprobe, .provoke = call_n,
};
static const struct kind k_uprobe_s = {
	.type = BPF_PROG_TYPE_KPROBE, .flags = BPF_F_SLEEPABLE, .attach = attach_uprobe,
	.provoke = call_n,
};
static const struct kind k_perf_event = {
	.type = BPF_PROG_TYPE_PERF_EVENT, .attach = attach_faults, .provoke = fault_n,
};
static const struct kind k_fentry = {
	.type = BPF_PROG_TYPE_TRACING,
	.attach_type = BPF_TRACE_FENTRY,
	.func = "bpf_fentry_test1",
	.attach = attach_trace,
	.runs = 1,
	.stays = true,
	.provoke = run_bare,
};
static const struct kind k_fexit = {
	.type = BPF_PROG_TYPE_TRACING,
	.attach_type = BPF_TRACE_FEXIT,
	.func = "bpf_fentry_test1",
	.attach = attach_trace,
	.runs = 1,
	.stays = true,
	.provoke = run_bare,
};
static const struct kind k_fmod_ret = {
	.type = BPF_PROG_TYPE_TRACING,
	.attach_type = BPF_MODIFY_RETURN,
	.func = "security_task_getsid", /* bpf_modify_return_test: 6.3, or error injection */
	.attach = attach_trace,
	.stays = true,
	.provoke = getsid_n,
};
static const struct kind k_fentry_s = {
	.type = BPF_PROG_TYPE_TRACING,
	.attach_type = BPF_TRACE_FENTRY,
	.flags = BPF_F_SLEEPABLE,
	.func = "bpf_fentry_test1",
	.attach = attach_trace,
	.runs = 1,
	.stays = true,
	.provoke = run_bare,
};
static const struct kind k_fexit_s = {
	.type = BPF_PROG_TYPE_TRACING,
	.attach_type = BPF_TRACE_FEXIT,
	.flags = BPF_F_SLEEPABLE,
	.func = "bpf_fentry_test1",
	.attach = attach_trace,
	.runs = 1,
	.stays = true,
	.provoke = run_bare,
};
/* It runs at entry and at exit. */
static const struct kind k_fsession = {
	.type = BPF_PROG_TYPE_TRACING,
	.enumerator = "BPF_TRACE_FSESSION",
	.func = "bpf_fentry_test1",
	.attach = attach_trace,
	.runs = 2,
	.stays = true,
	.provoke = run_bare,
};
static const struct kind k_fentry_bpf = {
	.type = BPF_PROG_TYPE_TRACING,
	.attach_type = BPF_TRACE_FENTRY,
	.setup = setup_target,
	.attach = attach_trace,
	.runs = 1,
	.stays = true,
	.provoke = run_target,
};
static const struct kind k_fexit_bpf = {
	.type = BPF_PROG_TYPE_TRACING,
	.attach_type = BPF_TRACE_FEXIT,
	.setup = setup_target,
	.attach = attach_trace,
	.runs = 1,
	.stays = true,
	.provoke = run_target,
};
static const struct kind k_lsm = {
	.type = BPF_PROG_TYPE_LSM, .attach_type = BPF_LSM_MAC, .func = "bpf_lsm_task_getsid",
	.attach = attach_trace, .stays = true, .provoke = getsid_n,
};
static const struct kind k_lsm_s = {
	.type = BPF_PROG_TYPE_LSM, .attach_type = BPF_LSM_MAC, .flags = BPF_F_SLEEPABLE,
	.func = "bpf_lsm_file_open", .attach = attach_trace, .provoke = open_n,
};
static const struct kind k_iter = {
	.type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_ITER, .func = "bpf_iter_task",
	.attach = attach_iter, .provoke = read_iter,
};
static const struct kind k_iter_s = {
	.type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_ITER, .flags = BPF_F_SLEEPABLE,
	.func = "bpf_iter_task", .attach = attach_iter, .provoke = read_iter,
};
static const struct kind k_socket = {
	.type = BPF_PROG_TYPE_SOCKET_FILTER, .ret = 1, .setup = setup_socket,
	.attach = attach_socket, .provoke = send_n,
};
static const struct kind k_xdp_veth = {
	.type = BPF_PROG_TYPE_XDP, .attach_type = BPF_XDP, .ret = 1, .setup = setup_veth,
	.attach = attach_xdp, .provoke = packets_n,
};
static const struct kind k_xdp_generic = {
	.type = BPF_PROG_TYPE_XDP,
	.attach_type = BPF_XDP,
	.ret = 1,
	.setup = setup_veth,
	.attach = attach_xdp,
	.link_flags = XDP_FLAGS_SKB_MODE,
	.provoke = packets_n,
};
static const struct kind k_tc_veth = {
	.type = BPF_PROG_TYPE_SCHED_CLS, .setup = setup_veth, .attach = attach_tc,
	.provoke = packets_n,
};
static const struct kind k_cgroup_egress = {
	.type = BPF_PROG_TYPE_CGROUP_SKB, .attach_type = BPF_CGROUP_INET_EGRESS, .ret = 1,
	.setup = setup_cgroup, .attach = attach_cgroup, .provoke = udp_n,
};
static const struct kind k_cgroup_sock = {
	.type = BPF_PROG_TYPE_CGROUP_SOCK, .attach_type = BPF_CGROUP_INET_SOCK_CREATE, .ret = 1,
	.setup = setup_cgroup, .attach = attach_cgroup, .provoke = udp_connect_n,
};
static const struct kind k_cgroup_connect = {
	.type = BPF_PROG_TYPE_CGROUP_SOCK_ADDR, .attach_type = BPF_CGROUP_INET4_CONNECT, .ret = 1,
	.setup = setup_cgroup, .attach = attach_cgroup, .provoke = udp_connect_n,
};
static const struct kind k_sock_ops = {
	.type = BPF_PROG_TYPE_SOCK_OPS, .attach_type = BPF_CGROUP_SOCK_OPS, .ret = 1,
	.setup = setup_cgroup, .attach = attach_cgroup, .provoke = tcp_n,
};
static const struct kind k_cgroup_sockopt = {
	.type = BPF_PROG_TYPE_CGROUP_SOCKOPT, .attach_type = BPF_CGROUP_GETSOCKOPT, .ret = 1,
	.setup = setup_cgroup, .attach = attach_cgroup, .provoke = sockopt_n,
};
static const struct kind k_cgroup_sysctl = {
	.type = BPF_PROG_TYPE_CGROUP_SYSCTL, .attach_type = BPF_CGROUP_SYSCTL, .ret = 1,
	.setup = setup_cgroup, .attach = attach_cgroup, .provoke = sysctl_n,
};

#define KIND(N, K, TAGS, ...)                                                                      \
	{                                                                                          \
		.name = N, .rule = RULE_COUNTED, .run = phases, .data = &k_##K, .tags = TAGS,      \
		__VA_ARGS__                                                                        \
	}

static const char not_alone[] =
	"what is reached from within a run is part of that run, and not counted by itself";
static const char is_exact[] = "run_cnt is exactly the number of runs";

static const struct btest_case cases[] = {
	{.name = "exact", .rule = is_exact, .run = exact},
	{.name = "four-cpus",
	 .rule = is_exact,
	 .run = four_cpus,
	 .data = &k_socket_filter,
	 .tags = "smp"},
	{.name = "four-cpus-trampoline",
	 .rule = is_exact,
	 .run = four_cpus,
	 .data = &k_fentry,
	 .needs = BH_FENTRY_KERNEL,
	 .tags = "smp,trampoline"},
	KIND("socket-filter", socket_filter, "test_run"),
	KIND("sched-cls", sched_cls, "test_run"),
	KIND("sched-act", sched_act, "test_run"),
	KIND("xdp", xdp, "test_run"),
	KIND("xdp-live-frames", xdp_live, "test_run", .needs = BH_XDP_LIVE_FRAMES),
	KIND("cgroup-skb", cgroup_skb, "test_run"),
	KIND("lwt-in", lwt_in, "test_run"),
	KIND("lwt-out", lwt_out, "test_run"),
	KIND("lwt-xmit", lwt_xmit, "test_run"),
	KIND("flow-dissector", flow_dissector, "test_run"),
	KIND("netfilter", netfilter, "test_run", .needs = BH_NETFILTER),
	KIND("sk-lookup", sk_lookup, "test_run"),
	KIND("raw-tp-run", raw_tp_run, "test_run"),
	KIND("syscall", syscall, "test_run,sleepable", .needs = BH_SYSCALL_PROG),
	KIND("struct-ops", struct_ops, "test_run,trampoline", .needs = BH_STRUCT_OPS_RUN),
	KIND("raw-tp", raw_tp, "tracing"),
	KIND("tp-btf", tp_btf, "tracing"),
	KIND("tracepoint", tracepoint, "tracing", .needs = BH_TRACEPOINT),
	KIND("kprobe", kprobe, "tracing", .needs = BH_KPROBE),
	KIND("kprobe-multi", kprobe_multi, "tracing", .needs = BH_KPROBE_MULTI),
	KIND("uprobe", uprobe, "tracing", .needs = BH_UPROBE),
	KIND("uprobe-sleepable", uprobe_s, "tracing,sleepable",
	     .needs = BH_UPROBE | BH_SLEEPABLE_UPROBE),
	KIND("perf-event", perf_event, "tracing"),
	KIND("fentry", fentry, "trampoline", .needs = BH_FENTRY_KERNEL),
	KIND("fexit", fexit, "trampoline", .needs = BH_FENTRY_KERNEL),
	KIND("fmod-ret", fmod_ret, "trampoline", .needs = BH_FMOD_RET),
	KIND("fentry-sleepable", fentry_s, "trampoline,sleepable",
	     .needs = BH_SLEEPABLE_FENTRY | BH_SLEEPABLE_COUNTED),
	KIND("fexit-sleepable", fexit_s, "trampoline,sleepable",
	     .needs = BH_SLEEPABLE_FENTRY | BH_SLEEPABLE_COUNTED),
	KIND("fsession", fsession, "trampoline", .needs = BH_FSESSION),
	KIND("fentry-bpf", fentry_bpf, "trampoline", .needs = BH_FENTRY_BPF),
	KIND("fexit-bpf", fexit_bpf, "trampoline", .needs = BH_FENTRY_BPF),
	KIND("lsm", lsm, "trampoline", .needs = BH_LSM),
	KIND("lsm-sleepable", lsm_s, "trampoline,sleepable",
	     .needs = BH_LSM | BH_SLEEPABLE_COUNTED),
	KIND("iter", iter, "tracing", .needs = BH_ITER),
	KIND("iter-sleepable", iter_s, "tracing,sleepable", .needs = BH_ITER),
	KIND("socket", socket, "net"),
	KIND("xdp-veth", xdp_veth, "net", .needs = BH_NET_NS),
	KIND("xdp-generic", xdp_generic, "net", .needs = BH_NET_NS),
	KIND("tc-veth", tc_veth, "net", .needs = BH_NET_NS),
	KIND("cgroup-egress", cgroup_egress, "cgroup", .needs = BH_NET_NS),
	KIND("cgroup-sock", cgroup_sock, "cgroup", .needs = BH_NET_NS),
	KIND("cgroup-connect", cgroup_connect, "cgroup", .needs = BH_NET_NS),
	KIND("sock-ops", sock_ops, "cgroup", .needs = BH_NET_NS),
	KIND("cgroup-sockopt", cgroup_sockopt, "cgroup", .needs = BH_NET_NS),
	KIND("cgroup-sysctl", cgroup_sysctl, "cgroup", .needs = BH_NET_NS),
	{.name = "tail-call", .rule = not_alone, .run = tail_call, .tags = "not-counted"},
	{.name = "subprogram", .rule = not_alone, .run = subprograms, .tags = "not-counted"},
	{.name = "freplace",
	 .rule = not_alone,
	 .run = replaced,
	 .needs = BH_FREPLACE,
	 .tags = "not-counted"},
	{.name = "timer",
	 .rule = "callbacks of timers are not counted",
	 .run = timer,
	 .needs = BH_TIMER,
	 .tags = "not-counted"},
	{.name = "workqueue",
	 .rule = "callbacks of work queues are not counted",
	 .run = workqueue,
	 .needs = BH_WORKQUEUE,
	 .tags = "not-counted,sleepable"},
	{.name = "recursion",
	 .rule = "recursion_misses counts runs that the recursion guard skips, switch on or off",
	 .run = recursion,
	 .needs = BH_FENTRY_KERNEL | BH_RECURSION_MISSES,
	 .tags = "trampoline"},
	{},
};

int main(int argc, char **argv)
{
	return btest_main(argc, argv, cases);
}
