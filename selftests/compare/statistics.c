// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The statistics of comparisons, against numbers of R 4.2.2 and SciPy 1.10.1 (the commands are
 * beside them), and by simulation, always of the same pseudo-random numbers.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "ktap.h"
#include "statistics.h"

#define ALPHA  0.05
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static bool near(const char *what, double seen, double expected, double tolerance)
{
	if (fabs(seen - expected) <= tolerance * fmax(1e-300, fabs(expected)))
		return true;
	ktap_note("%s: %.15g, expected %.15g", what, seen, expected);
	return false;
}

static bool test_is(const char *what, const double *x, size_t n, const double *y, size_t m,
		    double u, double p, bool exact)
{
	struct statistics_test t, back;

	if (statistics__mann_whitney(&t, x, n, y, m) || statistics__mann_whitney(&back, y, m, x, n))
		return false;
	if (t.exact != exact)
		ktap_note("%s: exact is %d", what, t.exact);
	return near(what, t.u, u, 1e-12) && near(what, t.p, p, 1e-12) &&
	       near("the other way round", back.u, n * m - u, 1e-12) &&
	       near("the other way round", back.p, p, 1e-12) && (t.exact == exact);
}

static bool test_median(void)
{
	double v[] = {3, 1, 2, 10};
	double one[] = {7};

	statistics__sort(v, 4);
	return near("of 4", statistics__median(v, 4), 2.5, 0) &&
	       near("of 3", statistics__median(v, 3), 2, 0) &&
	       near("of 1", statistics__median(one, 1), 7, 0);
}

/* R: k <- qbinom(.025, n, .5); 1 - 2 * pbinom(k - 1, n, .5) */
static bool test_interval(void)
{
	static const struct {
		size_t n, k;
		double confidence;
	} rows[] = {
		{6, 1, 0.96875},
		{10, 2, 0.978515625},
		{15, 4, 0.96484375},
		{20, 6, 0.958610534667969},
		{30, 10, 0.957226054742932},
		{50, 18, 0.967160862435731},
	};
	struct statistics_interval i;
	double v[50];
	bool ok = true;
	size_t k;

	for (k = 0; k < 50; k++)
		v[k] = k + 1;
	for (k = 0; k < LEN(rows); k++) {
		statistics__median_interval(&i, v, rows[k].n, 0.95);
		ok &= near("low", i.low, rows[k].k, 0) &&
		      near("high", i.high, rows[k].n + 1 - rows[k].k, 0) &&
		      near("confidence", i.confidence, rows[k].confidence, 1e-12) && i.enough;
	}
	/* 1 - 2 / 2^5 */
	statistics__median_interval(&i, v, 5, 0.95);
	ok &= near("low of 5", i.low, 1, 0) && near("high of 5", i.high, 5, 0) &&
	      near("confidence of 5", i.confidence, 0.9375, 1e-12) && !i.enough;
	statistics__median_interval(&i, v, 1, 0.95);
	return ok && near("low of 1", i.low, 1, 0) && near("high of 1", i.high, 1, 0) &&
	       !i.enough && i.confidence < 1e-12;
}

