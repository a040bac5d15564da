// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "stats_view.h"
#include "text.h"

#define BOLD   "\033[1m"
#define YELLOW "\033[33m"
#define RESET  "\033[0m"

static const char *colour(const struct stats_report *r, const char *code)
{
	return r->colour ? code : "";
}

/* Two digits that say something, however small. */
static const char *percent(double v, char *buf, size_t size)
{
	if (v && v < 0.0001)
		snprintf(buf, size, "less than 0.0001 %%");
	else
		snprintf(buf, size, "%.*f %%",
			 !v || v >= 1 ? 1
			 : v >= 0.1   ? 2
			 : v >= 0.01  ? 3
			 : v >= 0.001 ? 4
				      : 5,
			 v);
	return buf;
}

/* A row of its own: it ran, or there is something in it that would be lost in a sum. */
static bool has_row(const struct stats_view_row *row)
{
	const struct stats_window_row *w = row->window;

	return w->counters.run_cnt || w->counters.run_time_ns || w->counters.recursion_misses ||
	       w->marks & (STATS_BACK | STATS_LATE | STATS_GONE);
}

static void print_total(FILE *out, const struct stats_report *r)
{
	const struct stats_window *w = r->window;
	char a[64], b[64];

	fprintf(out,
		"%s%s %s of this machine%s (%s of one CPU; %u online%s): %llu run%s of %zu "
		"program%s in %.3f s\n",
		colour(r, BOLD),
		r->all	 ? "BPF takes"
		: r->own ? "What can be seen of BPF takes"
			 : "What was asked for takes",
		percent(w->cpus * 100 / w->online_cpus, a, sizeof(a)), colour(r, RESET),
		percent(w->cpus * 100, b, sizeof(b)), w->online_cpus,
		w->cpus_changed ? " now, others before" : "", (unsigned long long)w->run_cnt,
		w->run_cnt == 1 ? "" : "s", w->n_ran, w->n_ran == 1 ? "" : "s", w->time_ns / 1e9);
	if (w->switch_was_off)
		fprintf(out, "%sthe statistics were switched off meanwhile: runs are missing%s\n",
			colour(r, YELLOW), colour(r, RESET));
}

static void print_floor(FILE *out, const struct stats_report *r)
{
	if (!r->floor)
		fprintf(out, "net is not known: the floor cannot be measured here\n");
	else
		fprintf(out, "floor %.1f ns a run, p10..p90 %.1f..%.1f; ~0 is within that spread\n",
			r->floor->value[0], r->floor->low[0], r->floor->high[0]);
}

static void print_marks(FILE *out, const struct stats_report *r, unsigned marks, unsigned kinds)
{
	const char *name, *meaning, *separator = " [";
	unsigned i, mark;

	if (!marks && !kinds)
		return;
	fputs(colour(r, YELLOW), out);
	for (i = 0; (name = stats_mark__name(i, &mark, &meaning)); i++) {
		if (!(marks & mark))
			continue;
		fprintf(out, "%s%s", separator, name);
		separator = ", ";
	}
	for (mark = 1; mark <= kinds; mark <<= 1) {
		if (!(kinds & mark))
			continue;
		fprintf(out, "%s%s", separator, blind__name(mark));
		separator = ", ";
	}
	fprintf(out, "]%s", colour(r, RESET));
}

static const char *name(const struct stats_view_row *row)
{
	return row->prog.name[0] ? row->prog.name : "-";
}

static void print_owners(FILE *out, const struct stats_view_row *row, pid_t self)
{
	char comm[128], cgroup[512];
	size_t i, n = 0;

	for (i = 0; i < row->n_owners; i++) {
		const struct process *p = row->owners[i].process;

		if (p->pid == self)
			continue;
		n++;
		fprintf(out, "%24s%s (pid %d)", "", text__printable(p->comm, comm, sizeof(comm)),
			p->pid);
		if (p->container)
			fprintf(out, ", %s container %s", p->runtime ? p->runtime : "in",
				text__printable(p->container, cgroup, sizeof(cgroup)));
		if (p->cgroup)
			fprintf(out, ", cgroup %s",
				text__printable(p->cgroup, cgroup, sizeof(cgroup)));
		fputc('\n', out);
	}
	if (!n)
		fprintf(out, "%24sno process that can be seen has it or a link to it open\n", "");
}

