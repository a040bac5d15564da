/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_STATISTICS_H
#define BPFCOST_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Statistics of measurements, which assume nothing of their distribution. All values are finite.
 * (Documentation/compare.rst says why this is no library's.)
 */

/* Sorts, the smallest first. */
void statistics__sort(double *v, size_t n);

/* The median of @sorted; of an even number the mean of the two in the middle. @n is not 0. */
double statistics__median(const double *sorted, size_t n);

/* A confidence interval of a median. */
struct statistics_interval {
	double low, high;
	double confidence; /* from 0 to 1: how often such an interval holds the median, at least */
	bool enough;	   /* as often as was asked for */
};

/*
 * The interval of the median between two of the @sorted values themselves, for any continuous
 * distribution: from the k-th smallest to the k-th largest, with the largest k for which the
 * confidence 1 - 2 P(B < k), B binomial (n, 1/2), is not below @confidence. (W. J. Conover,
 * Practical Nonparametric Statistics, 3rd ed., 3.2.) Where there are too few, all of them. @n is
 * not 0.
 */
void statistics__median_interval(struct statistics_interval *i, const double *sorted, size_t n,
				 double confidence);

/* Up to this many values in both samples together the test is exact: their number of divisions in
 * two is below 2^53, so that doubles count them without error. */
#define STATISTICS_EXACT 56

/* What the Mann-Whitney U test says of two samples. */
struct statistics_test {
	double u; /* pairs in which the first sample's value is larger; an equal pair is half one */
	double p; /* two-sided */
	bool exact;
};

/*
 * The two-sided Mann-Whitney U test. With @n + @m up to STATISTICS_EXACT, p is exact, also with
 * ties: of all divisions of the values at hand in two such samples (the conditional permutation
 * distribution, counted by dynamic programming) it is twice the share of those that are at least
 * as far out on the same side. Else it is the normal approximation with corrections for continuity
 * and ties (E. L. Lehmann, Nonparametrics, 1.5). @n and @m are not 0. -ENOMEM.
 */
int statistics__mann_whitney(struct statistics_test *t, const double *x, size_t n, const double *y,
			     size_t m);

/* The smallest p that so many values can give, however different the samples are. */
double statistics__smallest_p(size_t n, size_t m);

/* P(|T| >= |t|) of Student's distribution with @df degrees of freedom, which is not 0. */
double statistics__student_p(double t, unsigned df);

/* A place where a series changes. */
struct statistics_change {
	size_t at; /* the first value after the change */
	double p;  /* of a t test of the values since the change before and until the next one */
	double before, after; /* the means of these */
};

/*
 * Finds change points in a series: the hierarchical divisive search for the largest energy distance
 * between what is before and after (E-divisive: D. S. Matteson, N. A. James, A Nonparametric
 * Approach for Multiple Change Point Analysis of Multivariate Data, JASA 109, 2014), with Student's
 * t test in the place of permutations, and doubtful points kept at first and judged between their
 * neighbours at last (M. Fleming, P. Kolaczkowski and others, Hunter: Using Change Point Detection
 * to Hunt for Performance Regressions, ICPE 2023). A part has two values at least, so that the last
 * value alone is no change yet.
 *
 * @changes has room for @n. Returns how many there are, in order, or -ENOMEM.
 */
int statistics__changes(struct statistics_change *changes, const double *v, size_t n, double p);

/* So many values it takes to say of one more that it is another. */
#define STATISTICS_BEFORE_LAST 4

/*
 * Whether the last value differs from those from @from on, which are all since the change before:
 * Student's t test of one value against the others has a p below @p. That is less than a change:
 * what one file has may be a mishap, and is not in it again.
 */
bool statistics__last_differs(struct statistics_change *c, const double *v, size_t from, size_t n,
			      double p);

#endif
