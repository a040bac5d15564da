// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_view.h"
#include "json.h"
#include "statistics.h"

/* The same program has the same numbers where counts are exact: no digits are rounded away that
 * would make others of them. */
static struct json_object *exact(double v)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%.12g", v);
	return json_object_new_double_s(v, buf);
}

static struct json_object *machine_object(const struct machine *m)
{
	struct json_object *obj = json_object_new_object();
	int rc;

	if (!obj)
		return NULL;
	rc = json__put(obj, "kernel", json_object_new_string(m->kernel)) ?:
	     json__put(obj, "arch", json_object_new_string(m->arch)) ?:
	     json__put(obj, "cpu", json_object_new_string(m->cpu)) ?:
	     json__put(obj, "online_cpus", json_object_new_string(m->online));
	if (!rc && m->jit >= 0)
		rc = json__put(obj, "bpf_jit_enable", json_object_new_int(m->jit));
	if (!rc)
		return obj;
	json_object_put(obj);
	return NULL;
}

static struct json_object *reading_object(const struct bench_reading *r)
{
	struct json_object *obj = json_object_new_object();
	int rc;

	if (!obj)
		return NULL;
	rc = json__put(obj, "runs", json_object_new_uint64(r->runs)) ?:
	     json__put(obj, "value", exact(r->value)) ?:
	     json__put(obj, "mean", exact(r->mean));
	if (!rc)
		return obj;
	json_object_put(obj);
	return NULL;
}

static struct json_object *metric_object(const struct bench *b, const struct bench_metric *m)
{
	struct json_object *obj = json_object_new_object(), *array;
	double *values = calloc(b->count, sizeof(*values)), gross;
	unsigned i;
	int rc = -ENOMEM;

	if (!obj || !values)
		goto cleanup;
	for (i = 0; i < b->count; i++)
		values[i] = m->v[i].value;
	statistics__sort(values, b->count);
	gross = statistics__median(values, b->count);
	array = json_object_new_array();
	rc = json__put(obj, "metric", json_object_new_string(m->name)) ?:
	     json__put(obj, "unit", json_object_new_string(m->unit)) ?:
	     json__put(obj, "gross", exact(gross));
	if (!rc && m->has_floor)
		rc = json__put(obj, "net", exact(gross - m->floor)) ?:
		     json__put(obj, "floor", exact(m->floor)) ?:
		     json__put(obj, "floor_p10", exact(m->low)) ?:
		     json__put(obj, "floor_p90", exact(m->high));
	rc = rc ?: json__put(obj, "estimate", json_object_new_boolean(m->estimate)) ?:
		   json__put(obj, "shared", json_object_new_boolean(m->shared)) ?:
		   json__put(obj, "measurements", array);
	for (i = 0; !rc && i < b->count; i++)
		rc = json__append(array, reading_object(&m->v[i]));
cleanup:
	free(values);
	if (!rc)
		return obj;
	json_object_put(obj);
	return NULL;
}

static struct json_object *prog_object(const struct bench *b, const struct bench_prog *p)
{
	struct json_object *obj = json_object_new_object(), *array;
	char tag[17], type[32];
	size_t i;
	int rc;

	if (!obj)
		return NULL;
	for (i = 0; i < 8; i++)
		snprintf(tag + 2 * i, 3, "%02x", p->prog.tag[i]);
	rc = json__put(obj, "name", json_object_new_string(p->prog.name))
		     ?: json__put(obj, "type",
				  json_object_new_string(
					  prog__type_name(p->prog.type, type, sizeof(type))));
	if (!rc && p->prog.fd >= 0)
		rc = json__put(obj, "id", json_object_new_uint64(p->prog.id))
			     ?: json__put(obj, "tag", json_object_new_string(tag));
	if (rc || p->why.status) {
		rc = rc ?: json__put(obj, "error", json_object_new_string(p->why.text));
		goto cleanup;
	}
	if (p->how <= BENCH_ONCE)
		rc = json__put(obj, "repeat", json_object_new_uint64(p->repeat)) ?:
		     json__put(obj, "retval", json_object_new_uint64(p->retval)) ?:
		     json__put(obj, "ratio", json__number(p->ratio)) ?:
		     json__put(obj, "reliable",
			       json_object_new_boolean(bench_prog__reliable(p)));
	array = json_object_new_array();
	rc = rc ?: json__put(obj, "metrics", array);
	for (i = 0; !rc && i < p->n_metrics; i++)
		rc = json__append(array, metric_object(b, &p->metric[i]));
cleanup:
	if (!rc)
		return obj;
	json_object_put(obj);
	return NULL;
}

int bench_view__json(const struct ctx *ctx, const struct bench *b, const struct machine *m)
{
	struct json_object *obj = json_object_new_object(), *array;
	size_t i;
	int rc;

	if (!obj)
		return -ENOMEM;
	rc = json__put(obj, "format", json_object_new_string(BENCH_FORMAT)) ?:
	     json__put(obj, "version", json_object_new_string(BPFCOST_VERSION)) ?:
	     json__put(obj, "machine", machine_object(m)) ?:
	     json__put(obj, "statistics", json_object_new_boolean(b->statistics)) ?:
	     json__put(obj, "count", json_object_new_int(b->count));
	if (!rc && b->cpu >= 0)
		rc = json__put(obj, "on_cpu", json_object_new_int(b->cpu));
	if (!rc && b->object_name)
		rc = json__put(obj, "object", json_object_new_string(b->object_name));
	if (!rc) {
		array = json_object_new_array();
		rc = json__put(obj, "programs", array);
	}
	for (i = 0; !rc && i < b->n; i++)
		rc = json__append(array, prog_object(b, b->v[i]));
	if (!rc)
		rc = json__print(ctx, obj, false);
	json_object_put(obj);
	return rc;
}