static void print_row(FILE *out, const struct stats_report *r, const struct stats_view_row *row)
{
	const struct stats_window_row *w = row->window;
	char type[32];

	fprintf(out, "%6u %-22s ", row->prog.row.id,
		prog__type_name(row->prog.type, type, sizeof(type)));
	if (w->marks & STATS_BACK) {
		fprintf(out, "%12s %10s %10s %10s %8s %8s %8s", "-", "-", "-", "-", "-", "-", "-");
	} else {
		fprintf(out, "%12llu %10.1f", (unsigned long long)w->counters.run_cnt,
			w->runs_per_s);
		if (w->counters.run_cnt)
			fprintf(out, " %10.1f", w->ns_per_run);
		else
			fprintf(out, " %10s", "-");
		if (!w->counters.run_cnt || !r->floor)
			fprintf(out, " %10s", "-");
		else if (w->net_is_noise)
			fprintf(out, " %10s", "~0");
		else
			fprintf(out, " %10.1f", w->net_per_run);
		fprintf(out, " %8.3f %8.3f", w->cpus * 100, w->cpus * 100 / r->window->online_cpus);
		if (r->window->missed_known)
			fprintf(out, " %8llu", (unsigned long long)w->counters.recursion_misses);
		else
			fprintf(out, " %8s", "-");
	}
	fprintf(out, "  %s", name(row));
	print_marks(out, r, w->marks, row->blind ? row->blind->kinds : 0);
	fputc('\n', out);
	if (r->owners)
		print_owners(out, row, r->self);
}

static void print_table(FILE *out, const struct stats_report *r)
{
	bool header = false;
	size_t i;

	for (i = 0; i < r->n_rows; i++) {
		if (!has_row(&r->rows[i]))
			continue;
		if (!header)
			fprintf(out, "%s%6s %-22s %12s %10s %10s %10s %8s %8s %8s  name%s\n",
				colour(r, BOLD), "id", "type", "runs", "runs/s", "ns/run",
				"net ns/run", "%CPU", "%machine", "missed", colour(r, RESET));
		header = true;
		print_row(out, r, &r->rows[i]);
	}
}

/* Those whose zero, or more than that, is not all there is to say. */
static void print_blind(FILE *out, const struct stats_report *r)
{
	bool header = false;
	char type[32], buf[256];
	unsigned kind;
	size_t i;

	for (i = 0; i < r->n_rows; i++) {
		const struct stats_view_row *row = &r->rows[i];

		if (!row->blind)
			continue;
		if (!header)
			fprintf(out, "not counted, or not in full:\n");
		header = true;
		for (kind = 1; kind <= row->blind->kinds; kind <<= 1)
			if (row->blind->kinds & kind)
				fprintf(out, "%6u %-22s %s: %s\n", row->prog.row.id,
					prog__type_name(row->prog.type, type, sizeof(type)),
					name(row),
					blind__reason(row->blind, kind, buf, sizeof(buf)));
	}
}

static void print_rest(FILE *out, const struct stats_report *r)
{
	const char *mark_name, *meaning;
	unsigned seen = 0, i, mark;
	size_t idle = 0, k;

	for (k = 0; k < r->n_rows; k++) {
		if (has_row(&r->rows[k]))
			seen |= r->rows[k].window->marks;
		else if (!r->rows[k].blind)
			idle++;
	}
	if (idle)
		fprintf(out, "%zu program%s did not run\n", idle, idle == 1 ? "" : "s");
	if (r->all && r->window->unseen)
		fprintf(out, "%llu program%s came and went between two looks, not counted\n",
			(unsigned long long)r->window->unseen, r->window->unseen == 1 ? "" : "s");
	print_blind(out, r);
	for (i = 0; (mark_name = stats_mark__name(i, &mark, &meaning)); i++)
		if (seen & mark)
			fprintf(out, "[%s] %s\n", mark_name, meaning);
	if (r->owners && r->owners->incomplete)
		fprintf(out, "not all processes could be looked at for what they have open\n");
}

void stats_view__plain(FILE *out, const struct stats_report *r)
{
	fputc('\n', out);
	print_table(out, r);
	print_rest(out, r);
	print_floor(out, r);
	print_total(out, r);
}

void stats_view__keys(FILE *out, const struct stats_report *r)
{
	unsigned i;

	fputs("q quit, sort by:", out);
	for (i = 0; i < STATS_SORTS; i++)
		fprintf(out, " %u %s%s%s", i + 1, i == r->sort ? colour(r, BOLD) : "",
			stats_sort__name(i), i == r->sort ? colour(r, RESET) : "");
	fputc('\n', out);
}

void stats_view__screen(FILE *out, const struct stats_report *r)
{
	print_total(out, r);
	print_floor(out, r);
	print_table(out, r);
	print_rest(out, r);
}
