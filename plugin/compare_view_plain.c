// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <math.h>
#include <string.h>

#include "compare_view.h"
#include "text.h"

#define NAME_WIDTH 32

static void print_lines(FILE *out, char *const *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		fprintf(out, "Forced, though they differ: %s\n", v[i]);
	if (n)
		fputc('\n', out);
}

/* An exact p can be far below what is of interest. */
static void print_p(FILE *out, int width, double p)
{
	if (p < 0.0001)
		fprintf(out, " %*s", width, "<0.0001");
	else
		fprintf(out, " %*.4f", width, p);
}

static void print_metric(FILE *out, const struct compare_metric *m)
{
	const struct bench_file_metric *old = m->old.metric, *new = m->new.metric;
	char percent[32];

	if (m->has_percent && fabs(m->percent) < 0.005)
		snprintf(percent, sizeof(percent), "0.00 %%");
	else if (m->has_percent)
		snprintf(percent, sizeof(percent), "%+.2f %%", m->percent);
	else
		snprintf(percent, sizeof(percent), "from 0");
	fprintf(out, "  %-28s %12.2f %12.2f %12s %s", old->name, m->old.net, m->new.net, percent,
		m->significant ? " " : "~");
	print_p(out, 9, m->test.p);
	fprintf(out, "   %.2f..%.2f, %.2f..%.2f %s", m->old.interval.low, m->old.interval.high,
		m->new.interval.low, m->new.interval.high, old->unit);
	if (m->of_gross)
		fputs("   (percent of gross)", out);
	if (old->estimate || new->estimate)
		fputs("   (estimate)", out);
	if (old->shared || new->shared)
		fputs("   (others ran it)", out);
	fputc('\n', out);
	if (!m->enough)
		fprintf(out,
			"  %-28s too few: %zu and %zu measurements cannot show a difference; take "
			"more: count 10\n",
			"", old->n, new->n);
}

/* What could not be measured may be in @other as well. */
static void print_only(FILE *out, const struct bench_file *f, const struct bench_file *other,
		       const struct bench_file_prog *const *v, size_t n, const char *which)
{
	char why[1024];
	size_t i;

	for (i = 0; i < n; i++) {
		bool both = v[i]->error &&
			    bench_file__find(other, v[i]->object, v[i]->name, v[i]->nth);

		fprintf(out, "%s%s ('%s'): %s%s%s", which, both ? "" : " only", f->path,
			v[i]->object, v[i]->object[0] ? ":" : "", v[i]->name);
		if (v[i]->error)
			fprintf(out, ", not measured: %s",
				text__printable(v[i]->error, why, sizeof(why)));
		fputc('\n', out);
	}
}

void compare_view__plain(const struct ctx *ctx, const struct compare *c)
{
	FILE *out = ctx->out;
	size_t i, k;

	print_lines(out, c->difference, c->n_differences);
	fprintf(out, "OLD is '%s', NEW is '%s'\n", c->old.path, c->new.path);
	fprintf(out, "%-30s %12s %12s %12s   %9s   %s\n", "median, net, per run", "old", "new",
		"difference", "p", "95 % of such intervals hold the median");
	for (i = 0; i < c->n; i++) {
		const struct compare_prog *p = &c->v[i];

		fprintf(out, "\n%s%s%s\n", p->new->object, p->new->object[0] ? ":" : "",
			p->new->name);
		for (k = 0; k < p->n; k++)
			print_metric(out, &p->v[k]);
		if (!p->old->reliable || !p->new->reliable)
			fprintf(out,
				"  unreliable: twice as many runs did not take twice as long in "
				"%s\n",
				p->old->reliable   ? "NEW"
				: p->new->reliable ? "OLD"
						   : "OLD and NEW");
	}
	if (c->n_only_old || c->n_only_new)
		fputc('\n', out);
	print_only(out, &c->old, &c->new, c->only_old, c->n_only_old, "OLD");
	print_only(out, &c->new, &c->old, c->only_new, c->n_only_new, "NEW");
	if (!c->has_threshold)
		return;
	fputc('\n', out);
	for (i = 0; i < c->n; i++)
		for (k = 0; k < c->v[i].n; k++) {
			const struct compare_metric *m = &c->v[i].v[k];

			if (m->slower && m->has_percent)
				fprintf(out, "Slower: %s, %s by %.2f %%\n", c->v[i].new->name,
					m->old.metric->name, m->percent);
			else if (m->slower)
				fprintf(out, "Slower: %s, %s from 0\n", c->v[i].new->name,
					m->old.metric->name);
		}
	if (!c->n_slower)
		fprintf(out, "Nothing got slower by more than %g %%.\n", c->threshold);
}

/* "FILE" without its directory, which all have in common. */
static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void print_change(FILE *out, const struct history *h, const struct history_series *s,
			 const struct statistics_change *c)
{
	double percent;

	fprintf(out, "  %-*s %12.2f -> %.2f %s", NAME_WIDTH, base(h->file[s->file[c->at]].path),
		c->before - s->floor, c->after - s->floor, s->metric->unit);
	if (history__percent(s, c, &percent))
		fprintf(out, " (%+.2f %%)", percent);
	fputs(", p", out);
	print_p(out, 0, c->p);
	fprintf(out, "; the one before: %s", base(h->file[s->file[c->at - 1]].path));
}

void history_view__plain(const struct ctx *ctx, const struct history *h)
{
	size_t i, k, changes = 0, newest = 0;
	FILE *out = ctx->out;

	print_lines(out, h->difference, h->n_differences);
	for (i = 0; i < h->n; i++) {
		const struct history_series *s = &h->v[i];

		if (!s->n_changes && !s->has_newest)
			continue;
		fprintf(out, "%s%s%s, %s:\n", s->prog->object, s->prog->object[0] ? ":" : "",
			s->prog->name, s->metric->name);
		for (k = 0; k < s->n_changes; k++) {
			print_change(out, h, s, &s->change[k]);
			fputc('\n', out);
		}
		changes += s->n_changes;
		newest += s->has_newest;
		if (s->has_newest) {
			print_change(out, h, s, &s->newest);
			fputs("; the newest file alone: measure it again\n", out);
		}
	}
	fprintf(out, "%s%zu files, %zu series (a program and a metric each), %zu change%s",
		changes || newest ? "\n" : "", h->n_files, h->n, changes, changes == 1 ? "" : "s");
	if (newest)
		fprintf(out, ", %zu in the newest file alone", newest);
	fputc('\n', out);
	if (h->n_files < 4)
		fprintf(out,
			"Too few: a change has two files before it and two after, at least.\n");
}
