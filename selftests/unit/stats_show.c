// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `bpfcost stats show` for trees that stand for /proc: containers, and what cannot be seen. Running
 * a program is forbidden, so that whether this machine's statistics are on does not matter.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/bpf.h>

#include <json-c/json.h>

#include "ctx.h"
#include "forbid.h"
#include "lab.h"
#include "unit.h"

#define ID   "3f4e0e2c21d7a8b9c0d1e2f30415263748596a7b8c9d0e1f2031425364758697"
#define STAT " S 1 1 1 0 -1 0 100 200 0 0 3 4 0 0 20 0 1 0 500 1000 10 0 1 1"

static char root[4096];

static void make_link(const char *path, const char *target)
{
	char file[4200], keep[4200];

	snprintf(keep, sizeof(keep), "%s.keep", path);
	unit_write(root, keep, "");
	snprintf(file, sizeof(file), "%s/%s", root, path);
	unlink(file);
	if (symlink(target, file)) {
		printf("Bail out! %s: %s\n", file, strerror(errno));
		exit(1);
	}
}

static void make_holder(int pid, const char *comm, const char *cgroup)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "%d/stat", pid);
	snprintf(line, sizeof(line), "%d (%s)" STAT, pid, comm);
	unit_write(root, path, line);
	snprintf(path, sizeof(path), "%d/fd/4", pid);
	make_link(path, "anon_inode:bpf-stats");
	snprintf(path, sizeof(path), "%d/cgroup", pid);
	if (cgroup)
		unit_write(root, path, cgroup);
}

/* The output for the tree. Returns the exit status. */
static int show(bool json, char **text, struct errmsg *err)
{
	struct ctx ctx = {.json = json, .msg = stderr, .proc_root = root, .err = err};
	size_t size;
	int status;

	memset(err, 0, sizeof(*err));
	*text = NULL;
	ctx.out = open_memstream(text, &size);
	if (!ctx.out)
		return -1;
	status = cmd_stats_show(&ctx);
	fclose(ctx.out);
	return status;
}

static struct json_object *get(struct json_object *obj, const char *key)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(obj, key, &value))
		ktap_note("there is no field '%s'", key);
	return value;
}

static bool text_is(struct json_object *obj, const char *key, const char *expected)
{
	struct json_object *value = get(obj, key);

	if (expected ? value && !strcmp(json_object_get_string(value), expected) : !value)
		return true;
	ktap_note("%s: expected %s, got %s", key, expected ? expected : "null",
		  json_object_get_string(value));
	return false;
}

static bool has(const char *text, const char *part)
{
	if (strstr(text, part))
		return true;
	ktap_note("'%s' is not in:\n%s", part, text);
	return false;
}

static bool test_containers(void)
{
	static const struct {
		int pid;
		const char *comm, *cgroup, *runtime, *container, *path;
	} holders[] = {
		{21, "bpftop", "0::/system.slice/docker-" ID ".scope", "docker", ID,
		 "/system.slice/docker-" ID ".scope"},
		{22, "pod\x1b[2J", "0::/kubepods/besteffort/pod1/" ID, "kubernetes", ID,
		 "/kubepods/besteffort/pod1/" ID},
		{23, "lxc", "0::/lxc.payload.web\xff/x", "lxc", "web\xef\xbf\xbd",
		 "/lxc.payload.web\xef\xbf\xbd/x"},
		{24, "id", "0::/x/" ID, NULL, ID, "/x/" ID},
		{25, "host", "0::/system.slice/x.service", NULL, NULL, "/system.slice/x.service"},
		{26, "nothing", NULL, NULL, NULL, NULL},
	};
	struct json_object *doc = NULL, *array, *h;
	struct errmsg err;
	char *text = NULL;
	bool ok = true;
	size_t i;

	for (i = ARRAY_SIZE(holders); i--;)
		make_holder(holders[i].pid, holders[i].comm, holders[i].cgroup);
	EQUAL(0, show(true, &text, &err));
	doc = json_tokener_parse(text);
	CHECK(doc);
	CHECK(text_is(doc, "state", "held") && text_is(doc, "on", "true") &&
	      text_is(doc, "observed", "false") && text_is(doc, "files", NULL) &&
	      text_is(doc, "fds", "6") && text_is(doc, "sysctl", "0") &&
	      text_is(doc, "verdict", "on, held by 6 processes"));
	array = get(doc, "holders");
	EQUAL(ARRAY_SIZE(holders), json_object_array_length(array));
	for (i = 0; i < ARRAY_SIZE(holders); i++) {
		h = json_object_array_get_idx(array, i);
		EQUAL(holders[i].pid, json_object_get_int(get(h, "pid")));
		CHECK(text_is(h, "comm", holders[i].comm));
		CHECK(text_is(h, "runtime", holders[i].runtime));
		CHECK(text_is(h, "container", holders[i].container));
		CHECK(text_is(h, "cgroup", holders[i].path));
		CHECK(json_object_get_double(get(h, "started")) > 0);
	}
	free(text);
	EQUAL(0, show(false, &text, &err));
	CHECK(has(text, "on, held by 6 processes\n"));
	CHECK(has(text, "stats fds: 6\n"));
	CHECK(has(text, " docker 3f4e0e2c21d7        /system.slice/docker-" ID ".scope\n"));
	CHECK(has(text, "      22 pod\\x1b[2J "));
	CHECK(has(text, " kubernetes 3f4e0e2c21d7    /kubepods"));
	CHECK(has(text, " lxc web\\xff                /lxc.payload.web\\xff/x\n"));
	CHECK(has(text, " 3f4e0e2c21d7               /x/" ID "\n"));
	CHECK(has(text, " -                          /system.slice/x.service\n"));
	CHECK(has(text, " -                          -\n"));
	CHECK(!strchr(text, '\x1b'));
cleanup:
	json_object_put(doc);
	free(text);
	return ok;
}

