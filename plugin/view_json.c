// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "view.h"

/* Whole numbers as such, whatever arithmetic they come from: counts are exact up to 2^53. */
static struct json_object *number(double v)
{
	double whole = nearbyint(v);
	char buf[64];

	if (fabs(v - whole) < 1e-6 && fabs(whole) < 9e15)
		return json_object_new_int64((int64_t)whole);
	snprintf(buf, sizeof(buf), "%.3f", v);
	return json_object_new_double_s(v, buf);
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

static int put_prog(struct json_object *obj, const struct report *r, const struct row *row)
{
	char tag[17], type[32];
	int i;

	if (r->interval && put(obj, "time", number(r->time_ns / 1e9)))
		return -ENOMEM;

	for (i = 0; i < 8; i++)
		snprintf(tag + 2 * i, 3, "%02x", row->prog->tag[i]);
	return put(obj, "id", json_object_new_uint64(row->prog->id)) ?:
	       put(obj, "tag", json_object_new_string(tag)) ?:
	       put(obj, "name", json_object_new_string(row->prog->name)) ?:
	       put(obj, "type", json_object_new_string(prog__type_name(row->prog->type, type,
								       sizeof(type)))) ?:
	       put(obj, "func", json_object_new_string(row->func));
}

/* bpftool's five fields first, in its order. */
static struct json_object *metric_object(const struct report *r, const struct row *row, size_t i)
{
	const struct window *w = row->window;
	const struct window_metric *m = &w->metric[i];
	struct json_object *obj = json_object_new_object();
	int rc;

	if (!obj)
		return NULL;
	rc = put(obj, "metric", json_object_new_string(r->metrics[i]->name)) ?:
	     put(obj, "run_cnt", json_object_new_uint64(w->run_cnt)) ?:
	     put(obj, "value", number(m->value)) ?:
	     put(obj, "enabled", json_object_new_uint64(m->enabled)) ?:
	     put(obj, "running", json_object_new_uint64(m->running)) ?:
	     put(obj, "net", number(m->net)) ?:
	     put(obj, "floor", number(m->floor)) ?:
	     put(obj, "floor_p10", number(row->floor->low[i])) ?:
	     put(obj, "floor_p90", number(row->floor->high[i])) ?:
	     put(obj, "measured", json_object_new_uint64(w->measured)) ?:
	     put(obj, "switched", json_object_new_uint64(w->switched)) ?:
	     put(obj, "lost", json_object_new_uint64(w->lost));
	if (!rc && w->lost)
		rc = put(obj, "lost_entry", json_object_new_uint64(w->lost_entry)) ?:
		     put(obj, "lost_exit", json_object_new_uint64(w->lost_exit)) ?:
		     put(obj, "lost_deep", json_object_new_uint64(w->lost_deep)) ?:
		     put(obj, "lost_read", json_object_new_uint64(w->lost_read));
	if (!rc && w->sampled)
		rc = put(obj, "skipped", json_object_new_uint64(w->skipped));
	rc = rc ?: put(obj, "estimate", json_object_new_boolean(m->estimate));
	if (r->one)
		rc = rc ?: put_prog(obj, r, row);
	if (rc) {
		json_object_put(obj);
		return NULL;
	}
	return obj;
}

static int add_metrics(struct json_object *array, const struct report *r, const struct row *row)
{
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < r->n_metrics; i++)
		rc = append(array, metric_object(r, row, i));
	return rc;
}

static struct json_object *prog_object(const struct report *r, const struct row *row)
{
	struct json_object *obj = json_object_new_object(), *metrics;
	int rc;

	if (!obj)
		return NULL;
	rc = put_prog(obj, r, row);
	if (!rc && !row->window) {
		rc = put(obj, "error", json_object_new_string(row->why));
	} else if (!rc) {
		metrics = json_object_new_array();
		rc = put(obj, "metrics", metrics) ?: add_metrics(metrics, r, row);
	}
	if (rc) {
		json_object_put(obj);
		return NULL;
	}
	return obj;
}

static int print(const struct ctx *ctx, struct json_object *doc, bool line)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text;

	flags |= ctx->pretty && !line ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
				      : JSON_C_TO_STRING_PLAIN;
	text = json_object_to_json_string_ext(doc, flags);
	if (!text)
		return -ENOMEM;
	fprintf(ctx->out, "%s\n", text);
	/* Whoever reads line by line shall not wait for a full buffer. */
	fflush(ctx->out);
	return 0;
}

int view__json(const struct ctx *ctx, const struct report *report)
{
	struct json_object *array = json_object_new_array();
	size_t i;
	int rc = 0;

	if (!array)
		return -ENOMEM;
	if (report->one && report->rows[0].window) {
		rc = add_metrics(array, report, &report->rows[0]);
	} else {
		for (i = 0; !rc && i < report->n_rows; i++)
			rc = append(array, prog_object(report, &report->rows[i]));
	}
	if (!rc)
		rc = print(ctx, array, report->interval);
	json_object_put(array);
	return rc;
}

void view__error(const struct ctx *ctx, const struct errmsg *err)
{
	struct json_object *doc;

	if (!ctx->json) {
		fprintf(ctx->msg, "Error: %s\n", err->text);
		return;
	}
	doc = json_object_new_object();
	if (!doc || put(doc, "error", json_object_new_string(err->text)) || print(ctx, doc, false))
		fputs("{\"error\":\"out of memory\"}\n", ctx->out);
	json_object_put(doc);
}
