// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
	time_t seconds = r->time_ns / 1000000000;
	char a[64], b[64], when[32] = "";
	struct tm tm;

	/* Of many windows, which one is it? */
	if (r->interval && localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), ", until %H:%M:%S", &tm);
	fprintf(out,
		"%s%s %s of this machine%s (%s of one CPU; %u online%s): %llu run%s of %zu "
		"program%s in %.3f s%s\n",
		colour(r, BOLD),
		r->all	 ? "BPF takes"
		: r->own ? "What can be seen of BPF takes"
			 : "What was asked for takes",
		percent(w->cpus * 100 / w->online_cpus, a, sizeof(a)), colour(r, RESET),
		percent(w->cpus * 100, b, sizeof(b)), w->online_cpus,
		w->cpus_changed ? " now, others before" : "", (unsigned long long)w->run_cnt,
		w->run_cnt == 1 ? "" : "s", w->n_ran, w->n_ran == 1 ? "" : "s", w->time_ns / 1e9,
		when);
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
	char comm[4 * sizeof(row->owners->process->comm)], cgroup[4 * PATH_MAX];
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

enum column {
	COL_TYPE,
	COL_RUNS,
	COL_RUNS_PER_S,
	COL_GROSS,
	COL_NET,
	COL_CPU,
	COL_MACHINE,
	COL_MISSED,
	COLUMNS,
};

/* Those between the id and the name; the type is the one that begins on the left. */
static const struct {
	const char *name;
	int width;
} columns[COLUMNS] = {
	[COL_TYPE] = {"type", -22},	   [COL_RUNS] = {"runs", 12},
	[COL_RUNS_PER_S] = {"runs/s", 10}, [COL_GROSS] = {"ns/run", 10},
	[COL_NET] = {"net ns/run", 10},	   [COL_CPU] = {"%CPU", 8},
	[COL_MACHINE] = {"%machine", 8},   [COL_MISSED] = {"missed", 8},
};

#define ID_WIDTH 6
/* What is kept for a name and its marks, if it takes columns that say less. */
#define NAME_ROOM 24

/* The columns for which a screen of that width has no room, a bit each: those that are least missed
 * first, and never what the table is sorted by. */
static unsigned hidden_columns(const struct stats_report *r)
{
	static const struct {
		enum column column;
		int sort;
	} order[] = {
		{COL_TYPE, -1},
		{COL_MISSED, STATS_SORT_MISSED},
		{COL_MACHINE, -1},
		{COL_RUNS, STATS_SORT_RUNS},
		{COL_NET, STATS_SORT_NET},
		{COL_GROSS, STATS_SORT_GROSS},
	};
	unsigned width = ID_WIDTH + 2 + NAME_ROOM, hidden = 0;
	size_t i;

	if (!r->columns)
		return 0;
	for (i = 0; i < COLUMNS; i++)
		width += 1 + abs(columns[i].width);
	for (i = 0; i < sizeof(order) / sizeof(order[0]) && width > r->columns; i++) {
		if (order[i].sort == (int)r->sort)
			continue;
		hidden |= 1u << order[i].column;
		width -= 1 + abs(columns[order[i].column].width);
	}
	return hidden;
}

static void print_cells(FILE *out, unsigned hidden, char text[COLUMNS][32])
{
	unsigned i;

	for (i = 0; i < COLUMNS; i++)
		if (!(hidden & 1u << i))
			fprintf(out, " %*s", columns[i].width, text[i]);
}

static void print_header(FILE *out, const struct stats_report *r, unsigned hidden)
{
	char text[COLUMNS][32];
	unsigned i;

	for (i = 0; i < COLUMNS; i++)
		snprintf(text[i], sizeof(text[i]), "%s", columns[i].name);
	fprintf(out, "%s%*s", colour(r, BOLD), ID_WIDTH, "id");
	print_cells(out, hidden, text);
	fprintf(out, "  name%s\n", colour(r, RESET));
}

