// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "bench_view.h"
#include "statistics.h"

static void print_metric(const struct ctx *ctx, const struct bench *b, const struct bench_metric *m,
			 double *values)
{
	struct statistics_interval i;
	FILE *out = ctx->out;
	double gross;
	unsigned k;

	for (k = 0; k < b->count; k++)
		values[k] = m->v[k].value;
	statistics__sort(values, b->count);
	gross = statistics__median(values, b->count);
	statistics__median_interval(&i, values, b->count, BENCH_CONFIDENCE);
	fprintf(out, "  %-28s %12.2f", m->name, gross);
	if (m->has_floor)
		fprintf(out, " %12.2f %12.2f", m->floor, gross - m->floor);
	else
		fprintf(out, " %12s %12s", "-", "-");
	fprintf(out, "   %.2f..%.2f %s", i.low, i.high, m->unit);
	if (!i.enough)
		fprintf(out, " (%.0f %%: too few)", i.confidence * 100);
	if (m->estimate)
		fputs("   (estimate)", out);
	fputc('\n', out);
	if (m->shared)
		fprintf(out, "  %-28s others ran it all the time: their runs are in this\n", "");
}

void bench_view__plain(const struct ctx *ctx, const struct bench *b, const struct machine *m)
{
	double *values = calloc(b->count, sizeof(*values));
	FILE *out = ctx->out;
	char buf[32];
	size_t i, k;

	if (!values) {
		errmsg__fail(ctx->err, -1, "out of memory");
		return;
	}
	fprintf(out, "%u measurements of each program", b->count);
	if (b->cpu >= 0)
		fprintf(out, ", on CPU %d", b->cpu);
	fprintf(out, "; %s %s", m->kernel, m->arch);
	if (m->cpu[0])
		fprintf(out, ", %s", m->cpu);
	fprintf(out, "\n%-30s %12s %12s %12s   %s\n", "median, per run", "gross", "floor", "net",
		"95 % of such intervals hold the median of gross");
	for (i = 0; i < b->n; i++) {
		const struct bench_prog *p = b->v[i];

		if (p->why.status)
			continue;
		fprintf(out, "\nprog %u %s %s", p->prog.id,
			prog__type_name(p->prog.type, buf, sizeof(buf)), p->prog.name);
		if (p->how <= BENCH_ONCE)
			fprintf(out, ", %llu runs a measurement, returned %u",
				(unsigned long long)p->repeat, p->retval);
		fputc('\n', out);
		for (k = 0; k < p->n_metrics; k++)
			print_metric(ctx, b, &p->metric[k], values);
		if (!bench_prog__reliable(p))
			fprintf(out,
				"  unreliable: twice as many runs took %.2f times as long, not 2\n",
				p->ratio);
	}
	for (i = 0; i < b->n; i++)
		if (b->v[i]->why.status)
			fprintf(out, "\nnot measured: %s\n", b->v[i]->why.text);
	if (b->statistics)
		fprintf(out, "\nThe kernel's statistics were on already, and are in wall_ns.\n");
	free(values);
}
