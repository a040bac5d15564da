// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `bpfcost metric list`: every metric, and whether it can be opened, in both forms. */
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctx.h"
#include "ktap.h"
#include "unit.h"

/* Runs the command on the tree @tree. *text, allocated, is what it printed. */
static int list(const char *tree, bool json, bool pretty, char **text)
{
	struct errmsg err = {};
	struct ctx ctx = {.json = json, .pretty = pretty, .msg = stderr, .err = &err};
	char root[4096];
	size_t size;
	int status;

	*text = NULL;
	ctx.out = open_memstream(text, &size);
	if (!ctx.out)
		return -1;
	unit_tree(tree, root, sizeof(root));
	ctx.sysfs_root = root;
	status = cmd_metric_list(&ctx);
	unit_tree_remove(root);
	fclose(ctx.out);
	if (status)
		ktap_note("%s", err.text);
	return status;
}

static struct json_object *find(struct json_object *array, const char *name)
{
	struct json_object *item, *metric;
	size_t i;

	for (i = 0; i < json_object_array_length(array); i++) {
		item = json_object_array_get_idx(array, i);
		if (json_object_object_get_ex(item, "metric", &metric) &&
		    !strcmp(json_object_get_string(metric), name))
			return item;
	}
	return NULL;
}

static const char *string(struct json_object *item, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(item, key, &value) ? json_object_get_string(value) : "";
}

static bool is(struct json_object *array, const char *name, const char *key, const char *expected)
{
	struct json_object *item = find(array, name);
	const char *seen = item ? string(item, key) : "no such metric";

	if (!strcmp(seen, expected))
		return true;
	ktap_note("%s: %s is '%s', expected '%s'", name, key, seen, expected);
	return false;
}

/* What metrics are made of on a machine with two kinds of cores that is nothing but files. */
static bool test_json(bool pretty)
{
	struct json_object *array = NULL, *item, *events, *event;
	char *text;
	bool ok;

	if (list("hybrid", true, pretty, &text))
		return false;
	array = json_tokener_parse(text);
	ok = array && json_object_is_type(array, json_type_array) &&
	     (strchr(text, '\n') == text + strlen(text) - 1) == !pretty;
	ok = ok && is(array, "cycles", "family", "bpftool") &&
	     is(array, "cycles", "alias", "cpu-cycles") && is(array, "cycles", "unit", "cycles") &&
	     is(array, "ns", "available", "true") &&
	     is(array, "branch-instructions", "alias", "branches") &&
	     is(array, "rNNN", "pattern", "true") &&
	     is(array, "cpu_atom/TERM=N,.../", "note",
		"terms: cmask, edge, event, inv, ldlat, offcore_rsp, umask") &&
	     is(array, "uncore_imc_0/cas_count_read/", "available", "false") &&
	     is(array, "uncore_imc_0/TERM=N,.../", "", "no such metric");
	ok = ok && strstr(string(find(array, "uncore_imc_0/cas_count_read/"), "reason"), "cpumask");
	item = ok ? find(array, "llc_misses") : NULL;
	ok = item && json_object_object_get_ex(item, "events", &events) &&
	     json_object_array_length(events) == 2;
	event = ok ? json_object_array_get_idx(events, 1) : NULL;
	ok = event && !strcmp(string(event, "pmu"), "cpu_core") &&
	     !strcmp(string(event, "cpus"), "0-7") && !strcmp(string(event, "type"), "3") &&
	     !strcmp(string(event, "config"), "0x400010002");
	if (!ok)
		ktap_note("%s", text);
	json_object_put(array);
	free(text);
	return ok;
}

static bool has_line(const char *text, const char *start, const char *part)
{
	const char *line, *end;
	size_t len;

	for (line = text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		len = (size_t)(end - line);
		if (!strncmp(line, start, strlen(start)) && memmem(line, len, part, strlen(part)))
			return true;
	}
	ktap_note("no line '%s...' with '%s'", start, part);
	return false;
}

static bool test_plain(void)
{
	char *text;
	bool ok;

	if (list("hybrid", false, false, &text))
		return false;
	ok = has_line(text, "metric ", "can be opened here") &&
	     has_line(text, "cycles, cpu-cycles ", "0xa00000000 ") &&
	     has_line(text, "   ", "0x400000000 ") &&
	     has_line(text, "   ", "(cpu_core: CPUs 0-7)") && has_line(text, "ns ", " yes") &&
	     has_line(text, "cpu_atom/mem-loads/ ", "0x1cd,1:0x3 ") &&
	     has_line(text, "msr/cpu_thermal_margin/ ", " no: ") &&
	     has_line(text, "rNNN ", "NNN: ");
	free(text);
	return ok;
}

/* A machine without perf events still has a list. */
static bool test_none(void)
{
	struct json_object *array;
	char *text;
	bool ok;

	if (list("none", true, false, &text))
		return false;
	array = json_tokener_parse(text);
	ok = array && is(array, "ns", "available", "true") && is(array, "cycles", "unit", "cycles");
	json_object_put(array);
	free(text);
	return ok;
}

/* One broken PMU is a reason, not the end. */
static bool test_broken(void)
{
	struct json_object *array;
	char *text;
	bool ok;

	if (list("broken-cpus", true, false, &text))
		return false;
	array = json_tokener_parse(text);
	ok = array && is(array, "ns", "available", "true") &&
	     is(array, "cycles", "reason", "PMU 'cpu_atom': its list of CPUs is broken: '3-2'");
	json_object_put(array);
	free(text);
	return ok;
}

static bool test_usage(void)
{
	char word[] = "everything", *argv[] = {word, NULL};
	struct errmsg err = {};
	struct ctx ctx = {
		.out = stdout,
		.msg = stderr,
		.err = &err,
		.sysfs_root = "/sys",
		.argc = 1,
		.argv = argv,
	};

	return cmd_metric_list(&ctx) == EXIT_USAGE && err.status == EXIT_USAGE &&
	       strstr(err.text, "'everything'");
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 6);
	ktap_ok(&k, test_plain(), "a table for people");
	ktap_ok(&k, test_json(false), "one JSON document");
	ktap_ok(&k, test_json(true), "the same, pretty");
	ktap_ok(&k, test_none(), "a machine without PMUs");
	ktap_ok(&k, test_broken(), "a machine with a broken PMU");
	ktap_ok(&k, test_usage(), "a word too many is refused");
	return ktap_end(&k);
}