static void print_row(FILE *out, const struct stats_report *r, unsigned hidden,
		      const struct stats_view_row *row)
{
	const struct stats_window_row *w = row->window;
	char text[COLUMNS][32], type[32];
	unsigned i;

	for (i = 0; i < COLUMNS; i++)
		snprintf(text[i], sizeof(text[i]), "-");
	snprintf(text[COL_TYPE], sizeof(text[COL_TYPE]), "%s",
		 prog__type_name(row->prog.type, type, sizeof(type)));
	if (!(w->marks & STATS_BACK)) {
		snprintf(text[COL_RUNS], sizeof(text[COL_RUNS]), "%llu",
			 (unsigned long long)w->counters.run_cnt);
		snprintf(text[COL_RUNS_PER_S], sizeof(text[COL_RUNS_PER_S]), "%.1f", w->runs_per_s);
		if (w->counters.run_cnt)
			snprintf(text[COL_GROSS], sizeof(text[COL_GROSS]), "%.1f", w->ns_per_run);
		if (w->counters.run_cnt && r->floor && w->net_is_noise)
			snprintf(text[COL_NET], sizeof(text[COL_NET]), "~0");
		else if (w->counters.run_cnt && r->floor)
			snprintf(text[COL_NET], sizeof(text[COL_NET]), "%.1f", w->net_per_run);
		snprintf(text[COL_CPU], sizeof(text[COL_CPU]), "%.3f", w->cpus * 100);
		snprintf(text[COL_MACHINE], sizeof(text[COL_MACHINE]), "%.3f",
			 w->cpus * 100 / r->window->online_cpus);
		if (r->window->missed_known)
			snprintf(text[COL_MISSED], sizeof(text[COL_MISSED]), "%llu",
				 (unsigned long long)w->counters.recursion_misses);
	}
	fprintf(out, "%*u", ID_WIDTH, row->prog.row.id);
	print_cells(out, hidden, text);
	fprintf(out, "  %s", name(row));
	print_marks(out, r, w->marks, row->blind ? row->blind->kinds : 0);
	fputc('\n', out);
	if (r->owners)
		print_owners(out, row, r->self);
}

static void print_table(FILE *out, const struct stats_report *r)
{
	unsigned hidden = hidden_columns(r);
	bool header = false;
	size_t i;

	for (i = 0; i < r->n_rows; i++) {
		if (!has_row(&r->rows[i]))
			continue;
		if (!header)
			print_header(out, r, hidden);
		header = true;
		print_row(out, r, hidden, &r->rows[i]);
	}
}

/* Those whose zero, or more than that, is not all there is to say. */
static void print_blind(FILE *out, const struct stats_report *r)
{
	bool with_type = !(hidden_columns(r) & 1u << COL_TYPE), header = false;
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
		for (kind = 1; kind <= row->blind->kinds; kind <<= 1) {
			if (!(row->blind->kinds & kind))
				continue;
			fprintf(out, "%*u ", ID_WIDTH, row->prog.row.id);
			if (with_type)
				fprintf(out, "%*s ", columns[COL_TYPE].width,
					prog__type_name(row->prog.type, type, sizeof(type)));
			fprintf(out, "%s: %s\n", name(row),
				blind__reason(row->blind, kind, buf, sizeof(buf)));
		}
	}
}

static void print_rest(FILE *out, const struct stats_report *r)
{
	const char *mark_name, *meaning;
	unsigned seen = 0, i, mark;
	size_t idle = 0, k;
	char buf[128];

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
	if (r->blind_refused)
		fprintf(out,
			"what is not counted (tail calls, replacements, callbacks) is not known of "
			"all: maps and links cannot be looked at: %s%s\n",
			errmsg__errno(r->blind_refused, buf, sizeof(buf)),
			r->blind_refused == -EPERM ? "; it needs CAP_SYS_ADMIN, for example: sudo"
						   : "");
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
