// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs for the tests to measure.
 *
 *   target load OBJECT DIR       loads OBJECT, pins each program in DIR, prints "id name" lines
 *   target with OBJECT DIR COMMAND...
 *                                the same, and runs COMMAND while the maps are open as well
 *   target plain PATH            pins a program that has no BTF, prints its id
 *   target map PATH              pins a map
 *   target run PATH REPEAT [N [CPU]]
 *                                N times BPF_PROG_TEST_RUN of a pinned program, REPEAT times each
 *   target forks PATH N          runs a pinned program once in each of N processes
 *   target id PATH               prints the id of a pinned program
 *   target tag PATH              and its tag
 *   target traceable PATH        can an exit program be attached to it? If not, prints the errno
 *   target trace PATH COMMAND... runs COMMAND with as many exit programs as the kernel takes
 *   target replace PATH OBJECT COMMAND...
 *                                runs COMMAND with the program replaced (freplace) by OBJECT's
 *   target caps CAP,... COMMAND...
 *                                runs COMMAND with these capabilities and no other
 *   target many N COMMAND...     runs COMMAND while N programs without BTF are loaded
 *   target churn SECONDS         loads a program, runs it once, and unloads it, again and again;
 *                                prints how often
 *   target own UID N FIFO COMMAND...
 *                                loads a program, prints its id, becomes user UID, and runs COMMAND
 *                                while it has it open; once something is written to FIFO, a process
 *                                that kept its privileges runs the program N times, and removes it
 *   target forbid CMD ERRNO COMMAND...
 *                                runs COMMAND on a kernel whose bpf(CMD) fails with ERRNO
 *   target ids                   prints all programs, maps and links that there are
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "forbid.h"

/* `return 0` in BPF */
static const struct bpf_insn return_0[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	{.code = BPF_JMP | BPF_EXIT},
};

/* More than any kernel takes: 38, or 40 up to 5.12 (BPF_MAX_TRAMP_PROGS, BPF_MAX_TRAMP_LINKS). */
#define MAX_TRACERS 64

static int get_id(int fd)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? -errno : (int)info.id;
}

static int run_command(char **argv)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		execvp(argv[0], argv);
		fprintf(stderr, "target: cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int load(const char *path, const char *dir, char **argv)
{
	struct bpf_object *obj;
	struct bpf_program *prog;
	char pin[512];
	int rc = 0;

	obj = bpf_object__open_file(path, NULL);
	if (!obj) {
		fprintf(stderr, "target: cannot open %s: %s\n", path, strerror(errno));
		return 1;
	}
	rc = bpf_object__load(obj);
	if (rc) {
		fprintf(stderr, "target: cannot load %s: %s\n", path, strerror(-rc));
		bpf_object__close(obj);
		return 1;
	}
	if (mkdir(dir, 0700) && errno != EEXIST) {
		fprintf(stderr, "target: cannot make %s: %s\n", dir, strerror(errno));
		bpf_object__close(obj);
		return 1;
	}
	bpf_object__for_each_program(prog, obj)
	{
		snprintf(pin, sizeof(pin), "%s/%s", dir, bpf_program__name(prog));
		rc = bpf_program__pin(prog, pin);
		if (rc) {
			fprintf(stderr, "target: cannot pin %s: %s\n", pin, strerror(-rc));
			bpf_object__close(obj);
			return 1;
		}
		printf("%d %s\n", get_id(bpf_program__fd(prog)), bpf_program__name(prog));
	}
	if (argv)
		rc = run_command(argv);
	bpf_object__close(obj);
	return rc;
}

static int load_plain(const char *name)
{
	return bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, name, "GPL", return_0, 2, NULL);
}

static int plain(const char *pin)
{
	int fd;

	fd = load_plain("plain");
	if (fd < 0 || bpf_obj_pin(fd, pin)) {
		fprintf(stderr, "target: cannot load and pin %s: %s\n", pin, strerror(errno));
		return 1;
	}
	printf("%d\n", get_id(fd));
	return 0;
}

