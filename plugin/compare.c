// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_view.h"
#include "compare.h"

static int add_line(char ***v, size_t *n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int add_line(char ***v, size_t *n, const char *fmt, ...)
{
	char **more, *line;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&line, fmt, ap);
	va_end(ap);
	if (len < 0)
		return -ENOMEM;
	more = realloc(*v, (*n + 1) * sizeof(*more));
	if (!more) {
		free(line);
		return -ENOMEM;
	}
	*v = more;
	more[(*n)++] = line;
	return 0;
}

static void free_lines(char **v, size_t n)
{
	while (n)
		free(v[--n]);
	free(v);
}

static int compare_facts(const struct bench_file *a, const struct bench_file *b, char ***v,
			 size_t *n)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < BENCH_FILE_FACTS && !rc; i++)
		if (strcmp(a->fact[i].value, b->fact[i].value))
			rc = add_line(v, n, "%s: '%s' in '%s', '%s' in '%s'", a->fact[i].key,
				      a->fact[i].value, a->path, b->fact[i].value, b->path);
	return rc;
}

/* Metrics of @p that @other has not, or in another unit. */
static int compare_metrics(struct compare *c, const struct bench_file_prog *p,
			   const struct bench_file *file, const struct bench_file_prog *other,
			   bool units)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < p->n_metrics && !rc; i++) {
		const struct bench_file_metric *m = &p->metric[i];
		const struct bench_file_metric *o = bench_file__metric(other, m->name);

		if (!o)
			rc = add_line(&c->difference, &c->n_differences,
				      "'%s': the metric '%s' is in '%s' only", p->name, m->name,
				      file->path);
		else if (units && strcmp(o->unit, m->unit))
			rc = add_line(&c->difference, &c->n_differences,
				      "'%s': the metric '%s' is in '%s' in '%s', in '%s' in '%s'",
				      p->name, m->name, m->unit, c->old.path, o->unit, c->new.path);
	}
	return rc;
}

/*
 * A floor is that of a machine and a method. Where these are the same, what is different is noise,
 * which must not pass for a difference between the programs: the mean counts for both.
 */
static void floors(const struct compare *c, const struct bench_file_metric *a,
		   const struct bench_file_metric *b, double *floor_a, double *floor_b,
		   double *spread)
{
	*floor_a = a->has_floor ? a->floor : 0;
	*floor_b = b->has_floor ? b->floor : 0;
	*spread = 0;
	if (!a->has_floor || !b->has_floor)
		return;
	*spread = fmax(a->high - a->low, b->high - b->low);
	if (!c->other_machine)
		*floor_a = *floor_b = (a->floor + b->floor) / 2;
}

static void fill_side(struct compare_side *s, const struct bench_file_metric *m, double floor)
{
	s->metric = m;
	s->net = m->median - floor;
	statistics__median_interval(&s->interval, m->sorted, m->n, BENCH_CONFIDENCE);
	s->interval.low -= floor;
	s->interval.high -= floor;
}

static int test_net(struct statistics_test *t, const struct bench_file_metric *a, double floor_a,
		    const struct bench_file_metric *b, double floor_b)
{
	double *v = calloc(a->n + b->n, sizeof(*v));
	size_t i;
	int rc;

	if (!v)
		return -ENOMEM;
	for (i = 0; i < a->n; i++)
		v[i] = a->sorted[i] - floor_a;
	for (i = 0; i < b->n; i++)
		v[a->n + i] = b->sorted[i] - floor_b;
	rc = statistics__mann_whitney(t, v + a->n, b->n, v, a->n);
	free(v);
	return rc;
}

static int compare_metric(struct compare *c, struct compare_metric *r,
			  const struct bench_file_metric *a, const struct bench_file_metric *b)
{
	double floor_a, floor_b, spread, base, difference;
	int rc;

	floors(c, a, b, &floor_a, &floor_b, &spread);
	fill_side(&r->old, a, floor_a);
	fill_side(&r->new, b, floor_b);
	rc = test_net(&r->test, a, floor_a, b, floor_b);
	if (rc)
		return rc;
	r->enough = statistics__smallest_p(a->n, b->n) < COMPARE_ALPHA;
	difference = r->new.net - r->old.net;
	/* A net that is no more than noise is nothing to have percents of. */
	base = r->old.net;
	if (base <= spread) {
		base = a->median;
		r->of_gross = true;
	}
	r->has_percent = base > 0 || fabs(difference) <= 0;
	r->percent = base > 0 ? difference / base * 100 : 0;
	/* Counts can be exact. Times have noise, and what shows as 0.00 % is none to speak of. */
	r->significant = r->test.p < COMPARE_ALPHA &&
			 !(r->has_percent && fabs(r->percent) < 0.005 && !strcmp(a->unit, "ns"));
	r->slower = c->has_threshold && r->significant && difference > 0 &&
		    (!r->has_percent || r->percent > c->threshold);
	c->n_slower += r->slower;
	return 0;
}

