// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sampling N ROUNDS BPFCOST BPFTOOL
 *
 * How long it takes to read the statistics of N programs, side by side: one sample of ours, the
 * first, which opens them and reads their names, the next one, and one for which they are opened
 * again; the whole command, which takes two; and bpftool prog show. Half of the programs have BTF
 * of their own, and names that only BTF has in full. Prints a JSON object with the best and the
 * median of ROUNDS, in ms.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <json-c/json.h>

#include "bstats.h"
#include "ctx.h"
#include "insn.h"
#include "runstats.h"

#define MAX_ROUNDS 100

enum what { FIRST, NEXT, BY_ID, COMMAND, BPFTOOL, WHATS };

/* What the modules of the command ask for; they have nothing to say here. */
void note(const struct ctx *ctx, const char *fmt, ...)
{
	(void)ctx;
	(void)fmt;
}

void debug(const struct ctx *ctx, const char *fmt, ...)
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

static int load_one(int i)
{
	const struct bpf_insn code[] = {I_MOV(R0, 0), I_EXIT()};
	struct bstats_load load = {.type = BPF_PROG_TYPE_SOCKET_FILTER};
	struct bstats_func func = {.global = true, .takes_ctx = true};
	char name[64];

	if (i % 2) {
		snprintf(name, sizeof(name), "short_%d", i);
		load.name = name;
		return bstats_load(&load, code, 2);
	}
	snprintf(name, sizeof(name), "a_name_that_only_btf_has_in_full_%d", i);
	func.name = name;
	return bstats_load_btf(&load, "__sk_buff", &func, 1, code, 2);
}

static int run(char *const argv[], double *ms)
{
	double begin = now_ms();
	int status, fd;
	pid_t pid;

	pid = fork();
	if (!pid) {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status) {
		fprintf(stderr, "sampling: %s does not run\n", argv[0]);
		return -EIO;
	}
	*ms = now_ms() - begin;
	return 0;
}

/* As where the limit of open files is too low. */
static void let_all_go(struct runstats *source)
{
	size_t i;

	for (i = 0; i < source->n; i++) {
		close(source->v[i].fd);
		source->v[i].fd = -1;
		source->v[i].how = RUNSTATS_ID;
	}
	source->n_held = source->max_held = 0;
}

static int read_once(double *first, double *next, double *by_id, size_t *n)
{
	struct runstats source = {.proc_root = "/proc", .sysfs_root = "/sys"};
	struct stats_sample sample = {};
	struct errmsg err = {};
	double begin = now_ms();
	int rc;

	rc = runstats__open(&source, NULL, 0, &err) ?: runstats__read(&source, &sample, true, &err);
	*first = now_ms() - begin;
	begin = now_ms();
	rc = rc ?: runstats__read(&source, &sample, false, &err);
	*next = now_ms() - begin;
	let_all_go(&source);
	begin = now_ms();
	rc = rc ?: runstats__read(&source, &sample, false, &err);
	*by_id = now_ms() - begin;
	*n = sample.n;
	if (rc)
		fprintf(stderr, "sampling: %s\n", err.text);
	stats_sample__free(&sample);
	runstats__close(&source);
	return rc;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void put(struct json_object *obj, const char *key, double v)
{
	char text[64];

	snprintf(text, sizeof(text), "%.3f", v);
	json_object_object_add(obj, key, json_object_new_double_s(v, text));
}

int main(int argc, char **argv)
{
	static const char *const names[WHATS] = {"first_sample", "next_sample", "by_id_sample",
						 "prog_stats", "bpftool_prog_show"};
	int programs, rounds, i, rc = 0;
	struct json_object *obj = json_object_new_object();
	double ms[WHATS][MAX_ROUNDS];
	struct rlimit limit;
	size_t n = 0;

	programs = argc == 5 ? atoi(argv[1]) : 0;
	rounds = argc == 5 ? atoi(argv[2]) : 0;
	if (programs < 1 || rounds < 1 || rounds > MAX_ROUNDS) {
		fputs("usage: sampling PROGRAMS ROUNDS BPFCOST BPFTOOL\n", stderr);
		return 2;
	}
	/* For ours and theirs. */
	limit.rlim_cur = limit.rlim_max = 2 * programs + 256;
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		fprintf(stderr, "sampling: cannot open %d files: %s\n", programs, strerror(errno));
		return 1;
	}
	for (i = 0; i < programs; i++) {
		if (load_one(i) < 0) {
			fprintf(stderr, "sampling: cannot load a program\n");
			return 1;
		}
	}
	for (i = 0; i < rounds && !rc; i++)
		rc = run((char *[]){argv[4], "prog", "show", NULL}, &ms[BPFTOOL][i]) ?:
		     read_once(&ms[FIRST][i], &ms[NEXT][i], &ms[BY_ID][i], &n) ?:
		     run((char *[]){argv[3], "prog", "stats", "duration", "0.000001", NULL},
			 &ms[COMMAND][i]);
	if (rc)
		return 1;
	json_object_object_add(obj, "programs", json_object_new_uint64(n));
	json_object_object_add(obj, "rounds", json_object_new_int(rounds));
	for (i = 0; i < WHATS; i++) {
		struct json_object *item = json_object_new_object();

		qsort(ms[i], rounds, sizeof(ms[i][0]), compare);
		put(item, "best_ms", ms[i][0]);
		put(item, "median_ms", ms[i][rounds / 2]);
		json_object_object_add(obj, names[i], item);
	}
	puts(json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN));
	json_object_put(obj);
	return 0;
}
