// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * added NAME STEP COMMAND...
 *
 * What a profiler costs the program that it profiles, as seen from outside and so in the same way
 * for every profiler. Pins an empty program at BENCH_PIN, measures a run of it; starts COMMAND,
 * which profiles it; waits until that has attached two programs to it; measures again. Prints a
 * JSON object like those of `bpfcost -j calibrate`, with NAME as the method. The floor is what
 * COMMAND itself reports, in bpftool's JSON, for a short burst of runs. STEP: a sampled run is one
 * in so many, else 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <json-c/json.h>

#include "cost.h"
#include "empty.skel.h"

#define BENCH_PIN "/sys/fs/bpf/bench_empty"

#define FLOOR_RUNS  20 /* few: a burst should end before the next timer interrupt */
#define FLOOR_TRIES 3
#define WAIT_TRIES  600
#define WAIT_MS	    50

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* How many tracing programs are attached to the program with this id. */
static int attached(__u32 prog_id)
{
	struct bpf_link_info info;
	__u32 id = 0, len;
	int fd, n = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		fd = bpf_link_get_fd_by_id(id);
		if (fd < 0)
			continue;
		memset(&info, 0, sizeof(info));
		len = sizeof(info);
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) &&
		    info.type == BPF_LINK_TYPE_TRACING && info.tracing.target_obj_id == prog_id)
			n++;
		close(fd);
	}
	return n;
}

/* Starts the profiler with its stdout in @out. */
static pid_t start(char **argv, int out, __u32 prog_id)
{
	int i, status, null;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		null = open("/dev/null", O_RDONLY);
		dup2(null, STDIN_FILENO);
		dup2(out, STDOUT_FILENO);
		execvp(argv[0], argv);
		fprintf(stderr, "added: cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	for (i = 0; i < WAIT_TRIES; i++) {
		if (attached(prog_id) >= 2)
			return pid;
		if (waitpid(pid, &status, WNOHANG) == pid) {
			fprintf(stderr, "added: %s has ended before it had attached anything\n",
				argv[0]);
			return -ECHILD;
		}
		pause_ms(WAIT_MS);
	}
	fprintf(stderr, "added: %s has attached nothing in %d s\n", argv[0],
		WAIT_TRIES * WAIT_MS / 1000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -ETIMEDOUT;
}

static void stop(pid_t pid, __u32 prog_id)
{
	int status, i;

	kill(pid, SIGINT);
	waitpid(pid, &status, 0);
	/* Links go away some time after their last fd. */
	for (i = 0; i < WAIT_TRIES && attached(prog_id); i++)
		pause_ms(WAIT_MS);
}

static int run(int fd, int n)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = n);

	return bpf_prog_test_run_opts(fd, &opts);
}

/* The readings a run in the profiler's JSON: [{"metric", "floor"}]. NULL: there are none. */
static struct json_object *parse(const char *text)
{
	struct json_object *doc = json_tokener_parse(text), *array, *one, *v, *n, *name, *to;
	size_t i;

	if (!json_object_is_type(doc, json_type_array)) {
		json_object_put(doc);
		return NULL;
	}
	array = json_object_new_array();
	for (i = 0; i < json_object_array_length(doc); i++) {
		one = json_object_array_get_idx(doc, i);
		if (!json_object_object_get_ex(one, "metric", &name) ||
		    !json_object_object_get_ex(one, "value", &v) ||
		    !json_object_object_get_ex(one, "run_cnt", &n) || json_object_get_double(n) < 1)
			continue;
		to = json_object_new_object();
		json_object_object_add(to, "metric", json_object_get(name));
		if (!json_object_object_get_ex(one, "floor", &one))
			one = json_object_new_double(json_object_get_double(v) /
						     json_object_get_double(n));
		else
			json_object_get(one);
		json_object_object_add(to, "floor", one);
		json_object_array_add(array, to);
	}
	json_object_put(doc);
	return array;
}

static double first(struct json_object *floors)
{
	struct json_object *v;

	if (!json_object_array_length(floors) ||
	    !json_object_object_get_ex(json_object_array_get_idx(floors, 0), "floor", &v))
		return 0;
	return json_object_get_double(v);
}

/* The least of a few tries: what an interrupt adds is never negative. */
static struct json_object *measure_floor(char **argv, int fd, __u32 prog_id)
{
	struct json_object *best = NULL, *now;
	char text[65536];
	ssize_t n;
	pid_t pid;
	FILE *out;
	int i;

	for (i = 0; i < FLOOR_TRIES; i++) {
		out = tmpfile();
		if (!out)
			break;
		pid = start(argv, fileno(out), prog_id);
		if (pid < 0 || run(fd, FLOOR_RUNS)) {
			fclose(out);
			break;
		}
		stop(pid, prog_id);
		n = pread(fileno(out), text, sizeof(text) - 1, 0);
		fclose(out);
		text[n > 0 ? n : 0] = '\0';
		now = parse(text);
		if (!now)
			continue;
		if (best && first(now) >= first(best)) {
			json_object_put(now);
			continue;
		}
		json_object_put(best);
		best = now;
	}
	return best;
}

static struct json_object *rounded(double v)
{
	char text[64];

	snprintf(text, sizeof(text), "%.3f", v);
	return json_object_new_double_s(v, text);
}

int main(int argc, char **argv)
{
	struct json_object *obj = NULL, *floors;
	struct cost without, with;
	struct cost_meter meter = {-1, -1};
	struct bpf_prog_info info = {};
	struct empty_bpf *skel = NULL;
	__u32 len = sizeof(info);
	struct errmsg err = {};
	int fd, null, rc = 1;
	unsigned step;
	pid_t pid;

	step = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	if (argc < 4 || !step) {
		fputs("usage: added NAME STEP COMMAND...\n", stderr);
		return 2;
	}
	skel = empty_bpf__open_and_load();
	if (!skel) {
		fprintf(stderr, "added: cannot load the empty program: %s\n", strerror(errno));
		goto cleanup;
	}
	fd = bpf_program__fd(skel->progs.empty);
	unlink(BENCH_PIN);
	if (bpf_obj_pin(fd, BENCH_PIN) || bpf_obj_get_info_by_fd(fd, &info, &len)) {
		fprintf(stderr, "added: cannot pin %s: %s\n", BENCH_PIN, strerror(errno));
		goto cleanup;
	}
	cost_meter__open(&meter);
	if (cost__measure(&without, &meter, fd, step, &err))
		goto cleanup;
	null = open("/dev/null", O_WRONLY);
	pid = start(argv + 3, null, info.id);
	close(null);
	if (pid < 0)
		goto cleanup;
	rc = cost__measure(&with, &meter, fd, step, &err) ? 1 : 0;
	stop(pid, info.id);
	if (rc)
		goto cleanup;
	obj = json_object_new_object();
	json_object_object_add(obj, "method", json_object_new_string(argv[1]));
	json_object_object_add(obj, "added_ns", rounded(with.ns - without.ns));
	if (with.has_instructions)
		json_object_object_add(obj, "added_instructions",
				       rounded(with.instructions - without.instructions));
	if (with.has_cycles)
		json_object_object_add(obj, "added_cycles", rounded(with.cycles - without.cycles));
	floors = measure_floor(argv + 3, fd, info.id);
	if (floors)
		json_object_object_add(obj, "floor", floors);
	puts(json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN));
cleanup:
	if (err.text[0])
		fprintf(stderr, "added: %s\n", err.text);
	unlink(BENCH_PIN);
	json_object_put(obj);
	cost_meter__close(&meter);
	empty_bpf__destroy(skel);
	return rc;
}
