// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <math.h>
#include <string.h>

#include "histogram.h"
#include "view.h"

static const struct window_metric *find(const struct report *r, const struct window *w,
					const char *name)
{
	size_t i;

	for (i = 0; name && i < r->n_metrics; i++)
		if (!strcmp(r->metrics[i]->name, name))
			return &w->metric[i];
	return NULL;
}

/* The part that bpftool's `prog profile` prints (tools/bpf/bpftool/prog.c,
 * profile_print_readings_plain(), 7.8), to the letter. */
static void print_bpftool(FILE *out, const struct report *r, const struct window *w)
{
	size_t i;

	fprintf(out, "\n%18llu %-20s\n", (unsigned long long)w->run_cnt, "run_cnt");
	for (i = 0; i < r->n_metrics; i++) {
		const struct metric *m = r->metrics[i];
		const struct window_metric *v = &w->metric[i], *base;

		fprintf(out, "%18.0f %-20s", v->value, m->name);
		base = find(r, w, m->ratio_of);
		if (base && base->value > 0)
			fprintf(out, "# %8.2f %-30s", v->value * m->ratio_mul / base->value,
				m->ratio_desc);
		else
			fprintf(out, "%-41s", "");
		if (v->enabled > v->running)
			fprintf(out, "(%4.2f%%)", v->running * 100.0 / v->enabled);
		fputc('\n', out);
	}
}

static void print_lost(FILE *out, const char *indent, const struct window *w)
{
	if (w->lost_deep)
		fprintf(out, "%s%llu lost: more runs in flight on one CPU than are kept track of\n",
			indent, (unsigned long long)w->lost_deep);
	if (w->lost_entry)
		fprintf(out,
			"%s%llu lost: the kernel skipped the entry program (recursion guard)\n",
			indent, (unsigned long long)w->lost_entry);
	if (w->lost_exit)
		fprintf(out, "%s%llu lost: the kernel skipped the exit program (recursion guard)\n",
			indent, (unsigned long long)w->lost_exit);
	if (w->lost_read)
		fprintf(out, "%s%llu lost: a counter could not be read (CPU without the event)\n",
			indent, (unsigned long long)w->lost_read);
}

static void print_runs(FILE *out, const struct window *w)
{
	fprintf(out, "%llu runs in %.3f s: %llu measured, %llu switched out, %llu lost",
		(unsigned long long)w->run_cnt, w->time_ns / 1e9, (unsigned long long)w->measured,
		(unsigned long long)w->switched, (unsigned long long)w->lost);
	if (w->sampled)
		fprintf(out, ", %llu skipped by sampling", (unsigned long long)w->skipped);
	fputc('\n', out);
	print_lost(out, "  ", w);
}

/* Per-run numbers are exact in some places, and noise in others; two digits serve both. */
static void print_per_run(FILE *out, const struct report *r, const struct row *row)
{
	const struct window *w = row->window;
	size_t i;

	fprintf(out, "%-28s %12s %12s %12s   %s\n", "per run", "gross", "floor", "net",
		"floor p10..p90");
	for (i = 0; i < r->n_metrics; i++) {
		const struct window_metric *m = &w->metric[i];
		double n = w->sampled ? w->run_cnt : w->measured;

		fprintf(out, "%-28s ", r->metrics[i]->name);
		if (w->measured)
			fprintf(out, "%12.2f %12.2f %12.2f", m->value / n, m->floor, m->net / n);
		else
			fprintf(out, "%12s %12.2f %12s", "-", m->floor, "-");
		fprintf(out, "   %.2f..%.2f %s%s\n", row->floor->low[i], row->floor->high[i],
			r->metrics[i]->unit, m->estimate ? "   (estimate)" : "");
	}
}

static void print_histogram(FILE *out, const char *indent, const struct metric *m,
			    const struct window *w, bool buckets)
{
	__u64 most = 0;
	size_t i;

	fprintf(out, "%snet %s a run: p50 %llu, p90 %llu, p99 %llu, max %llu\n", indent, m->name,
		(unsigned long long)histogram__percentile(w->histogram, .5),
		(unsigned long long)histogram__percentile(w->histogram, .9),
		(unsigned long long)histogram__percentile(w->histogram, .99),
		(unsigned long long)histogram__percentile(w->histogram, 1));
	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (w->histogram[i] > most)
			most = w->histogram[i];
	for (i = 0; buckets && most && i < HISTOGRAM_BUCKETS; i++) {
		int stars = 40.0 * w->histogram[i] / most + .5;

		if (!w->histogram[i])
			continue;
		fprintf(out, "%s%12llu .. %-12llu %10llu runs  %.*s\n", indent,
			(unsigned long long)histogram__from(i),
			(unsigned long long)histogram__to(i), (unsigned long long)w->histogram[i],
			stars, "****************************************");
	}
}

