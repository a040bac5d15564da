// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>

#include "json.h"
#include "stats_view.h"

/* A share can be small. */
static struct json_object *percent(double v)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%.6f", v);
	return json_object_new_double_s(v, buf);
}

static int put_counters(struct json_object *obj, const struct stats_counters *c, bool missed_known)
{
	int rc = json__put(obj, "run_time_ns", json_object_new_uint64(c->run_time_ns))
			 ?: json__put(obj, "run_cnt", json_object_new_uint64(c->run_cnt));

	if (!rc && missed_known)
		rc = json__put(obj, "recursion_misses",
			       json_object_new_uint64(c->recursion_misses));
	return rc;
}

/* What was read, before any arithmetic. */
static int put_raw(struct json_object *obj, const char *key, const struct stats_row *row,
		   bool missed_known)
{
	struct json_object *raw = json_object_new_object();
	int rc = json__put(obj, key, raw);

	return rc ? rc : put_counters(raw, &row->counters, missed_known);
}

static int put_marks(struct json_object *obj, const struct stats_window_row *w)
{
	struct json_object *array = json_object_new_array();
	const char *name, *meaning;
	unsigned i, mark;
	int rc = json__put(obj, "marks", array);

	for (i = 0; !rc && (name = stats_mark__name(i, &mark, &meaning)); i++)
		if (w->marks & mark)
			rc = json__append(array, json_object_new_string(name));
	return rc;
}

static int put_blind(struct json_object *obj, const struct blind_prog *b)
{
	struct json_object *array = json_object_new_array();
	char buf[256];
	unsigned kind;
	int rc = json__put(obj, "blind", array);

	for (kind = 1; !rc && kind <= b->kinds; kind <<= 1) {
		struct json_object *item;

		if (!(b->kinds & kind))
			continue;
		item = json_object_new_object();
		rc = json__append(array, item) ?:
		     json__put(item, "kind", json_object_new_string(blind__name(kind))) ?:
		     json__put(item, "reason", json_object_new_string(blind__reason(b, kind, buf,
										   sizeof(buf))));
	}
	return rc;
}

static int put_owner(struct json_object *array, const struct owner *o)
{
	struct json_object *obj = json_object_new_object();
	const struct process *p = o->process;
	int rc;

	rc = json__append(array, obj) ?:
	     json__put(obj, "pid", json_object_new_int64(p->pid)) ?:
	     json__put(obj, "comm", json__text(p->comm)) ?:
	     json__put(obj, "prog_fds", json_object_new_uint64(o->prog_fds)) ?:
	     json__put(obj, "link_fds", json_object_new_uint64(o->link_fds));
	if (!rc && p->cgroup)
		rc = json__put(obj, "cgroup", json__text(p->cgroup));
	if (!rc && p->container)
		rc = json__put(obj, "container", json__text(p->container));
	if (!rc && p->container && p->runtime)
		rc = json__put(obj, "runtime", json_object_new_string(p->runtime));
	return rc;
}

static int put_owners(struct json_object *obj, const struct stats_view_row *row, pid_t self)
{
	struct json_object *array = json_object_new_array();
	size_t i;
	int rc = json__put(obj, "owners", array);

	for (i = 0; !rc && i < row->n_owners; i++)
		if (row->owners[i].process->pid != self)
			rc = put_owner(array, &row->owners[i]);
	return rc;
}

/* Of runs, if there are any. */
static int put_per_run(struct json_object *obj, const struct stats_report *r,
		       const struct stats_window_row *w)
{
	int rc;

	if (!w->counters.run_cnt)
		return 0;
	rc = json__put(obj, "ns_per_run", json__number(w->ns_per_run));
	if (rc || !r->floor)
		return rc;
	return json__put(obj, "net_per_run", json__number(w->net_per_run))
		       ?: json__put(obj, "net_is_noise", json_object_new_boolean(w->net_is_noise));
}

