// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "counters.h"
#include "ctx.h"
#include "metrics.h"
#include "pmu.h"

/* One event of a metric, and whether it can be opened here. */
struct encoding {
	char *pmu;  /* NULL: the kernel chooses */
	char *cpus; /* NULL: all */
	uint32_t type;
	uint64_t config[4]; /* config, config1, config2, config3 */
	int rc;
};

/* A line of the list: a metric, or (pattern) a way to write many. */
struct item {
	char *name;
	char *alias;
	enum metric_family family;
	const char *unit;
	bool pattern;
	char *note; /* why there is no encoding, or what a pattern is made of */
	struct encoding *encodings;
	size_t n_encodings;
};

struct list {
	const char *sysfs_root;
	struct item *items;
	size_t n;
};

static void list__free(struct list *l)
{
	struct item *item;
	size_t i, k;

	for (i = 0; i < l->n; i++) {
		item = &l->items[i];
		for (k = 0; k < item->n_encodings; k++) {
			free(item->encodings[k].pmu);
			free(item->encodings[k].cpus);
		}
		free(item->encodings);
		free(item->note);
		free(item->alias);
		free(item->name);
	}
	free(l->items);
	memset(l, 0, sizeof(*l));
}

/* ---- what there is ---- */

static struct item *add_item(struct list *l, enum metric_family family, const char *name,
			     const char *alias, const char *note)
{
	struct item *more, *item;

	more = realloc(l->items, (l->n + 1) * sizeof(*more));
	if (!more)
		return NULL;
	l->items = more;
	item = &more[l->n];
	memset(item, 0, sizeof(*item));
	l->n++;
	item->family = family;
	item->unit = "events";
	item->name = strdup(name);
	item->alias = strdup(alias);
	item->note = note ? strdup(note) : NULL;
	return item->name && item->alias && (item->note || !note) ? item : NULL;
}

static int add_encoding(struct item *item, const struct metric_event *e, const char *sysfs_root)
{
	struct encoding *enc = &item->encodings[item->n_encodings];
	char cpus[256];

	memset(enc, 0, sizeof(*enc));
	item->n_encodings++;
	enc->type = e->attr.type;
	enc->config[0] = e->attr.config;
	enc->config[1] = e->attr.config1;
	enc->config[2] = e->attr.config2;
	enc->config[3] = e->config3;
	enc->rc = counters__probe(e, sysfs_root);
	if (e->pmu) {
		enc->pmu = strdup(e->pmu);
		if (!enc->pmu)
			return -ENOMEM;
	}
	if (e->some_cpus) {
		enc->cpus = strdup(cpus__format(&e->cpus, cpus, sizeof(cpus)));
		if (!enc->cpus)
			return -ENOMEM;
	}
	return 0;
}

static int add_metric(const char *name, enum metric_family family, const char *alias,
		      const struct metric *m, const char *why, void *data)
{
	struct list *l = data;
	struct item *item;
	size_t i;
	int rc;

	item = add_item(l, family, name, alias, why);
	if (!item)
		return -ENOMEM;
	if (!m)
		return 0;
	item->unit = m->unit;
	if (!m->n_events)
		return 0;
	item->encodings = calloc(m->n_events, sizeof(*item->encodings));
	if (!item->encodings)
		return -ENOMEM;
	for (i = 0; i < m->n_events; i++) {
		rc = add_encoding(item, &m->events[i], l->sysfs_root);
		if (rc)
			return rc;
	}
	return 0;
}

/* "event, umask, ..." */
static char *join(const struct pmu_names *names)
{
	size_t i, len = 1;
	char *text, *p;

	for (i = 0; i < names->n; i++)
		len += strlen(names->names[i]) + 2;
	text = malloc(len);
	if (!text)
		return NULL;
	*text = '\0';
	for (p = text, i = 0; i < names->n; i++)
		p += sprintf(p, "%s%s", i ? ", " : "", names->names[i]);
	return text;
}