static int map(const char *pin)
{
	int fd;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "a_map", 4, 4, 1, NULL);
	if (fd < 0 || bpf_obj_pin(fd, pin)) {
		fprintf(stderr, "target: cannot pin %s: %s\n", pin, strerror(errno));
		return 1;
	}
	return 0;
}

static int open_pinned(const char *path)
{
	int fd = bpf_obj_get(path);

	if (fd < 0)
		fprintf(stderr, "target: cannot open %s: %s\n", path, strerror(errno));
	return fd;
}

static int run(const char *path, int repeat, int n, int cpu)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = repeat);
	cpu_set_t cpus;
	int fd, rc = 0;

	if (cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(cpu, &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus)) {
			fprintf(stderr, "target: cannot run on CPU %d: %s\n", cpu, strerror(errno));
			return 1;
		}
	}
	fd = open_pinned(path);
	if (fd < 0)
		return 1;
	while (!rc && n--)
		rc = bpf_prog_test_run_opts(fd, &opts);
	if (rc)
		fprintf(stderr, "target: cannot run %s: %s\n", path, strerror(-rc));
	close(fd);
	return rc ? 1 : 0;
}

/* Each process has an id of its own, because it is not waited for before all have run. */
static int forks(const char *path, int n)
{
	int i, status, failed = 0;

	for (i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			fprintf(stderr, "target: cannot fork: %s\n", strerror(errno));
			return 1;
		}
		if (!pid)
			_exit(run(path, 1, 1, -1));
	}
	while (waitpid(-1, &status, 0) > 0)
		failed |= status;
	return failed ? 1 : 0;
}

/* A pinned program's id (@what == 'i') or tag. */
static int print_info(const char *path, char what)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int fd, i;

	fd = open_pinned(path);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		return 1;
	if (what == 'i')
		printf("%u", info.id);
	for (i = 0; what != 'i' && i < 8; i++)
		printf("%02x", info.tag[i]);
	putchar('\n');
	return 0;
}

/* The BTF id of the program's main function; negative errno. */
static int main_function(int fd)
{
	struct bpf_func_info func = {};
	struct bpf_prog_info info = {
		.nr_func_info = 1,
		.func_info_rec_size = sizeof(func),
		.func_info = (unsigned long)&func,
	};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	return info.nr_func_info ? (int)func.type_id : -ENOENT;
}

/* Attaches an exit program that does nothing; the fd of its link, or a negative errno. */
static int attach_tracer(int target, int func)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FEXIT,
		    .attach_prog_fd = target, .attach_btf_id = func);
	int fd, link;

	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "tracer", "GPL", return_0, 2, &opts);
	if (fd < 0)
		return -errno;
	link = bpf_raw_tracepoint_open(NULL, fd);
	if (link < 0)
		link = -errno;
	close(fd);
	return link;
}

/* Holds up to @max exit programs at the program while @argv runs, if there is one. */
static int trace(const char *path, int max, char **argv)
{
	int fd, func, link = 0, n;

	fd = open_pinned(path);
	if (fd < 0)
		return 1;
	func = main_function(fd);
	if (func < 0) {
		fprintf(stderr, "target: %s has no function with BTF\n", path);
		return 1;
	}
	for (n = 0; n < max; n++) {
		link = attach_tracer(fd, func);
		if (link < 0)
			break;
	}
	if (link < 0 && (!argv || link != -E2BIG)) {
		printf("%s\n", strerror(-link));
		return 1;
	}
	return argv ? run_command(argv) : 0;
}

