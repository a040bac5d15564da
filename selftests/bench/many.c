// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * many METRICS N...
 *
 * What it costs to begin and end profiling N programs at once, for each N: time, and memory.
 * METRICS are separated by commas. Prints a JSON array with an object for each N. The programs
 * that are profiled are there before, and are not counted.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <json-c/json.h>

#include "ctx.h"
#include "empty.skel.h"
#include "session.h"

struct memory {
	double maps; /* bytes */
	double progs;
	double process; /* resident */
	unsigned fds;
};

struct target {
	struct empty_bpf *skel;
	struct prog prog;
	struct profiler *profiler;
};

/* What the modules of the command ask for; they have nothing to say here. */
void note(const struct ctx *ctx, const char *fmt, ...)
{
	(void)ctx;
	(void)fmt;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static long long number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* Of an fd in /proc/self/fdinfo; the same map behind two fds is counted once. */
static void add_fd(struct memory *m, const char *name, char *seen, size_t n_seen)
{
	long long id, bytes;
	char path[64], text[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%.20s", name);
	f = fopen(path, "re");
	if (!f)
		return;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	m->fds++;
	bytes = number_after(text, "\nmemlock:");
	if (bytes < 0)
		return;
	if (strstr(text, "\nlink_id:"))
		return;
	id = number_after(text, "\nmap_id:");
	if (id < 0) {
		m->progs += bytes;
	} else if ((size_t)id < n_seen && !seen[id]) {
		seen[id] = 1;
		m->maps += bytes;
	}
}

static void read_memory(struct memory *m)
{
	static const size_t n_seen = 1 << 20;
	char *seen = calloc(n_seen, 1), line[256];
	struct dirent *entry;
	DIR *dir;
	FILE *f;

	memset(m, 0, sizeof(*m));
	dir = opendir("/proc/self/fd");
	while (seen && dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			add_fd(m, entry->d_name, seen, n_seen);
	if (dir)
		closedir(dir);
	free(seen);
	f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmRSS:", 6))
			m->process = strtod(line + 6, NULL) * 1024;
	if (f)
		fclose(f);
}

static int add_metrics(struct session *s, const char *metrics, struct errmsg *err)
{
	char *words = strdup(metrics), *word, *rest;
	int rc = words ? 0 : -ENOMEM;

	for (word = words ? strtok_r(words, ",", &rest) : NULL; !rc && word;
	     word = strtok_r(NULL, ",", &rest))
		rc = session__add_metric(s, word, err);
	free(words);
	return rc;
}

static void put(struct json_object *obj, const char *key, double v, int decimals)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*f", decimals, v);
	json_object_object_add(obj, key, json_object_new_double_s(v, text));
}

static int load_target(struct target *t, struct errmsg *err)
{
	int fd;

	t->prog.fd = -1;
	t->skel = empty_bpf__open_and_load();
	if (!t->skel)
		return errmsg__fail(err, -errno, "cannot load an empty program: %s",
				    strerror(errno));
	fd = dup(bpf_program__fd(t->skel->progs.empty));
	if (fd < 0)
		return errmsg__fail(err, -errno, "cannot duplicate an fd: %s", strerror(errno));
	return prog__open_fd(&t->prog, fd, err);
}

static int measure(struct json_object *obj, const char *metrics, int n, struct errmsg *err)
{
	struct target *targets = calloc(n, sizeof(*targets));
	struct ctx ctx = {.out = stdout, .msg = stderr, .sysfs_root = "/sys", .err = err};
	struct memory before, after, shared;
	struct session session;
	double t[6] = {};
	int i, rc = targets ? 0 : -ENOMEM;

	session__init(&session, &ctx);
	for (i = 0; !rc && i < n; i++)
		rc = load_target(&targets[i], err);
	if (rc)
		goto cleanup;
	read_memory(&before);
	t[0] = now_ms();
	rc = add_metrics(&session, metrics, err) ?: session__open(&session, err);
	t[1] = now_ms();
	if (rc)
		goto cleanup;
	read_memory(&shared);
	t[2] = now_ms();
	for (i = 0; !rc && i < n; i++)
		rc = profiler__open(&targets[i].profiler, &session.opts, &targets[i].prog, 0, err);
	t[3] = now_ms();
	for (i = 0; !rc && i < n; i++)
		rc = profiler__attach(targets[i].profiler, err);
	t[4] = now_ms();
	if (rc)
		goto cleanup;
	read_memory(&after);
	t[5] = now_ms();
	for (i = 0; i < n; i++) {
		profiler__close(targets[i].profiler);
		targets[i].profiler = NULL;
	}
	t[5] = now_ms() - t[5];

	json_object_object_add(obj, "programs", json_object_new_int(n));
	json_object_object_add(obj, "metrics", json_object_new_string(metrics));
	json_object_object_add(obj, "cpus", json_object_new_int(session.opts.n_cpus));
	put(obj, "open_counters_ms", t[1] - t[0], 3);
	put(obj, "load_ms", t[3] - t[2], 3);
	put(obj, "attach_ms", t[4] - t[3], 3);
	put(obj, "detach_ms", t[5], 3);
	put(obj, "shared_map_bytes", shared.maps - before.maps, 0);
	put(obj, "map_bytes", after.maps - shared.maps, 0);
	put(obj, "prog_bytes", after.progs - shared.progs, 0);
	put(obj, "process_bytes", after.process - shared.process, 0);
	json_object_object_add(obj, "fds", json_object_new_int(after.fds - shared.fds));
cleanup:
	for (i = 0; targets && i < n; i++) {
		profiler__close(targets[i].profiler);
		prog__close(&targets[i].prog);
		empty_bpf__destroy(targets[i].skel);
	}
	session__close(&session);
	free(targets);
	return rc;
}

static int measure_alone(const char *metrics, int n)
{
	struct json_object *obj = json_object_new_object();
	struct errmsg err = {};
	int rc;

	rc = measure(obj, metrics, n > 0 ? n : 1, &err);
	if (rc)
		fprintf(stderr, "many: %s\n", err.text[0] ? err.text : strerror(-rc));
	else
		fputs(json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN), stdout);
	fflush(NULL);
	json_object_put(obj);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	int i, status, rc = 0;
	pid_t pid;

	if (argc < 3) {
		fputs("usage: many METRIC,... N...\n", stderr);
		return 2;
	}
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	/* The C library keeps the memory of what has ended for what comes next:
	 * each number is measured in a process of its own. */
	putchar('[');
	for (i = 2; !rc && i < argc; i++) {
		fflush(NULL);
		pid = fork();
		if (!pid)
			_exit(measure_alone(argv[1], atoi(argv[i])));
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
			rc = 1;
		if (!rc && i + 1 < argc)
			putchar(',');
	}
	puts("]");
	return rc;
}
