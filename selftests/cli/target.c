// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs for the tests to measure.
 *
 *   target load OBJECT DIR       loads OBJECT, pins each program in DIR, prints "id name" lines
 *   target run PATH REPEAT [N]   runs a pinned program REPEAT times by one BPF_PROG_TEST_RUN, N times
 *   target id PATH               prints the id of a pinned program
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static int get_id(int fd)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? -errno : (int)info.id;
}

static int load(const char *path, const char *dir)
{
	struct bpf_object *obj;
	struct bpf_program *prog;
	char pin[512];
	int rc;

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
	bpf_object__for_each_program(prog, obj) {
		snprintf(pin, sizeof(pin), "%s/%s", dir, bpf_program__name(prog));
		rc = bpf_program__pin(prog, pin);
		if (rc) {
			fprintf(stderr, "target: cannot pin %s: %s\n", pin, strerror(-rc));
			bpf_object__close(obj);
			return 1;
		}
		printf("%d %s\n", get_id(bpf_program__fd(prog)), bpf_program__name(prog));
	}
	bpf_object__close(obj);
	return 0;
}

static int run(const char *path, int repeat, int n)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = repeat);
	int fd, rc = 0;

	fd = bpf_obj_get(path);
	if (fd < 0) {
		fprintf(stderr, "target: cannot open %s: %s\n", path, strerror(errno));
		return 1;
	}
	while (!rc && n--)
		rc = bpf_prog_test_run_opts(fd, &opts);
	if (rc)
		fprintf(stderr, "target: cannot run %s: %s\n", path, strerror(-rc));
	close(fd);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	int fd;

	if (argc == 4 && !strcmp(argv[1], "load"))
		return load(argv[2], argv[3]);
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "run"))
		return run(argv[2], atoi(argv[3]), argc == 5 ? atoi(argv[4]) : 1);
	if (argc == 3 && !strcmp(argv[1], "id")) {
		fd = bpf_obj_get(argv[2]);
		if (fd < 0)
			return 1;
		printf("%d\n", get_id(fd));
		close(fd);
		return 0;
	}
	fputs("usage: target load OBJECT DIR | run PATH REPEAT [N] | id PATH\n", stderr);
	return 2;
}