static int compare_prog(struct compare *c, const struct bench_file_prog *a,
			const struct bench_file_prog *b)
{
	struct compare_prog *p = &c->v[c->n++];
	const struct bench_file_metric *m;
	size_t i;
	int rc = 0;

	p->old = a;
	p->new = b;
	p->v = calloc(a->n_metrics ? a->n_metrics : 1, sizeof(*p->v));
	if (!p->v)
		return -ENOMEM;
	for (i = 0; i < a->n_metrics && !rc; i++) {
		m = bench_file__metric(b, a->metric[i].name);
		if (m)
			rc = compare_metric(c, &p->v[p->n++], &a->metric[i], m);
	}
	return rc;
}

/* Lines as one text, as long as there is room. */
static const char *join(char *const *v, size_t n, char *buf, size_t size)
{
	size_t i, len = 0;

	buf[0] = '\0';
	for (i = 0; i < n && len + 60 < size; i++)
		len += snprintf(buf + len, size - len, "%s%.200s", i ? "; " : "", v[i]);
	if (i < n && len < size)
		snprintf(buf + len, size - len, "; and %zu more", n - i);
	return buf;
}

static const struct bench_file_prog *
partner(const struct compare *c, const struct bench_file_prog *p, const struct bench_file *in)
{
	const struct bench_file_prog *other;

	/* Two builds may have two file names; that must be meant. */
	other = bench_file__find(in, c->force ? NULL : p->object, p->name, p->nth);
	return other && !other->error && !p->error ? other : NULL;
}

int compare__run(struct compare *c, struct errmsg *err)
{
	const struct bench_file_prog *other;
	char text[1500];
	size_t i;
	int rc;

	c->v = calloc(c->old.n_progs + 1, sizeof(*c->v));
	c->only_old = calloc(c->old.n_progs + 1, sizeof(*c->only_old));
	c->only_new = calloc(c->new.n_progs + 1, sizeof(*c->only_new));
	rc = c->v && c->only_old && c->only_new
		     ? compare_facts(&c->old, &c->new, &c->difference, &c->n_differences)
		     : -ENOMEM;
	c->other_machine = c->n_differences;
	for (i = 0; i < c->old.n_progs && !rc; i++) {
		other = partner(c, &c->old.prog[i], &c->new);
		if (!other) {
			c->only_old[c->n_only_old++] = &c->old.prog[i];
			continue;
		}
		rc = compare_metrics(c, &c->old.prog[i], &c->old, other, true) ?:
		     compare_metrics(c, other, &c->new, &c->old.prog[i], false) ?:
		     compare_prog(c, &c->old.prog[i], other);
	}
	for (i = 0; i < c->new.n_progs && !rc; i++)
		if (!partner(c, &c->new.prog[i], &c->old))
			c->only_new[c->n_only_new++] = &c->new.prog[i];
	if (rc)
		return errmsg__fail(err, rc, "out of memory");
	if (c->n_differences && !c->force)
		return errmsg__usage(err,
				     "'%s' and '%s' differ in more than what was measured: %s; "
				     "to compare them all the same: force",
				     c->old.path, c->new.path,
				     join(c->difference, c->n_differences, text, sizeof(text)));
	if (!c->n)
		return errmsg__usage(err,
				     "'%s' and '%s' have no measured program in common (name and "
				     "object file; with 'force', the name alone)",
				     c->old.path, c->new.path);
	return 0;
}

void compare__close(struct compare *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		free(c->v[i].v);
	free(c->v);
	free(c->only_old);
	free(c->only_new);
	free_lines(c->difference, c->n_differences);
	bench_file__close(&c->old);
	bench_file__close(&c->new);
}

