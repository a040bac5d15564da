// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "histogram.h"
#include "json.h"
#include "text.h"
#include "view.h"

static int put_prog(struct json_object *obj, const struct report *r, const struct row *row)
{
	char tag[17], type[32];
	int i;

	if (r->interval && json__put(obj, "time", json__number(r->time_ns / 1e9)))
		return -ENOMEM;

	for (i = 0; i < 8; i++)
		snprintf(tag + 2 * i, 3, "%02x", row->prog->tag[i]);
	return json__put(obj, "id", json_object_new_uint64(row->prog->id)) ?:
	       json__put(obj, "tag", json_object_new_string(tag)) ?:
	       json__put(obj, "name", json_object_new_string(row->prog->name)) ?:
	       json__put(obj, "type", json_object_new_string(prog__type_name(row->prog->type, type,
								       sizeof(type)))) ?:
	       json__put(obj, "func", json_object_new_string(row->func));
}

static struct json_object *histogram_object(const struct window *w)
{
	struct json_object *obj = json_object_new_object(), *buckets;
	size_t i, last = 0;
	int rc;

	if (!obj)
		return NULL;
	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (w->histogram[i])
			last = i;
	buckets = json_object_new_array();
	rc = json__put(obj, "p50", json_object_new_uint64(histogram__percentile(w->histogram, .5)))
		     ?: json__put(obj, "p90", json_object_new_uint64(histogram__percentile(w->histogram, .9)))
		     ?: json__put(obj, "p99", json_object_new_uint64(histogram__percentile(w->histogram, .99)))
		     ?: json__put(obj, "max", json_object_new_uint64(histogram__percentile(w->histogram, 1)))
		     ?: json__put(obj, "buckets", buckets);
	for (i = 0; !rc && i <= last; i++) {
		struct json_object *b;

		if (!w->histogram[i])
			continue;
		b = json_object_new_object();
		rc = json__append(buckets, b) ?: json__put(b, "from", json_object_new_uint64(histogram__from(i)))
		     ?: json__put(b, "to", json_object_new_uint64(histogram__to(i)))
		     ?: json__put(b, "runs", json_object_new_uint64(w->histogram[i]));
	}
	if (rc) {
		json_object_put(obj);
		return NULL;
	}
	return obj;
}

/* @i: the metric. */
static struct json_object *tasks_object(const struct window *w, size_t i)
{
	struct json_object *array = json_object_new_array();
	size_t k;
	int rc = 0;

	if (!array)
		return NULL;
	for (k = 0; !rc && k < w->n_tasks; k++) {
		const struct window_task *t = &w->tasks[k];
		struct json_object *obj = json_object_new_object();

		rc = json__append(array, obj);
		/* What found no room has no process: tgid is null. */
		if (!rc && t->tgid == SAMPLE_TASK_OTHER)
			rc = json_object_object_add(obj, "tgid", NULL)
				     ?: json__put(obj, "comm", json_object_new_string("(others)"));
		else if (!rc)
			rc = json__put(obj, "tgid", json_object_new_uint64(t->tgid))
				     ?: json__put(obj, "comm", json_object_new_string(t->comm));
		rc = rc ?: json__put(obj, "measured", json_object_new_uint64(t->measured)) ?: json__put(obj, "value", json__number(t->value[i])) ?: json__put(obj, "net", json__number(t->net[i]));
	}
	if (rc) {
		json_object_put(array);
		return NULL;
	}
	return array;
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
	rc = json__put(obj, "metric", json_object_new_string(r->metrics[i]->name)) ?:
	     json__put(obj, "run_cnt", json_object_new_uint64(w->run_cnt)) ?:
	     json__put(obj, "value", json__number(m->value)) ?:
	     json__put(obj, "enabled", json_object_new_uint64(m->enabled)) ?:
	     json__put(obj, "running", json_object_new_uint64(m->running)) ?:
	     json__put(obj, "net", json__number(m->net)) ?:
	     json__put(obj, "floor", json__number(m->floor)) ?:
	     json__put(obj, "floor_p10", json__number(row->floor->low[i])) ?:
	     json__put(obj, "floor_p90", json__number(row->floor->high[i])) ?:
	     json__put(obj, "measured", json_object_new_uint64(w->measured)) ?:
	     json__put(obj, "switched", json_object_new_uint64(w->switched)) ?:
	     json__put(obj, "lost", json_object_new_uint64(w->lost));
	if (!rc && w->lost)
		rc = json__put(obj, "lost_entry", json_object_new_uint64(w->lost_entry)) ?:
		     json__put(obj, "lost_exit", json_object_new_uint64(w->lost_exit)) ?:
		     json__put(obj, "lost_deep", json_object_new_uint64(w->lost_deep)) ?:
		     json__put(obj, "lost_read", json_object_new_uint64(w->lost_read));
	if (!rc && w->sampled)
		rc = json__put(obj, "skipped", json_object_new_uint64(w->skipped));
	rc = rc ?: json__put(obj, "estimate", json_object_new_boolean(m->estimate));
	if (!rc && w->calls)
		rc = json__put(obj, "self", json__number(m->self))
			     ?: json__put(obj, "with_self", json_object_new_uint64(w->with_self));
	if (!rc && w->histogram && !i)
		rc = json__put(obj, "histogram", histogram_object(w));
	if (!rc && w->tasks)
		rc = json__put(obj, "tasks", tasks_object(w, i));
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
		rc = json__append(array, metric_object(r, row, i));
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
		rc = json__put(obj, "error", json_object_new_string(row->why));
	} else if (!rc) {
		metrics = json_object_new_array();
		rc = json__put(obj, "metrics", metrics) ?: add_metrics(metrics, r, row);
	}
	if (rc) {
		json_object_put(obj);
		return NULL;
	}
	return obj;
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
			rc = json__append(array, prog_object(report, &report->rows[i]));
	}
	if (!rc)
		rc = json__print(ctx, array, report->interval);
	json_object_put(array);
	return rc;
}

void view__error(const struct ctx *ctx, const struct errmsg *err)
{
	struct json_object *doc;
	char text[4 * sizeof(err->text)];

	if (!ctx->json) {
		fprintf(ctx->msg, "Error: %s\n", text__message(err->text, text, sizeof(text)));
		return;
	}
	doc = json_object_new_object();
	text__utf8(err->text, text, sizeof(text));
	if (!doc || json__put(doc, "error", json_object_new_string(text)) ||
	    json__print(ctx, doc, false))
		fputs("{\"error\":\"out of memory\"}\n", ctx->out);
	json_object_put(doc);
}