static int replace(const char *path, const char *object, char **argv)
{
	struct bpf_object *obj;
	struct bpf_program *prog;
	struct bpf_link *link;
	int fd, rc;

	fd = open_pinned(path);
	if (fd < 0)
		return 1;
	obj = bpf_object__open_file(object, NULL);
	prog = obj ? bpf_object__next_program(obj, NULL) : NULL;
	if (!prog) {
		fprintf(stderr, "target: cannot open %s\n", object);
		return 1;
	}
	rc = bpf_program__set_attach_target(prog, fd, strrchr(path, '/') + 1)
		     ?: bpf_object__load(obj);
	link = rc ? NULL : bpf_program__attach(prog);
	if (!link) {
		fprintf(stderr, "target: cannot replace %s: %s\n", path,
			strerror(rc ? -rc : errno));
		return 1;
	}
	rc = run_command(argv);
	bpf_link__destroy(link);
	bpf_object__close(obj);
	return rc;
}

static int many(int n, char **argv)
{
	struct rlimit files = {.rlim_cur = n + 64, .rlim_max = n + 64}, old;
	char name[16];
	int i;

	/* The command has the limit that there was. */
	if (getrlimit(RLIMIT_NOFILE, &old))
		return 1;
	if (old.rlim_cur < files.rlim_cur) {
		if (old.rlim_max > files.rlim_max)
			files.rlim_max = old.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &files)) {
			fprintf(stderr, "target: cannot open %d files: %s\n", n, strerror(errno));
			return 1;
		}
	}
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "many_%d", i);
		if (load_plain(name) < 0) {
			fprintf(stderr, "target: cannot load %s: %s\n", name, strerror(errno));
			return 1;
		}
	}
	if (setrlimit(RLIMIT_NOFILE, &old))
		return 1;
	return run_command(argv);
}

static int churn(double seconds)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = 1);
	struct timespec t;
	double end = 0;
	unsigned n = 0;
	int fd;

	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		if (!end)
			end = t.tv_sec + t.tv_nsec / 1e9 + seconds;
		if (t.tv_sec + t.tv_nsec / 1e9 >= end)
			break;
		fd = load_plain("churn");
		if (fd < 0 || bpf_prog_test_run_opts(fd, &opts)) {
			fprintf(stderr, "target: cannot load and run: %s\n", strerror(errno));
			return 1;
		}
		close(fd);
		n++;
	}
	printf("%u\n", n);
	return 0;
}

static int with_caps(const char *text, char **argv)
{
	cap_flag_value_t value;
	char buf[512];
	cap_t caps;
	int cap;

	/* "cap_a,cap_b+p"; nothing at all is "=". */
	snprintf(buf, sizeof(buf), *text ? "%s=p" : "=", text);
	caps = cap_from_text(buf);
	if (!caps) {
		fprintf(stderr, "target: not capabilities: %s\n", text);
		return 1;
	}
	/* The bounding set is what root has after exec. */
	for (cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++) {
		if (cap_get_flag(caps, cap, CAP_PERMITTED, &value))
			value = CAP_CLEAR;
		if (value != CAP_SET && prctl(PR_CAPBSET_DROP, cap)) {
			fprintf(stderr, "target: cannot drop: %s\n", strerror(errno));
			return 1;
		}
	}
	execvp(argv[0], argv);
	fprintf(stderr, "target: cannot run %s: %s\n", argv[0], strerror(errno));
	return 127;
}

/* Waits for the FIFO, runs the program, and ends; at the latest with the one behind @alive, which
 * may not send us a signal any more. */
static void run_later(int fd, int n, const char *fifo, int alive)
{
	char packet[64] = {}, byte;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = n);
	struct pollfd p[] = {{.fd = open(fifo, O_RDWR), .events = POLLIN}, {.fd = alive}};

	if (p[0].fd < 0 || poll(p, 2, -1) < 0 || !p[0].revents || read(p[0].fd, &byte, 1) != 1)
		_exit(1);
	/* That it is gone says that the runs are over. */
	_exit(bpf_prog_test_run_opts(fd, &opts) || unlink(fifo) ? 1 : 0);
}