static bool test_exact(void)
{
	/* The examples of R's ?wilcox.test (depression of ocean fish: Hollander, Wolfe):
	 * wilcox.test(x, y) */
	static const double x[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
	static const double y[] = {1.15, 0.88, 0.90, 0.74, 1.21};
	/* and of scipy.stats.mannwhitneyu: mannwhitneyu(males, females, method="exact") */
	static const double males[] = {19, 22, 16, 29, 24}, females[] = {20, 11, 17, 12};
	double v[STATISTICS_EXACT];
	size_t i;

	for (i = 0; i < LEN(v); i++)
		v[i] = i;
	return test_is("R", x, 10, y, 5, 35, 0.254412254412254, true) &&
	       test_is("SciPy", males, 5, females, 4, 17, 1.0 / 9, true) &&
	       /* R: wilcox.test(1:10, 11:20)$p.value, 1:4 and 5:8, 1:3 and 4:6;
		* wilcox.test(1:28, 29:56, exact = TRUE) */
	       test_is("10 and 10 apart", v, 10, v + 10, 10, 0, 1.0825088224469e-05, true) &&
	       test_is("4 and 4 apart", v, 4, v + 4, 4, 0, 0.0285714285714286, true) &&
	       test_is("3 and 3 apart", v, 3, v + 3, 3, 0, 0.1, true) &&
	       test_is("28 and 28 apart", v, 28, v + 28, 28, 0, 2.61482664732334e-16, true) &&
	       near("smallest p of 10 and 10", statistics__smallest_p(10, 10), 1.0825088224469e-05,
		    1e-9) &&
	       near("smallest p of 3 and 3", statistics__smallest_p(3, 3), 0.1, 1e-9) &&
	       near("smallest p of 1 and 1", statistics__smallest_p(1, 1), 1, 1e-9);
}

/* SciPy: permutation_test((x, y), lambda x, y, axis: mannwhitneyu(x, y, axis=axis,
 * method="asymptotic")[0], vectorized=True, n_resamples=numpy.inf).pvalue */
static bool test_ties(void)
{
	static const double a[] = {1, 1, 2, 3, 3, 3}, b[] = {2, 3, 3, 4, 5, 5, 5};
	static const double c[] = {121, 121, 121, 121, 121, 122};
	static const double d[] = {121, 121, 122, 122, 122, 122, 122};
	static const double e[] = {5, 5, 5, 6}, f[] = {5, 6, 6, 6, 6};
	static const double g[] = {1, 1, 1, 1, 1, 9, 9}, h[] = {1, 9, 9};
	static const double same[] = {1, 1, 1, 1};

	return test_is("ties", a, 6, b, 7, 6.5, 0.04079254079254079, true) &&
	       test_is("two values", c, 6, d, 7, 9.5, 0.155011655011655, true) &&
	       test_is("few", e, 4, f, 5, 4.5, 1.0 / 3, true) &&
	       test_is("7 and 3", g, 7, h, 3, 6.5, 2.0 / 3, true) &&
	       test_is("all the same", same, 4, same, 4, 8, 1, true);
}

static bool test_normal(void)
{
	/* The data of R's example in ?wilcox.test: airquality$Ozone in Month 5 and 8, each value twice
	 * to be above STATISTICS_EXACT. R: wilcox.test(c(may, may), c(august, august),
	 * exact = FALSE) */
	static const double may[] = {41, 36, 12, 18, 28, 23, 19, 8, 7,	16, 11, 14,  18,
				     14, 34, 6,	 30, 11, 1,  11, 4, 32, 23, 45, 115, 37};
	static const double august[] = {39, 9,	16, 78, 35, 66, 122, 89,  110, 44, 28,	65, 22,
					59, 23, 31, 44, 21, 9,	45,  168, 73,  76, 118, 84, 85};
	/* R: wilcox.test((1:30) * 7, (1:30) * 11 + 4.5, exact = FALSE) */
	double x[30], y[30], same[60];
	double may2[52], august2[52];
	size_t i;

	for (i = 0; i < 30; i++) {
		x[i] = (i + 1) * 7;
		y[i] = (i + 1) * 11 + 4.5;
	}
	for (i = 0; i < 60; i++)
		same[i] = 5;
	for (i = 0; i < 52; i++) {
		may2[i] = may[i % 26];
		august2[i] = august[i % 26];
	}
	return test_is("no ties", x, 30, y, 30, 269, 0.00761706430624423, false) &&
	       test_is("all the same", same, 30, same + 30, 30, 450, 1, false) &&
	       test_is("ties", may2, 52, august2, 52, 510, 4.41831086135825e-08, false);
}

/* R: 2 * pt(-t, df), and t.test(extra ~ group, data = sleep, var.equal = TRUE) */
static bool test_student(void)
{
	return near("t 2.228139, 10", statistics__student_p(2.228139, 10), 0.0499999874528825,
		    1e-11) &&
	       near("t 1, 1", statistics__student_p(1, 1), 0.5, 1e-12) &&
	       near("t -3.5, 7", statistics__student_p(-3.5, 7), 0.00999304088188554, 1e-11) &&
	       near("t 2.5, 2", statistics__student_p(2.5, 2), 0.129611720221511, 1e-11) &&
	       near("t 12.7, 1", statistics__student_p(12.7062047, 1), 0.0500000001417659, 1e-11) &&
	       near("sleep", statistics__student_p(-1.860813467487, 18), 0.0791867142159, 1e-9) &&
	       near("t 0", statistics__student_p(0, 5), 1, 1e-12) &&
	       /* The difference of nearly equal numbers: no more digits than that. */
	       (fabs(statistics__student_p(10, 48) - 2.53290756773512e-13) < 1e-15);
}

/* splitmix64 (S. Vigna, public domain), and Box-Muller's normal numbers of it. */
static uint64_t next(uint64_t *seed)
{
	uint64_t z = (*seed += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static double uniform(uint64_t *seed)
{
	return ((next(seed) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *seed)
{
	double r = sqrt(-2 * log(uniform(seed)));

	return r * cos(2 * M_PI * uniform(seed));
}

enum shape { NORMAL, SKEWED, COUNTS };

static double draw(enum shape shape, uint64_t *seed)
{
	double v = normal(seed);

	switch (shape) {
	case SKEWED: /* as times are: never much faster, at times much slower */
		return exp(v);
	case COUNTS: /* many ties */
		return floor(2 * v);
	default:
		return v;
	}
}

/* How many of @times comparisons find a difference. */
static double found(enum shape shape, size_t n, double mean, double sd, double factor,
		    unsigned times)
{
	struct statistics_test t;
	double x[100], y[100];
	uint64_t seed = 1;
	unsigned i, found = 0;
	size_t k;

	for (i = 0; i < times; i++) {
		for (k = 0; k < n; k++) {
			x[k] = mean + sd * draw(shape, &seed);
			y[k] = (mean + sd * draw(shape, &seed)) * factor;
		}
		if (statistics__mann_whitney(&t, x, n, y, n))
			return -1;
		found += t.p < ALPHA;
	}
	return (double)found / times;
}

/*
 * An exact test of so few values cannot be wrong in exactly 5 %: with 10 and 10 there is a U for
 * 4.33 % and one for 5.24 % (R: 2 * pwilcox(23:24, 10, 10)). Three standard deviations of a share
 * of 10,000 are 0.65 %. Ties make the steps wider, downwards only.
 */
static bool test_false_alarms(void)
{
	static const struct {
		enum shape shape;
		size_t n;
		double low, high;
	} rows[] = {
		{NORMAL, 10, 0.037, 0.050},  {SKEWED, 10, 0.037, 0.050},
		{COUNTS, 10, 0.030, 0.0565}, {NORMAL, 28, 0.037, 0.063},
		{NORMAL, 40, 0.043, 0.0565}, {COUNTS, 40, 0.043, 0.0565},
	};
	bool ok = true;
	double share;
	size_t i;

	for (i = 0; i < LEN(rows); i++) {
		/* What takes long takes fewer. */
		share = found(rows[i].shape, rows[i].n, 1000, 10, 1,
			      rows[i].n == 28 ? 2500 : 10000);
		if (share >= rows[i].low && share <= rows[i].high)
			continue;
		ktap_note("distribution %d, %zu and %zu: %.4f false alarms", rows[i].shape,
			  rows[i].n, rows[i].n, share);
		ok = false;
	}
	return ok;
}

static bool test_power(void)
{
	double share = found(NORMAL, 10, 1000, 10, 1.03, 10000);

	if (share > 0.95)
		return true;
	ktap_note("%.4f of slowdowns by 3 %% found", share);
	return false;
}

#define P_CHANGE 0.001

struct step {
	size_t n;
	double level;
};

/* Finds in a series of these steps, with so much noise, the changes at the steps' ends, give or
 * take @slack. */
static bool finds(const char *what, const struct step *steps, size_t n_steps, double noise,
		  size_t slack, uint64_t seed)
{
	struct statistics_change changes[200];
	size_t n = 0, i, k, at = 0;
	double v[200];
	int found;

	for (i = 0; i < n_steps; i++)
		for (k = 0; k < steps[i].n; k++)
			v[n++] = steps[i].level + (noise > 0 ? noise * normal(&seed) : 0);
	found = statistics__changes(changes, v, n, P_CHANGE);
	if (found != (int)n_steps - 1) {
		if (noise <= 0)
			ktap_note("%s: %d changes, expected %zu", what, found, n_steps - 1);
		return false;
	}
	for (i = 0; i + 1 < n_steps; i++) {
		at += steps[i].n;
		if (changes[i].at + slack < at || changes[i].at > at + slack) {
			if (noise <= 0)
				ktap_note("%s: a change at %zu, expected at %zu", what,
					  changes[i].at, at);
			return false;
		}
		if (noise <= 0 && (!near("before", changes[i].before, steps[i].level, 1e-12) ||
				   !near("after", changes[i].after, steps[i + 1].level, 1e-12)))
			return false;
	}
	return true;
}

static bool test_changes_exact(void)
{
	static const struct step one[] = {{3, 121}, {2, 122}}, none[] = {{30, 121}};
	static const struct step two[] = {{2, 121}, {2, 122}, {2, 121}};
	static const struct step hill[] = {{10, 100}, {5, 110}, {10, 100}};
	static const struct step stairs[] = {{10, 100}, {10, 101}, {10, 102}, {10, 50}};
	static const struct step fraction[] = {{7, 0.1}, {5, 0.3}}, last[] = {{9, 121}};
	struct statistics_change c[10];
	double v[10];
	size_t i;

	for (i = 0; i < 10; i++)
		v[i] = i < 9 ? 121 : 122;
	return finds("none", none, 1, 0, 0, 0) && finds("one", one, 2, 0, 0, 0) &&
	       finds("two", two, 3, 0, 0, 0) && finds("hill", hill, 3, 0, 0, 0) &&
	       finds("stairs", stairs, 4, 0, 0, 0) && finds("fractions", fraction, 2, 0, 0, 0) &&
	       finds("short", last, 1, 0, 0, 0) &&
	       /* The last one alone may be a mishap; and too short to have any. */
	       (statistics__changes(c, v, 10, P_CHANGE) == 0) &&
	       (statistics__changes(c, v + 7, 3, P_CHANGE) == 0) &&
	       (statistics__changes(c, v, 1, P_CHANGE) == 0) &&
	       (statistics__changes(c, v, 0, P_CHANGE) == 0);
}

/* 1 % noise, steps of 5 % and more. */
static bool test_changes_noisy(void)
{
	static const struct step one[] = {{25, 1000}, {25, 1050}};
	static const struct step hill[] = {{20, 1000}, {8, 1100}, {20, 1000}};
	static const struct step stairs[] = {{20, 1000}, {15, 1050}, {15, 1150}, {20, 1000}};
	unsigned seed, ok[3] = {};

	for (seed = 1; seed <= 200; seed++) {
		ok[0] += finds("one", one, 2, 10, 1, seed);
		ok[1] += finds("hill", hill, 3, 10, 1, seed);
		ok[2] += finds("stairs", stairs, 4, 10, 1, seed);
	}
	ktap_note("of 200 series each, with no change more: one %u, hill %u, stairs %u", ok[0],
		  ok[1], ok[2]);
	return ok[0] >= 180 && ok[1] >= 180 && ok[2] >= 180;
}

/* In how many series without a change one is found. */
static bool test_changes_false(void)
{
	struct statistics_change changes[100];
	uint64_t seed = 1;
	double v[100];
	unsigned i, k, n, alarms = 0;

	for (i = 0; i < 1000; i++) {
		n = 10 + i % 91;
		for (k = 0; k < n; k++)
			v[k] = 1000 + 10 * normal(&seed);
		alarms += statistics__changes(changes, v, n, P_CHANGE) > 0;
	}
	if (alarms <= 50)
		return true;
	ktap_note("%u of 1000 series without a change have one", alarms);
	return false;
}

static bool test_last(void)
{
	static const double counts[] = {121, 121, 121, 121, 122};
	/* R: t.test(v[1:6], v[7], var.equal = TRUE)$p.value, of v with 1010 and 1003 at the end */
	static const double far[] = {1000, 1001, 999, 1000.5, 999.5, 1000, 1010};
	static const double close[] = {1000, 1001, 999, 1000.5, 999.5, 1000, 1003};
	struct statistics_change c;
	unsigned i, k, alarms = 0, seen = 0;
	uint64_t seed = 1;
	double v[30];

	if (!statistics__last_differs(&c, counts, 0, 5, P_CHANGE) || c.at != 4 || c.p > 0 ||
	    !near("before", c.before, 121, 0) || !near("after", c.after, 122, 0))
		return false;
	/* Too few before it; the same; those of before a change do not count. */
	if (statistics__last_differs(&c, counts, 1, 5, P_CHANGE) ||
	    statistics__last_differs(&c, counts, 0, 4, P_CHANGE) ||
	    statistics__last_differs(&c, counts, 5, 5, P_CHANGE))
		return false;
	if (!statistics__last_differs(&c, far, 0, 7, P_CHANGE) ||
	    !near("p of 1010", c.p, 4.6379762289044e-05, 1e-9) ||
	    statistics__last_differs(&c, close, 0, 7, P_CHANGE) ||
	    !near("p of 1003", c.p, 0.011093407615275, 1e-9))
		return false;
	/* One in a thousand, whatever is before it; and 5 % at 1 % noise. */
	for (i = 0; i < 20000; i++) {
		unsigned n = 5 + i % 26;

		for (k = 0; k < n; k++)
			v[k] = 1000 + 10 * normal(&seed);
		alarms += statistics__last_differs(&c, v, 0, n, P_CHANGE);
		for (k = 0; k < 30; k++)
			v[k] = (k < 29 ? 1000 : 1050) + 10 * normal(&seed);
		seen += statistics__last_differs(&c, v, 0, 30, P_CHANGE);
	}
	ktap_note("the last one: %u of 20000 alarms are false; of 20000 true ones, %u are seen",
		  alarms, seen);
	return alarms >= 5 && alarms <= 40 && seen >= 15000;
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 12);
	ktap_ok(&k, test_median(), "the median");
	ktap_ok(&k, test_interval(), "the median's confidence interval");
	ktap_ok(&k, test_exact(), "Mann-Whitney, exact");
	ktap_ok(&k, test_ties(), "Mann-Whitney, exact, with ties");
	ktap_ok(&k, test_normal(), "Mann-Whitney, of many");
	ktap_ok(&k, test_student(), "Student's distribution");
	ktap_ok(&k, test_false_alarms(), "about 5 % of equal distributions differ at 0.05");
	ktap_ok(&k, test_power(), "3 % at 1 % noise are found in more than 95 %");
	ktap_ok(&k, test_changes_exact(), "change points of counts");
	ktap_ok(&k, test_changes_noisy(), "change points in noise");
	ktap_ok(&k, test_changes_false(), "no change points where there are none");
	ktap_ok(&k, test_last(), "the last value alone");
	return ktap_end(&k);
}
