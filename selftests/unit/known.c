// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The checks of programs with known costs find what they are for: each thing that can be wrong, by
 * itself, makes a result that was right a wrong one.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "known.h"

#define N 100

/* Wrong by more than the clock rounds. */
#define MUCH 10

static void no_tell(const char *fmt, ...)
{
	(void)fmt;
}

static const struct known_family straight = {
	.name = "straight", .rule = KNOWN_STRAIGHT, .insns = {2, 2}};
static const struct known_family skips = {
	.name = "skips", .rule = KNOWN_STRAIGHT, .branches = 1, .skipped = 1};
static const struct known_family number = {.name = "number", .rule = KNOWN_NUMBER, .insns = {3, 3}};
static const struct known_family call = {.name = "call", .rule = KNOWN_CALL};
static const struct known_family deep = {.name = "deep", .rule = KNOWN_DEEP};
static const struct known_family helper = {.name = "helper", .rule = KNOWN_HELPER};
static const struct known_family linear = {.name = "linear", .rule = KNOWN_LINEAR};

/* A result as it has to be: a step of @step, whose image has @insns instructions, @calls and
 * @branches of them. */
static struct known_result right(const struct known_family *f, unsigned int step,
				 unsigned int insns, unsigned int calls, unsigned int branches)
{
	struct known_result r = {.family = f, .n = N, .has_image = true};

	for (unsigned int i = 0; i < KNOWN_SIZES; i++) {
		for (int m = 0; m < KNOWN_METHODS; m++) {
			r.has[m] = true;
			r.cost[m][i] = 70 + 10 * m + step * N * (i + 1);
		}
		r.image[i] = (struct image){
			.bytes = 40 + 4 * insns * N * (i + 1),
			.decoded = true,
			.calls = calls * N * (i + 1),
			.branches = branches * N * (i + 1),
			.n_funcs = 2,
			.to_return = {0, 12},
		};
	}
	return r;
}

static bool passes(const struct known_result *r, bool exact, const char *what)
{
	const struct known k = {.exact = exact};

	if (!known__check(&k, r, ktap_note))
		return true;
	ktap_note("%s: %s: should have passed", r->family->name, what);
	return false;
}

static bool fails(const struct known_result *r, bool exact, const char *what)
{
	const struct known k = {.exact = exact};

	if (known__check(&k, r, no_tell))
		return true;
	ktap_note("%s: %s: should have failed", r->family->name, what);
	return false;
}

static bool test_right(void)
{
	const struct known_result results[] = {
		right(&straight, 2, 2, 0, 0), right(&skips, 4, 5, 0, 1),
		right(&number, 3, 0, 0, 0),   right(&call, 14, 2, 1, 0),
		right(&deep, 12, 0, 0, 0),    right(&helper, 5, 5, 0, 0),
		right(&helper, 12, 13, 0, 1), right(&helper, 70, 5, 1, 0),
		right(&linear, 70, 5, 1, 0),
	};
	bool ok = true;

	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		ok &= passes(&results[i], true, "as it has to be");
	return ok;
}

static bool test_linear(void)
{
	bool ok = true;

	for (int m = 0; m < KNOWN_METHODS; m++) {
		struct known_result r = right(&linear, 5, 5, 1, 0);

		r.cost[m][2] += MUCH;
		ok &= fails(&r, true, "3N steps cost more");
		r.has[m] = false;
		ok &= m == KNOWN_RUN_TIME || passes(&r, true, "by a method that was not used");
	}
	return ok;
}

static bool test_agree(void)
{
	bool ok = true;

	for (int m = 0; m < KNOWN_METHODS; m++) {
		struct known_result r = right(&linear, 5, 5, 1, 0);

		/* Linear all the same. */
		for (unsigned int i = 0; i < KNOWN_SIZES; i++)
			r.cost[m][i] += i * MUCH;
		ok &= fails(&r, true, "a method has another step");
	}
	return ok;
}

static bool test_rule(void)
{
	struct known_result r = right(&straight, 2, 3, 0, 0);
	bool ok = true;

	ok &= fails(&r, true, "a step costs less than its image has");
	r = right(&straight, 3, 3, 0, 0);
	ok &= fails(&r, true, "costs what its image has, but not what is known");
	r = right(&straight, 2, 2, 1, 0);
	ok &= fails(&r, true, "a step calls");
	r = right(&straight, 2, 2, 0, 1);
	ok &= fails(&r, true, "a step branches");
	r = right(&skips, 5, 5, 0, 1);
	ok &= fails(&r, true, "nothing is skipped");
	r = right(&skips, 4, 5, 0, 0);
	ok &= fails(&r, true, "there is no branch");
	r = right(&number, 4, 0, 0, 0);
	ok &= fails(&r, true, "another number");
	r = right(&call, 13, 2, 1, 0);
	ok &= fails(&r, true, "less than caller and callee");
	r = right(&deep, 13, 0, 0, 0);
	ok &= fails(&r, true, "more than a frame");
	r = right(&deep, 12, 0, 0, 0);
	r.image[1].to_return[1] = 0;
	ok &= fails(&r, true, "the function branches");
	r = right(&helper, 6, 5, 0, 0);
	ok &= fails(&r, true, "inlined, but dearer than its image");
	r = right(&helper, 5, 5, 1, 0);
	ok &= fails(&r, true, "called for nothing");
	r = right(&helper, 14, 13, 0, 1);
	ok &= fails(&r, true, "branches cost more than all instructions");
	r = right(&linear, 0, 5, 1, 0);
	ok &= fails(&r, true, "steps for nothing");
	r = right(&linear, 5, 5, 1, 0);
	r.image[2].bytes += 4;
	ok &= fails(&r, true, "the image does not grow evenly");
	return ok;
}

static bool test_noisy(void)
{
	struct known_result r = right(&straight, 2, 2, 0, 0);
	bool ok = true;

	r.cost[KNOWN_TEST_RUN][2] += 4.0 * N;
	ok &= fails(&r, true, "noise in exact time");
	ok &= passes(&r, false, "noise elsewhere");
	r.cost[KNOWN_TEST_RUN][2] += 10.0 * N;
	ok &= fails(&r, false, "methods that do not agree");
	r = right(&straight, 2, 2, 0, 0);
	r.cost[KNOWN_NS][2] = r.cost[KNOWN_NS][0];
	ok &= fails(&r, false, "a method to which steps are free");
	for (int m = 0; m < KNOWN_METHODS; m++)
		r.cost[m][2] = r.cost[m][0] - 1;
	ok &= fails(&r, false, "more steps cost less");
	return ok;
}

int main(void)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} tests[] = {
		{"known: what is right passes", test_right},
		{"known: cost(2N) - cost(N) is cost(3N) - cost(2N)", test_linear},
		{"known: the methods agree", test_agree},
		{"known: the rules hold", test_rule},
		{"known: bounds where there is noise", test_noisy},
	};
	struct ktap k;

	ktap_begin(&k, ARRAY_SIZE(tests));
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		ktap_ok(&k, tests[i].run(), tests[i].name);
	return ktap_end(&k);
}