static int own(unsigned uid, int n, const char *fifo, char **argv)
{
	int fd, alive[2];
	pid_t pid;

	fd = load_plain("owned");
	if (fd < 0 || pipe2(alive, O_CLOEXEC)) {
		fprintf(stderr, "target: cannot load: %s\n", strerror(errno));
		return 1;
	}
	fprintf(stderr, "%d\n", get_id(fd));
	pid = fork();
	if (!pid) {
		close(alive[1]);
		run_later(fd, n, fifo, alive[0]);
	}
	if (pid < 0 || setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)) {
		fprintf(stderr, "target: cannot become user %u: %s\n", uid, strerror(errno));
		return 1;
	}
	/* As a process that was started by that user is: it may look at itself in /proc. */
	if (prctl(PR_SET_DUMPABLE, 1))
		return 1;
	return run_command(argv);
}

static int with_forbidden(int cmd, int err, char **argv)
{
	int rc = forbid_bpf(cmd, err);

	if (rc) {
		fprintf(stderr, "target: cannot forbid bpf(%d): %s\n", cmd, strerror(-rc));
		return 1;
	}
	execvp(argv[0], argv);
	fprintf(stderr, "target: cannot run %s: %s\n", argv[0], strerror(errno));
	return 127;
}

static int print_ids(void)
{
	struct bpf_prog_info prog;
	struct bpf_map_info map_info;
	__u32 id, len;
	int fd;

	for (id = 0; !bpf_prog_get_next_id(id, &id);) {
		fd = bpf_prog_get_fd_by_id(id);
		memset(&prog, 0, sizeof(prog));
		len = sizeof(prog);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &prog, &len))
			printf("prog %u %s\n", id, prog.name);
		close(fd);
	}
	for (id = 0; !bpf_map_get_next_id(id, &id);) {
		fd = bpf_map_get_fd_by_id(id);
		memset(&map_info, 0, sizeof(map_info));
		len = sizeof(map_info);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &map_info, &len))
			printf("map %u %s\n", id, map_info.name);
		close(fd);
	}
	for (id = 0; !bpf_link_get_next_id(id, &id);)
		printf("link %u\n", id);
	return 0;
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 1 ? argv[1] : "";

	if (argc == 4 && !strcmp(cmd, "load"))
		return load(argv[2], argv[3], NULL);
	if (argc > 4 && !strcmp(cmd, "with"))
		return load(argv[2], argv[3], argv + 4);
	if (argc == 3 && !strcmp(cmd, "plain"))
		return plain(argv[2]);
	if (argc == 3 && !strcmp(cmd, "map"))
		return map(argv[2]);
	if (argc >= 4 && argc <= 6 && !strcmp(cmd, "run"))
		return run(argv[2], atoi(argv[3]), argc > 4 ? atoi(argv[4]) : 1,
			   argc > 5 ? atoi(argv[5]) : -1);
	if (argc == 4 && !strcmp(cmd, "forks"))
		return forks(argv[2], atoi(argv[3]));
	if (argc == 3 && (!strcmp(cmd, "id") || !strcmp(cmd, "tag")))
		return print_info(argv[2], cmd[0]);
	if (argc == 3 && !strcmp(cmd, "traceable"))
		return trace(argv[2], 1, NULL);
	if (argc > 3 && !strcmp(cmd, "trace"))
		return trace(argv[2], MAX_TRACERS, argv + 3);
	if (argc > 4 && !strcmp(cmd, "replace"))
		return replace(argv[2], argv[3], argv + 4);
	if (argc > 3 && !strcmp(cmd, "caps"))
		return with_caps(argv[2], argv + 3);
	if (argc > 3 && !strcmp(cmd, "many"))
		return many(atoi(argv[2]), argv + 3);
	if (argc == 3 && !strcmp(cmd, "churn"))
		return churn(atof(argv[2]));
	if (argc > 5 && !strcmp(cmd, "own"))
		return own(atoi(argv[2]), atoi(argv[3]), argv[4], argv + 5);
	if (argc > 4 && !strcmp(cmd, "forbid"))
		return with_forbidden(atoi(argv[2]), atoi(argv[3]), argv + 4);
	if (argc == 2 && !strcmp(cmd, "ids"))
		return print_ids();
	fputs("target: wrong usage; see the head of target.c\n", stderr);
	return 2;
}
