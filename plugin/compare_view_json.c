// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>

#include "compare_view.h"
#include "json.h"

/* p can be far below what json__number() keeps. */
static struct json_object *digits(double v)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%.6g", v);
	return json_object_new_double_s(v, buf);
}

static struct json_object *done(struct json_object *obj, int rc)
{
	if (!rc)
		return obj;
	json_object_put(obj);
	return NULL;
}

static struct json_object *lines_array(char *const *v, size_t n)
{
	struct json_object *array = json_object_new_array();
	size_t i;
	int rc = array ? 0 : -ENOMEM;

	for (i = 0; i < n && !rc; i++)
		rc = json__append(array, json_object_new_string(v[i]));
	return done(array, rc);
}

static int put_prog(struct json_object *obj, const struct bench_file_prog *p)
{
	int rc = json__put(obj, "name", json_object_new_string(p->name));

	if (!rc && p->object[0])
		rc = json__put(obj, "object", json_object_new_string(p->object));
	return rc;
}

static struct json_object *side_object(const struct compare_side *s)
{
	struct json_object *obj = json_object_new_object();
	int rc = obj ? 0 : -ENOMEM;

	rc = rc ?: json__put(obj, "gross", digits(s->metric->median)) ?:
		   json__put(obj, "net", digits(s->net)) ?:
		   json__put(obj, "low", digits(s->interval.low)) ?:
		   json__put(obj, "high", digits(s->interval.high)) ?:
		   json__put(obj, "confidence", digits(s->interval.confidence)) ?:
		   json__put(obj, "measurements", json_object_new_uint64(s->metric->n));
	return done(obj, rc);
}

static struct json_object *metric_object(const struct compare_metric *m)
{
	struct json_object *obj = json_object_new_object();
	int rc = obj ? 0 : -ENOMEM;

	rc = rc ?: json__put(obj, "metric", json_object_new_string(m->old.metric->name)) ?:
		   json__put(obj, "unit", json_object_new_string(m->old.metric->unit)) ?:
		   json__put(obj, "old", side_object(&m->old)) ?:
		   json__put(obj, "new", side_object(&m->new));
	/* Of what was 0 there are no percents. */
	if (!rc && m->has_percent)
		rc = json__put(obj, "difference", digits(m->percent))
			     ?: json__put(obj, "of_gross", json_object_new_boolean(m->of_gross));
	rc = rc ?: json__put(obj, "p", digits(m->test.p)) ?:
		   json__put(obj, "exact", json_object_new_boolean(m->test.exact)) ?:
		   json__put(obj, "significant", json_object_new_boolean(m->significant)) ?:
		   json__put(obj, "enough", json_object_new_boolean(m->enough)) ?:
		   json__put(obj, "slower", json_object_new_boolean(m->slower));
	return done(obj, rc);
}

static struct json_object *prog_object(const struct compare_prog *p)
{
	struct json_object *obj = json_object_new_object(), *array = json_object_new_array();
	size_t i;
	int rc;

	rc = obj ? put_prog(obj, p->new) : -ENOMEM;
	rc = rc
		     ?: json__put(obj, "reliable",
				  json_object_new_boolean(p->old->reliable && p->new->reliable));
	if (rc)
		json_object_put(array);
	rc = rc ?: json__put(obj, "metrics", array);
	for (i = 0; i < p->n && !rc; i++)
		rc = json__append(array, metric_object(&p->v[i]));
	return done(obj, rc);
}

static struct json_object *only_array(const struct bench_file_prog *const *v, size_t n)
{
	struct json_object *array = json_object_new_array(), *obj;
	size_t i;
	int rc = array ? 0 : -ENOMEM;

	for (i = 0; i < n && !rc; i++) {
		obj = json_object_new_object();
		rc = json__append(array, obj) ?: put_prog(obj, v[i]);
		if (!rc && v[i]->error)
			rc = json__put(obj, "error", json_object_new_string(v[i]->error));
	}
	return done(array, rc);
}

static struct json_object *slower_array(const struct compare *c)
{
	struct json_object *array = json_object_new_array(), *obj;
	size_t i, k;
	int rc = array ? 0 : -ENOMEM;

