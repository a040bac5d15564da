// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "bench_view.h"

/* Without what would end a line, and the @other characters, which would end a field or a name. */
static void print_word(FILE *out, const char *word, const char *other)
{
	for (; *word; word++)
		fputc((unsigned char)*word < ' ' || *word == 0x7f || strchr(other, *word) ? '_'
											  : *word,
		      out);
}

/* Go's names for units; another one is that of the metric. */
static void print_unit(FILE *out, const char *metric)
{
	static const char *const names[][2] = {
		{"instructions", "insns"},
		{"run_time_ns", "run-ns"},
		{"wall_ns", "wall-ns"},
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(metric, names[i][0]))
			metric = names[i][1];
	/* No blanks in a unit, and a slash of its own would be a quotient. */
	print_word(out, metric, " /");
	fputs("/op", out);
}

/* What a run takes: by entry and exit programs, by the kernel's statistics, or by the clock. */
static const struct bench_metric *time_of(const struct bench_prog *p)
{
	static const char *const names[] = {"ns", "run_time_ns", "wall_ns"};
	size_t i, k;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (k = 0; k < p->n_metrics; k++)
			if (!strcmp(p->metric[k].name, names[i]))
				return &p->metric[k];
	return NULL;
}

static double net(const struct bench_metric *m, unsigned i)
{
	return m->v[i].value - (m->has_floor ? m->floor : 0);
}

/* As go test does it: the second one of a name is NAME#01, and one CPU is not said. */
static void print_name(FILE *out, const struct bench *b, size_t k, unsigned n_cpus)
{
	const char *name = b->v[k]->prog.name;
	size_t i, nth = 0;

	for (i = 0; i < k; i++)
		nth += !strcmp(b->v[i]->prog.name, name);
	fputs("BenchmarkBPF/", out);
	print_word(out, name, " -/#");
	if (nth)
		fprintf(out, "#%02zu", nth);
	if (n_cpus > 1)
		fprintf(out, "-%u", n_cpus);
}

static void print_line(FILE *out, const struct bench *b, size_t at, unsigned n_cpus, unsigned i)
{
	const struct bench_prog *p = b->v[at];
	const struct bench_metric *time = time_of(p);
	size_t k;

	print_name(out, b, at, n_cpus);
	fprintf(out, " %10llu", (unsigned long long)(time ? time->v[i].runs : 0));
	if (time)
		fprintf(out, " %12.2f ns/op", net(time, i));
	for (k = 0; k < p->n_metrics; k++) {
		if (&p->metric[k] == time)
			continue;
		fprintf(out, " %12.2f ", net(&p->metric[k], i));
		print_unit(out, p->metric[k].name);
	}
	fputc('\n', out);
}

void bench_view__go(const struct ctx *ctx, const struct bench *b, const struct machine *m)
{
	FILE *out = ctx->out;
	unsigned i;
	size_t k;

	fputs("goos: linux\n", out);
	fprintf(out, "goarch: %s\n",
		!strcmp(m->arch, "x86_64")    ? "amd64"
		: !strcmp(m->arch, "aarch64") ? "arm64"
					      : m->arch);
	if (b->object_name) {
		fputs("pkg: ", out);
		print_word(out, b->object_name, "");
		fputc('\n', out);
	}
	if (m->cpu[0])
		fprintf(out, "cpu: %s\n", m->cpu);
	fprintf(out, "kernel: %s\n", m->kernel);
	/* Samples of one benchmark are lines of one name, in the order in which they were taken. */
	for (i = 0; i < b->count; i++)
		for (k = 0; k < b->n; k++)
			if (!b->v[k]->why.status)
				print_line(out, b, k, m->n_online, i);
	for (k = 0; k < b->n; k++) {
		if (b->v[k]->why.status)
			note(ctx, "not measured: %s", b->v[k]->why.text);
		else if (!bench_prog__reliable(b->v[k]))
			note(ctx,
			     "unreliable: %s: twice as many runs took %.2f times as long, not 2",
			     b->v[k]->prog.name, b->v[k]->ratio);
	}
}