/* What bpftool prog show has comes first, in its order: but these are the window's, not all. */
static int put_prog(struct json_object *array, const struct stats_report *r,
		    const struct stats_view_row *row)
{
	const struct stats_window_row *w = row->window;
	struct json_object *obj = json_object_new_object();
	bool missed = r->window->missed_known;
	char tag[17], type[32];
	int i, rc;

	for (i = 0; i < 8; i++)
		snprintf(tag + 2 * i, 3, "%02x", row->prog.row.tag[i]);
	rc = json__append(array, obj) ?:
	     json__put(obj, "id", json_object_new_uint64(row->prog.row.id)) ?:
	     json__put(obj, "type", json_object_new_string(prog__type_name(row->prog.type, type,
								     sizeof(type))));
	if (!rc && row->prog.name[0])
		rc = json__put(obj, "name", json_object_new_string(row->prog.name));
	rc = rc ?: json__put(obj, "tag", json_object_new_string(tag));
	if (!rc && !(w->marks & STATS_BACK))
		rc = put_counters(obj, &w->counters, missed) ?:
		     json__put(obj, "window_ns", json_object_new_uint64(w->time_ns)) ?:
		     json__put(obj, "runs_per_s", json__number(w->runs_per_s)) ?:
		     put_per_run(obj, r, w) ?:
		     json__put(obj, "cpu_percent", percent(w->cpus * 100)) ?:
		     json__put(obj, "machine_percent", percent(w->cpus * 100 /
							       r->window->online_cpus));
	rc = rc ?: put_raw(obj, "first", &w->first, missed) ?:
	     put_raw(obj, "last", &w->last, missed) ?:
	     put_marks(obj, w);
	if (!rc && row->blind)
		rc = put_blind(obj, row->blind);
	if (!rc && r->owners)
		rc = put_owners(obj, row, r->self);
	return rc;
}

static const char *switch_name(const struct stats_switch *sw)
{
	switch (sw->how) {
	case STATS_SWITCH_FD:
		return "fd";
	case STATS_SWITCH_SYSCTL:
		return "sysctl";
	case STATS_SWITCH_FOREIGN:
		break;
	}
	return "foreign";
}

static int put_floor(struct json_object *doc, const struct floor *f)
{
	return json__put(doc, "floor", json__number(f->value[0])) ?:
	       json__put(doc, "floor_p10", json__number(f->low[0])) ?:
	       json__put(doc, "floor_p90", json__number(f->high[0]));
}

int stats_view__json(const struct ctx *ctx, const struct stats_report *r)
{
	struct json_object *doc = json_object_new_object(), *array = NULL;
	const struct stats_window *w = r->window;
	size_t i;
	int rc = doc ? 0 : -ENOMEM;

	if (!rc && r->interval)
		rc = json__put(doc, "time", json__number(r->time_ns / 1e9));
	rc = rc ?: json__put(doc, "window_ns", json_object_new_uint64(w->time_ns)) ?:
	     json__put(doc, "online_cpus", json_object_new_uint64(w->online_cpus)) ?:
	     json__put(doc, "cpus_changed", json_object_new_boolean(w->cpus_changed)) ?:
	     json__put(doc, "switch", json_object_new_string(switch_name(r->sw))) ?:
	     json__put(doc, "switch_was_off", json_object_new_boolean(w->switch_was_off));
	if (!rc && r->floor)
		rc = put_floor(doc, r->floor);
	rc = rc ?: json__put(doc, "run_time_ns", json_object_new_uint64(w->run_time_ns)) ?:
	     json__put(doc, "run_cnt", json_object_new_uint64(w->run_cnt)) ?:
	     json__put(doc, "cpu_percent", percent(w->cpus * 100)) ?:
	     json__put(doc, "machine_percent", percent(w->cpus * 100 / w->online_cpus));
	if (!rc && r->all)
		rc = json__put(doc, "unseen", json_object_new_uint64(w->unseen));
	rc = rc ?: json__put(doc, "blind_known", json_object_new_boolean(!r->blind_refused));
	if (!rc) {
		array = json_object_new_array();
		rc = json__put(doc, "programs", array);
	}
	for (i = 0; !rc && i < r->n_rows; i++)
		rc = put_prog(array, r, &r->rows[i]);
	if (!rc)
		rc = json__print(ctx, doc, r->interval);
	json_object_put(doc);
	return rc;
}