/* The terms that events of PMU @name can be written with. */
static int add_pmu_pattern(struct list *l, const char *name)
{
	char *pattern = NULL, *joined = NULL, *note = NULL;
	struct pmu_names terms = {};
	struct item *item;
	struct pmu pmu;
	int rc;

	/* These trace what their terms point to, and have no events to count. */
	if (!strcmp(name, "kprobe") || !strcmp(name, "uprobe"))
		return 0;
	rc = pmu__read(&pmu, l->sysfs_root, name, NULL);
	if (rc) /* not a PMU, or broken: its events say so, if it has any */
		return rc == -ENOMEM ? rc : 0;
	if (pmu.kind == PMU_UNCORE)
		goto cleanup;
	rc = pmu__terms(&terms, l->sysfs_root, name);
	if (rc || !terms.n)
		goto cleanup;
	joined = join(&terms);
	if (!joined || asprintf(&note, "terms: %s", joined) < 0) {
		note = NULL;
		rc = -ENOMEM;
		goto cleanup;
	}
	if (asprintf(&pattern, "%s/TERM=N,.../", name) < 0) {
		pattern = NULL;
		rc = -ENOMEM;
		goto cleanup;
	}
	item = add_item(l, METRIC_PMU, pattern, "", note);
	if (item)
		item->pattern = true;
	else
		rc = -ENOMEM;
cleanup:
	free(pattern);
	free(joined);
	free(note);
	pmu__free_names(&terms);
	pmu__free(&pmu);
	return rc;
}

static int add_patterns(struct list *l)
{
	struct pmu_names names = {};
	struct item *item;
	size_t i;
	int rc;

	item = add_item(l, METRIC_RAW, "rNNN", "",
			"NNN: the event's code in the CPU's manual, in hexadecimal digits");
	if (!item)
		return -ENOMEM;
	item->pattern = true;
	rc = pmu__list(&names, l->sysfs_root);
	for (i = 0; !rc && i < names.n; i++)
		rc = add_pmu_pattern(l, names.names[i]);
	pmu__free_names(&names);
	return rc;
}

/* ---- how it is shown ---- */

/* Whether one of its events can be opened; a clock needs none. */
static bool is_available(const struct item *item)
{
	size_t i;

	for (i = 0; i < item->n_encodings; i++) {
		if (!item->encodings[i].rc)
			return true;
	}
	return item->family == METRIC_CLOCK;
}

/* Why an event cannot be opened. Returns @buf. */
static const char *reason(const struct item *item, int rc, char *buf, size_t size)
{
	char text[128];

	if (rc == -ENOENT)
		snprintf(buf, size, "%s has no such event (ENOENT)",
			 item->family == METRIC_SOFTWARE ? "kernel" : "CPU");
	else if (rc == -EACCES || rc == -EPERM)
		snprintf(buf, size, "%s: takes CAP_PERFMON or kernel.perf_event_paranoid <= 0",
			 errmsg__errno(rc, text, sizeof(text)));
	else if (rc == -ENODEV)
		snprintf(buf, size, "no CPU that has it is online (ENODEV)");
	else
		errmsg__errno(rc, buf, (unsigned int)size);
	return buf;
}

static void print_item(const struct ctx *ctx, const struct item *item, int width)
{
	const struct encoding *e;
	char why[256], config[128];
	size_t i, k, len;
	int names;

	names = fprintf(ctx->out, "%s%s%s", item->name, *item->alias ? ", " : "", item->alias);
	fprintf(ctx->out, "%*s  %-8s", width > names ? width - names : 0, "",
		metrics__family(item->family));
	if (!item->n_encodings) {
		fprintf(ctx->out, "  %4s  %-18s  %s%s\n", "-", "-",
			item->family == METRIC_CLOCK ? "yes"
			: item->pattern		     ? ""
						     : "no: ",
			item->note ? item->note : "");
		return;
	}
	for (i = 0; i < item->n_encodings; i++) {
		e = &item->encodings[i];
		len = (size_t)snprintf(config, sizeof(config), "0x%llx",
				       (unsigned long long)e->config[0]);
		for (k = 1; k < 4; k++) {
			if (e->config[k])
				len += (size_t)snprintf(config + len, sizeof(config) - len,
							",%zu:0x%llx", k,
							(unsigned long long)e->config[k]);
		}
		if (i)
			fprintf(ctx->out, "%*s", width + 10, "");
		fprintf(ctx->out, "  %4u  %-18s  %s%s", e->type, config, e->rc ? "no: " : "yes",
			e->rc ? reason(item, e->rc, why, sizeof(why)) : "");
		if (e->cpus)
			fprintf(ctx->out, " (%s: CPUs %s)", e->pmu, e->cpus);
		fputc('\n', ctx->out);
	}
}

static void print_plain(const struct ctx *ctx, const struct list *l)
{
	size_t i, width = 0, len;

	for (i = 0; i < l->n; i++) {
		len = strlen(l->items[i].name) + strlen(l->items[i].alias) +
		      (*l->items[i].alias ? 2 : 0);
		if (len > width)
			width = len;
	}
	fprintf(ctx->out, "%-*s  %-8s  %4s  %-18s  %s\n", (int)width, "metric", "family", "type",
		"config", "can be opened here");
	for (i = 0; i < l->n; i++)
		print_item(ctx, &l->items[i], (int)width);
}