	for (i = 0; i < c->n; i++)
		for (k = 0; k < c->v[i].n && !rc; k++) {
			const struct compare_metric *m = &c->v[i].v[k];

			if (!m->slower)
				continue;
			obj = json_object_new_object();
			rc = json__append(array, obj) ?: put_prog(obj, c->v[i].new) ?:
			     json__put(obj, "metric", json_object_new_string(m->old.metric->name));
			if (!rc && m->has_percent)
				rc = json__put(obj, "difference", digits(m->percent));
		}
	return done(array, rc);
}

static int print(const struct ctx *ctx, struct json_object *obj, int rc)
{
	rc = rc ?: json__print(ctx, obj, false);
	json_object_put(obj);
	return rc;
}

int compare_view__json(const struct ctx *ctx, const struct compare *c)
{
	struct json_object *obj = json_object_new_object(), *array;
	size_t i;
	int rc;

	if (!obj)
		return -ENOMEM;
	rc = json__put(obj, "old", json_object_new_string(c->old.path)) ?:
	     json__put(obj, "new", json_object_new_string(c->new.path)) ?:
	     json__put(obj, "differences", lines_array(c->difference, c->n_differences));
	if (!rc && c->has_threshold)
		rc = json__put(obj, "threshold", digits(c->threshold))
			     ?: json__put(obj, "slower", slower_array(c));
	if (!rc) {
		array = json_object_new_array();
		rc = json__put(obj, "programs", array);
	}
	for (i = 0; i < c->n && !rc; i++)
		rc = json__append(array, prog_object(&c->v[i]));
	rc = rc ?: json__put(obj, "only_old", only_array(c->only_old, c->n_only_old)) ?:
		   json__put(obj, "only_new", only_array(c->only_new, c->n_only_new));
	return print(ctx, obj, rc);
}

static struct json_object *change_object(const struct history *h, const struct history_series *s,
					 const struct statistics_change *c)
{
	struct json_object *obj = json_object_new_object();
	double percent;
	int rc = obj ? 0 : -ENOMEM;

	rc = rc ?: json__put(obj, "file",
			     json_object_new_string(h->file[s->file[c->at]].path)) ?:
		   json__put(obj, "previous",
			     json_object_new_string(h->file[s->file[c->at - 1]].path)) ?:
		   json__put(obj, "before", digits(c->before - s->floor)) ?:
		   json__put(obj, "after", digits(c->after - s->floor)) ?:
		   json__put(obj, "p", digits(c->p));
	if (!rc && history__percent(s, c, &percent))
		rc = json__put(obj, "difference", digits(percent));
	return done(obj, rc);
}

static struct json_object *series_object(const struct history *h, const struct history_series *s)
{
	struct json_object *obj = json_object_new_object(), *array;
	size_t i;
	int rc = obj ? put_prog(obj, s->prog) : -ENOMEM;

	rc = rc ?: json__put(obj, "metric", json_object_new_string(s->metric->name)) ?:
		   json__put(obj, "unit", json_object_new_string(s->metric->unit));
	if (!rc) {
		array = json_object_new_array();
		rc = json__put(obj, "net", array);
	}
	for (i = 0; i < s->n && !rc; i++)
		rc = json__append(array, digits(s->value[i] - s->floor));
	if (!rc) {
		array = json_object_new_array();
		rc = json__put(obj, "changes", array);
	}
	for (i = 0; i < s->n_changes && !rc; i++)
		rc = json__append(array, change_object(h, s, &s->change[i]));
	if (!rc && s->has_newest)
		rc = json__put(obj, "newest", change_object(h, s, &s->newest));
	return done(obj, rc);
}

int history_view__json(const struct ctx *ctx, const struct history *h)
{
	struct json_object *obj = json_object_new_object(), *array;
	size_t i;
	int rc;

	if (!obj)
		return -ENOMEM;
	array = json_object_new_array();
	rc = json__put(obj, "files", array);
	for (i = 0; i < h->n_files && !rc; i++)
		rc = json__append(array, json_object_new_string(h->file[i].path));
	rc = rc ?: json__put(obj, "differences", lines_array(h->difference, h->n_differences));
	if (!rc) {
		array = json_object_new_array();
		rc = json__put(obj, "series", array);
	}
	for (i = 0; i < h->n && !rc; i++)
		rc = json__append(array, series_object(h, &h->v[i]));
	return print(ctx, obj, rc);
}