static void print_tasks(FILE *out, const char *indent, const struct report *r,
			const struct window *w)
{
	size_t i, k;

	fprintf(out, "%s%10s %-16s %12s", indent, "tgid", "comm", "measured");
	for (k = 0; k < r->n_metrics; k++)
		fprintf(out, " %16s net %10s", r->metrics[k]->name, "a run");
	fputc('\n', out);
	for (i = 0; i < w->n_tasks; i++) {
		const struct window_task *t = &w->tasks[i];

		if (t->tgid == SAMPLE_TASK_OTHER)
			fprintf(out, "%s%10s %-16s", indent, "-", "(others)");
		else
			fprintf(out, "%s%10u %-16s", indent, t->tgid, t->comm);
		fprintf(out, " %12llu", (unsigned long long)t->measured);
		for (k = 0; k < r->n_metrics; k++)
			fprintf(out, " %20.0f %10.2f", t->net[k], t->net[k] / t->measured);
		fputc('\n', out);
	}
}

static void print_one(const struct ctx *ctx, const struct report *r)
{
	const struct row *row = &r->rows[0];
	char buf[32];

	print_bpftool(ctx->out, r, row->window);
	fprintf(ctx->out, "\nprog %u %s %s, function %s\n", row->prog->id,
		prog__type_name(row->prog->type, buf, sizeof(buf)), row->prog->name, row->func);
	print_runs(ctx->out, row->window);
	if (row->window->run_cnt)
		print_per_run(ctx->out, r, row);
	else
		fprintf(ctx->out,
			"it did not run, or only where it cannot be seen: as the target of a "
			"tail call\n");
	if (row->window->measured && row->window->histogram)
		print_histogram(ctx->out, "", r->metrics[0], row->window, true);
	if (row->window->n_tasks)
		print_tasks(ctx->out, "", r, row->window);
}

static void print_many(const struct ctx *ctx, const struct report *r)
{
	FILE *out = ctx->out;
	char buf[32];
	bool calls = false;
	size_t i, k;

	fprintf(out, "\n%6s %-14s %-32s %12s", "id", "type", "name", "runs");
	for (i = 0; i < r->n_rows; i++)
		calls |= r->rows[i].window && r->rows[i].window->calls;
	for (k = 0; k < r->n_metrics; k++) {
		fprintf(out, " %16s %12s", r->metrics[k]->name, "net/run");
		if (calls)
			fprintf(out, " %12s", "self/run");
	}
	fputc('\n', out);
	for (i = 0; i < r->n_rows; i++) {
		const struct row *row = &r->rows[i];
		const struct window *w = row->window;

		if (!w)
			continue;
		fprintf(out, "%6u %-14s ", row->prog->id,
			prog__type_name(row->prog->type, buf, sizeof(buf)));
		if (!strcmp(row->func, row->prog->name))
			fprintf(out, "%-32s", row->prog->name);
		else
			fprintf(out, "%s:%-*s", row->prog->name,
				(int)(strlen(row->prog->name) < 31 ? 31 - strlen(row->prog->name)
								   : 0),
				row->func);
		fprintf(out, " %12llu", (unsigned long long)w->run_cnt);
		for (k = 0; k < r->n_metrics; k++) {
			double n = w->sampled ? w->run_cnt : w->measured;

			fprintf(out, " %15.0f%s", w->metric[k].net,
				w->metric[k].estimate ? "~" : " ");
			if (w->measured)
				fprintf(out, " %12.2f", w->metric[k].net / n);
			else
				fprintf(out, " %12s", "-");
			if (calls && w->with_self)
				fprintf(out, " %12.2f", w->metric[k].self / w->with_self);
			else if (calls)
				fprintf(out, " %12s", "-");
		}
		fputc('\n', out);
		if (w->switched)
			fprintf(out, "%22s%llu of them switched out, not measured\n", "",
				(unsigned long long)w->switched);
		print_lost(out, "                      ", w);
		if (w->measured && w->histogram)
			print_histogram(out, "        ", r->metrics[0], w, false);
		if (w->n_tasks)
			print_tasks(out, "        ", r, w);
	}
	for (i = 0; i < r->n_rows; i++) {
		const struct row *row = &r->rows[i];

		if (!row->window)
			fprintf(out, "%6u %-14s %-32s not profiled: %s\n", row->prog->id,
				prog__type_name(row->prog->type, buf, sizeof(buf)), row->prog->name,
				row->why);
	}
}

void view__plain(const struct ctx *ctx, const struct report *report)
{
	if (report->one && report->rows[0].window)
		print_one(ctx, report);
	else
		print_many(ctx, report);
}