/* Takes @value over, also when it fails. */
static int put(struct json_object *obj, const char *key, struct json_object *value)
{
	if (value && !json_object_object_add(obj, key, value))
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

static int append(struct json_object *array, struct json_object *value)
{
	if (value && !json_object_array_add(array, value))
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

static struct json_object *encoding_object(const struct item *item, const struct encoding *e)
{
	static const char *const names[] = {"config", "config1", "config2", "config3"};
	struct json_object *obj = json_object_new_object();
	char text[256];
	size_t i;
	int rc = 0;

	if (!obj)
		return NULL;
	if (e->pmu)
		rc = put(obj, "pmu", json_object_new_string(e->pmu));
	if (!rc && e->cpus)
		rc = put(obj, "cpus", json_object_new_string(e->cpus));
	rc = rc ?: put(obj, "type", json_object_new_int64(e->type));
	for (i = 0; !rc && i < 4; i++) {
		if (i && !e->config[i])
			continue;
		/* hexadecimal, as everywhere else, and safe from readers to whom a number has 53
		 * bits */
		snprintf(text, sizeof(text), "0x%llx", (unsigned long long)e->config[i]);
		rc = put(obj, names[i], json_object_new_string(text));
	}
	rc = rc ?: put(obj, "available", json_object_new_boolean(!e->rc));
	if (!rc && e->rc)
		rc = put(obj, "reason",
			 json_object_new_string(reason(item, e->rc, text, sizeof(text))));
	if (rc) {
		json_object_put(obj);
		return NULL;
	}
	return obj;
}

static struct json_object *item_object(const struct item *item)
{
	struct json_object *obj = json_object_new_object(), *events;
	size_t i;
	int rc;

	if (!obj)
		return NULL;
	rc = put(obj, "metric", json_object_new_string(item->name))
		     ?: put(obj, "family", json_object_new_string(metrics__family(item->family)));
	if (item->pattern) {
		rc = rc ?: put(obj, "pattern", json_object_new_boolean(true));
		rc = rc ?: put(obj, "note", json_object_new_string(item->note));
		goto done;
	}
	if (!rc && *item->alias)
		rc = put(obj, "alias", json_object_new_string(item->alias));
	rc = rc ?: put(obj, "unit", json_object_new_string(item->unit));
	rc = rc ?: put(obj, "available", json_object_new_boolean(is_available(item)));
	if (!rc && item->note)
		rc = put(obj, "reason", json_object_new_string(item->note));
	if (!rc) {
		events = json_object_new_array();
		rc = put(obj, "events", events);
		for (i = 0; !rc && i < item->n_encodings; i++)
			rc = append(events, encoding_object(item, &item->encodings[i]));
	}
done:
	if (rc) {
		json_object_put(obj);
		return NULL;
	}
	return obj;
}

static int print_json(const struct ctx *ctx, const struct list *l)
{
	struct json_object *array = json_object_new_array();
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE, rc = 0;
	const char *text;
	size_t i;

	if (!array)
		return -ENOMEM;
	for (i = 0; !rc && i < l->n; i++)
		rc = append(array, item_object(&l->items[i]));
	if (rc)
		goto cleanup;
	flags |= ctx->pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
			     : JSON_C_TO_STRING_PLAIN;
	text = json_object_to_json_string_ext(array, flags);
	if (text)
		fprintf(ctx->out, "%s\n", text);
	else
		rc = -ENOMEM;
cleanup:
	json_object_put(array);
	return rc;
}

int cmd_metric_list(struct ctx *ctx)
{
	struct list l = {.sysfs_root = ctx->sysfs_root};
	char why[128];
	int rc;

	if (ctx->argc || ctx->command) {
		errmsg__usage(ctx->err, "'metric list' takes no arguments, but there is '%s'",
			      ctx->argc ? ctx->argv[0] : "--");
		return ctx->err->status;
	}
	rc = metrics__each(ctx->sysfs_root, add_metric, &l) ?: add_patterns(&l);
	if (!rc && ctx->json)
		rc = print_json(ctx, &l);
	else if (!rc)
		print_plain(ctx, &l);
	list__free(&l);
	if (!rc)
		return EXIT_DONE;
	errmsg__fail(ctx->err, rc, "cannot list the metrics: %s",
		     errmsg__errno(rc, why, sizeof(why)));
	return ctx->err->status;
}