/* Process 1, the namespace, and what the sysctl says. */
static bool test_not_seen(void)
{
	struct json_object *doc = NULL;
	struct errmsg err;
	char *text = NULL;
	bool ok = true;

	/* Neither process 1 nor a namespace is there. */
	EQUAL(EXIT_NOT_MEASURED, show(false, &text, &err));
	CHECK(has(text, "not known: no holder is visible, and it cannot be observed from here\n"));
	CHECK(has(text, "not complete: /proc hides processes (hidepid)\n"));
	CHECK(has(text, "not complete: processes outside of this pid namespace are not visible\n"));
	CHECK(has(text, "visible are 0 of about 345 threads on this machine\n"));
	CHECK(has(err.text, "cannot run a program to see whether the statistics are on"));
	free(text);
	EQUAL(EXIT_NOT_MEASURED, show(true, &text, &err));
	doc = json_tokener_parse(text);
	CHECK(doc && text_is(doc, "state", "not known") && text_is(doc, "on", NULL) &&
	      text_is(doc, "complete", "false") && text_is(doc, "hidden", "true") &&
	      text_is(doc, "nested", "true") && text_is(doc, "threads", "0") &&
	      text_is(doc, "all_threads", "345"));
	CHECK(has(json_object_get_string(get(doc, "error")), "it needs CAP_BPF"));
	/* It is a part of the document, not another one. */
	CHECK(err.status == EXIT_DONE);

	/* The sysctl tells. */
	json_object_put(doc);
	free(text);
	unit_write(root, "sys/kernel/bpf_stats_enabled", "1");
	EQUAL(0, show(true, &text, &err));
	doc = json_tokener_parse(text);
	CHECK(doc && text_is(doc, "state", "sysctl only") && text_is(doc, "sysctl", "1") &&
	      text_is(doc, "on", "true"));
	json_object_put(doc);
	free(text);
	/* The whole machine is to be seen. */
	unit_write(root, "1/stat", "1 (init)" STAT);
	make_link("self/ns/pid", "pid:[4026531836]");
	EQUAL(0, show(false, &text, &err));
	CHECK(has(text, "switch it off with: sysctl kernel.bpf_stats_enabled=0\n"));
	CHECK(!strstr(text, "complete"));
	free(text);
	/* A value that is none. */
	unit_write(root, "sys/kernel/bpf_stats_enabled", "2");
	EQUAL(EXIT_NOT_MEASURED, show(true, &text, &err));
	doc = json_tokener_parse(text);
	CHECK(doc && text_is(doc, "sysctl", NULL) && text_is(doc, "complete", "true"));
cleanup:
	json_object_put(doc);
	free(text);
	return ok;
}

static bool test_no_proc(void)
{
	struct errmsg err;
	char *text = NULL;
	bool ok = true;

	unit_tree_remove(root);
	EQUAL(EXIT_NOT_MEASURED, show(true, &text, &err));
	CHECK(!*text); /* main() prints the error */
	CHECK(has(err.text, "cannot look for holders in "));
	CHECK(has(err.text, "No such file or directory (ENOENT)"));
cleanup:
	free(text);
	return ok;
}

int main(void)
{
	struct ktap k;
	int rc;

	rc = forbid_bpf(BPF_PROG_LOAD, EPERM);
	ktap_begin(&k, rc ? 1 : 3);
	if (rc) {
		ktap_result(&k, KTAP_SKIP, "stats_show", "no seccomp here");
		return ktap_end(&k);
	}
	unit_tree("proc", root, sizeof(root));
	ktap_ok(&k, test_not_seen(), "what is not seen, and what the sysctl says");
	unit_tree_remove(root);
	unit_tree("proc", root, sizeof(root));
	ktap_ok(&k, test_containers(), "holders and their containers");
	ktap_ok(&k, test_no_proc(), "no /proc");
	return ktap_end(&k);
}
