// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "statistics.h"

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void statistics__sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
}

double statistics__median(const double *sorted, size_t n)
{
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* P(B = k) for B binomial (n, 1/2); by logarithms, as n may be large. */
static double binomial_half(size_t n, size_t k)
{
	return exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) - n * log(2));
}

void statistics__median_interval(struct statistics_interval *i, const double *sorted, size_t n,
				 double confidence)
{
	double below = 0; /* P(B < k) */
	size_t k = 1;

	below = binomial_half(n, 0);
	while (k < (n + 1) / 2 && 1 - 2 * (below + binomial_half(n, k)) >= confidence)
		below += binomial_half(n, k++);
	i->low = sorted[k - 1];
	i->high = sorted[n - k];
	i->confidence = fmax(0, 1 - 2 * below);
	i->enough = i->confidence >= confidence;
}

double statistics__smallest_p(size_t n, size_t m)
{
	return fmin(1, 2 * exp(lgamma(n + 1.0) + lgamma(m + 1.0) - lgamma(n + m + 1.0)));
}

struct value {
	double v;
	bool first; /* of the first sample */
};

static int compare_values(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return (x->v > y->v) - (x->v < y->v);
}

/*
 * The share of the divisions whose first sample has a rank sum of at most @sum, and of those that
 * have at least that. Ranks are doubled, so that those of ties are whole. count[k * width + s]:
 * the ways to take k of the values so far, with the sum s.
 */
static int tails(const unsigned *rank2, size_t total, size_t n, size_t sum, double *low,
		 double *high)
{
	size_t width = total * (total + 1) + 1, i, k, s, reach = 0;
	double all = 0, below = 0, above = 0;
	double *count;

	count = calloc((n + 1) * width, sizeof(*count));
	if (!count)
		return -ENOMEM;
	count[0] = 1;
	for (i = 0; i < total; i++) {
		reach += rank2[i];
		for (k = i < n ? i + 1 : n; k; k--)
			for (s = reach; s >= rank2[i]; s--)
				count[k * width + s] += count[(k - 1) * width + s - rank2[i]];
	}
	for (s = 0; s < width; s++) {
		double c = count[n * width + s];

		all += c;
		below += s <= sum ? c : 0;
		above += s >= sum ? c : 0;
	}
	*low = below / all;
	*high = above / all;
	free(count);
	return 0;
}

int statistics__mann_whitney(struct statistics_test *t, const double *x, size_t n, const double *y,
			     size_t m)
{
	size_t total = n + m, i, k, end, sum2 = 0;
	double ties = 0, low, high, variance, z;
	struct value *v;
	unsigned *rank2;
	int rc = 0;

	v = calloc(total, sizeof(*v));
	rank2 = calloc(total, sizeof(*rank2));
	if (!v || !rank2) {
		rc = -ENOMEM;
		goto cleanup;
	}
	for (i = 0; i < total; i++)
		v[i] = (struct value){i < n ? x[i] : y[i - n], i < n};
	qsort(v, total, sizeof(*v), compare_values);
	for (i = 0; i < total; i = end) {
		for (end = i + 1; end < total && v[end].v == v[i].v; end++)
			;
		/* Ranks i + 1 to end: their mean, twice. */
		for (k = i; k < end; k++) {
			rank2[k] = i + 1 + end;
			sum2 += v[k].first ? rank2[k] : 0;
		}
		ties += pow(end - i, 3) - (end - i);
	}
	t->u = (sum2 - (double)n * (n + 1)) / 2;
	t->exact = total <= STATISTICS_EXACT;
	if (t->exact) {
		rc = tails(rank2, total, n, sum2, &low, &high);
		t->p = rc ? 1 : fmin(1, 2 * fmin(low, high));
		goto cleanup;
	}
	variance = (double)n * m / 12 * (total + 1 - ties / ((double)total * (total - 1)));
	z = fmax(0, fabs(t->u - (double)n * m / 2) - 0.5);
	t->p = variance > 0 ? erfc(z / sqrt(2 * variance)) : 1;
cleanup:
	free(v);
	free(rank2);
	return rc;
}

/* M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4: whole degrees
 * of freedom have a sum of finitely many terms. */
double statistics__student_p(double t, unsigned df)
{
	double angle = atan(fabs(t) / sqrt(df)), cos2 = df / (df + t * t), sum = 0, term, inside;
	unsigned i;

	if (isinf(t))
		return 0;
	if (df % 2) {
		term = cos(angle);
		for (i = 1; i + 2 <= df; i += 2) {
			sum += term;
			term *= cos2 * (i + 1) / (i + 2);
		}
		inside = 2 / M_PI * (angle + sin(angle) * sum);
	} else {
		term = 1;
		for (i = 0; i + 2 <= df; i += 2) {
			sum += term;
			term *= cos2 * (i + 1) / (i + 2);
		}
		inside = sin(angle) * sum;
	}
	return fmin(1, fmax(0, 1 - inside));
}