static struct history_series *find_series(struct history *h, const struct bench_file_prog *p,
					  const struct bench_file_metric *m)
{
	struct history_series *v;
	size_t i;

	for (i = 0; i < h->n; i++) {
		v = &h->v[i];
		if (!strcmp(v->prog->name, p->name) && v->prog->nth == p->nth &&
		    !strcmp(v->prog->object, p->object) && !strcmp(v->metric->name, m->name) &&
		    !strcmp(v->metric->unit, m->unit))
			return v;
	}
	v = realloc(h->v, (h->n + 1) * sizeof(*v));
	if (!v)
		return NULL;
	h->v = v;
	v = &h->v[h->n++];
	memset(v, 0, sizeof(*v));
	v->prog = p;
	v->metric = m;
	v->file = calloc(h->n_files, sizeof(*v->file));
	v->value = calloc(h->n_files, sizeof(*v->value));
	v->change = calloc(h->n_files, sizeof(*v->change));
	return v->file && v->value && v->change ? v : NULL;
}

static int add_file(struct history *h, size_t file)
{
	const struct bench_file *f = &h->file[file];
	struct history_series *s;
	size_t i, k;

	for (i = 0; i < f->n_progs; i++)
		for (k = 0; k < f->prog[i].n_metrics; k++) {
			s = find_series(h, &f->prog[i], &f->prog[i].metric[k]);
			if (!s)
				return -ENOMEM;
			s->file[s->n] = file;
			s->value[s->n++] = f->prog[i].metric[k].median;
		}
	return 0;
}

/* One floor for all, so that its noise is in no difference between them. */
static int set_floor(const struct history *h, struct history_series *s)
{
	double *v = calloc(s->n, sizeof(*v));
	const struct bench_file_prog *p;
	size_t i, n = 0;

	if (!v)
		return -ENOMEM;
	for (i = 0; i < s->n; i++) {
		p = bench_file__find(&h->file[s->file[i]], s->prog->object, s->prog->name,
				     s->prog->nth);
		if (p && bench_file__metric(p, s->metric->name)->has_floor)
			v[n++] = bench_file__metric(p, s->metric->name)->floor;
	}
	statistics__sort(v, n);
	s->floor = n == s->n ? statistics__median(v, n) : 0;
	free(v);
	return 0;
}

static int find_changes(const struct history *h, struct history_series *s)
{
	size_t from;
	int n;

	n = statistics__changes(s->change, s->value, s->n, COMPARE_CHANGE_P);
	if (n < 0)
		return n;
	s->n_changes = n;
	from = n ? s->change[n - 1].at : 0;
	s->has_newest =
		s->file[s->n - 1] == h->n_files - 1 &&
		statistics__last_differs(&s->newest, s->value, from, s->n, COMPARE_CHANGE_P);
	return 0;
}

int history__run(struct history *h, struct errmsg *err)
{
	char text[1500];
	size_t i;
	int rc = 0;

	for (i = 1; i < h->n_files && !rc; i++)
		rc = compare_facts(&h->file[i - 1], &h->file[i], &h->difference, &h->n_differences);
	for (i = 0; i < h->n_files && !rc; i++)
		rc = add_file(h, i);
	for (i = 0; i < h->n && !rc; i++)
		rc = set_floor(h, &h->v[i]) ?: find_changes(h, &h->v[i]);
	if (rc)
		return errmsg__fail(err, rc, "out of memory");
	if (h->n_differences && !h->force)
		return errmsg__usage(err,
				     "the files differ in more than what was measured: %s; to "
				     "compare them all the same: force",
				     join(h->difference, h->n_differences, text, sizeof(text)));
	return 0;
}

bool history__percent(const struct history_series *s, const struct statistics_change *c,
		      double *percent)
{
	double base = c->before - s->floor;

	if (base <= fmax(0, s->metric->has_floor ? s->metric->high - s->metric->low : 0))
		base = c->before;
	if (base <= 0)
		return false;
	*percent = (c->after - c->before) / base * 100;
	return true;
}

void history__close(struct history *h)
{
	size_t i;

	for (i = 0; i < h->n; i++) {
		free(h->v[i].file);
		free(h->v[i].value);
		free(h->v[i].change);
	}
	free(h->v);
	free_lines(h->difference, h->n_differences);
	for (i = 0; i < h->n_files; i++)
		bench_file__close(&h->file[i]);
	free(h->file);
}