/*
 * Doubtful changes are kept until it is clear what lies between them: a rise that is taken back
 * looks like little while the search sees it as one with what follows.
 */
#define WEAK_P	    0.5
#define MIN_SEGMENT 2

static double mean_of(const double *v, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += v[i];
	return sum / n;
}

static double squares_of(const double *v, size_t n, double mean)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return sum;
}

/* Student's t test, equal variances. What is the same to the last digit is the same: that is what
 * a series looks like where counts are exact. */
static double student(const double *x, size_t n, const double *y, size_t m, double *t)
{
	double a = mean_of(x, n), b = mean_of(y, m);
	double squares = squares_of(x, n, a) + squares_of(y, m, b);
	double difference = fabs(a - b), error = sqrt(squares / (n + m - 2) * (1.0 / n + 1.0 / m));

	/* A sum of equal numbers can be off by its last digits. */
	if (difference <= 1e-12 * fmax(fabs(a), fabs(b)))
		*t = 0;
	else if (error <= 1e-12 * difference)
		*t = INFINITY;
	else
		*t = difference / error;
	return statistics__student_p(*t, n + m - 2);
}

/* The division of @v with the largest energy distance, scaled by the parts' sizes (Matteson and
 * James, (5) and (7), exponent 1), in O(n^2). 0: too short to be divided. */
static size_t best_division(const double *v, size_t n)
{
	double within[2] = {}, between = 0, q, best = -1;
	size_t i, k, at = 0;

	/* All to the right of the division at first; @k moves to the left. */
	for (i = 0; i < n; i++)
		for (k = i + 1; k < n; k++)
			within[1] += fabs(v[i] - v[k]);
	for (k = 0; k + MIN_SEGMENT < n; k++) {
		double left = 0, right = 0, n1 = k + 1, n2 = n - k - 1;

		for (i = 0; i < k; i++)
			left += fabs(v[i] - v[k]);
		for (i = k + 1; i < n; i++)
			right += fabs(v[i] - v[k]);
		within[0] += left;
		within[1] -= right;
		between += right - left;
		if (k + 1 < MIN_SEGMENT)
			continue;
		q = n1 * n2 / (n1 + n2) *
		    (2 * between / (n1 * n2) - 2 * within[0] / (n1 * (n1 - 1)) -
		     2 * within[1] / (n2 * (n2 - 1)));
		if (q > best) {
			best = q;
			at = k + 1;
		}
	}
	return at;
}

static void divide(bool *is_change, const double *v, size_t from, size_t to)
{
	size_t at = best_division(v + from, to - from);
	double t;

	if (!at || student(v + from, at, v + from + at, to - from - at, &t) > WEAK_P)
		return;
	is_change[from + at] = true;
	divide(is_change, v, from, from + at);
	divide(is_change, v, from + at, to);
}

static size_t next_change(const bool *is_change, size_t n, size_t at)
{
	for (at++; at < n && !is_change[at]; at++)
		;
	return at;
}

int statistics__changes(struct statistics_change *changes, const double *v, size_t n, double p)
{
	size_t at, from, to, weakest, k = 0;
	double worst, worst_t, t;
	bool *is_change;

	is_change = calloc(n + 1, sizeof(*is_change));
	if (!is_change)
		return -ENOMEM;
	divide(is_change, v, 0, n);
	/* The weakest one goes, and its neighbours become longer; until all are strong. */
	do {
		worst = p;
		worst_t = INFINITY;
		weakest = 0;
		k = 0;
		for (from = 0, at = next_change(is_change, n, 0); at < n; from = at, at = to) {
			struct statistics_change *c = &changes[k++];

			to = next_change(is_change, n, at);
			c->at = at;
			c->before = mean_of(v + from, at - from);
			c->after = mean_of(v + at, to - at);
			c->p = student(v + from, at - from, v + at, to - at, &t);
			if (c->p > p && (c->p > worst || (c->p == worst && t < worst_t))) {
				worst = c->p;
				worst_t = t;
				weakest = at;
			}
		}
		if (weakest)
			is_change[weakest] = false;
	} while (weakest);
	free(is_change);
	return k;
}

bool statistics__last_differs(struct statistics_change *c, const double *v, size_t from, size_t n,
			      double p)
{
	double t;

	if (n < from + STATISTICS_BEFORE_LAST + 1)
		return false;
	c->at = n - 1;
	c->before = mean_of(v + from, n - 1 - from);
	c->after = v[n - 1];
	c->p = student(v + from, n - 1 - from, v + n - 1, 1, &t);
	return c->p < p;
}
