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
static const struct known_family loop = {.name = "loop", .rule = KNOWN_LOOP, .insns = {3, 3}};
static const struct known_family loops = {.name = "loops", .rule = KNOWN_LOOP};
static const struct known_family tail = {.name = "tail", .rule = KNOWN_TAIL};
static const struct known_family finds = {.name = "finds", .rule = KNOWN_HELPER, .skipped = 1};
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
			.insns = 10 + insns * N * (i + 1),
			.calls = calls * N * (i + 1),
			.branches = branches * N * (i + 1),
			.n_funcs = 2,
			.to_return = {0, 12},
		};
	}
	return r;
}

/* Another one, of which the program's loop, or the tail call, has so many instructions. */
static struct known_result with(struct known_result r, unsigned int insns, unsigned int calls)
{
	for (unsigned int i = 0; i < KNOWN_SIZES; i++) {
		r.image[i].loop = insns;
		r.image[i].loop_calls = calls;
	}
	r.stage.tail_call = r.family == &tail ? insns : 0;
	return r;
}

/* A loop that calls functions of the kernel's. */
static struct known_result kernel_loop(unsigned int step, unsigned int insns)
{
	struct known_result r = with(right(&loops, step, 0, 0, 0), insns, 1);

	for (unsigned int i = 0; i < KNOWN_SIZES; i++)
		r.image[i].n_funcs = 1;
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
		right(&straight, 2, 2, 0, 0),
		right(&skips, 4, 5, 0, 1),
		with(right(&loop, 3, 0, 0, 0), 3, 0),
		right(&call, 14, 2, 1, 0),
		with(right(&loops, 19, 0, 0, 0), 7, 1),
		kernel_loop(16, 7),
		with(right(&loops, 40, 0, 1, 0), 0, 0),
		with(right(&tail, 30, 0, 0, 0), 30, 0),
		right(&finds, 12, 13, 0, 2),
		right(&finds, 13, 13, 0, 0),
		right(&finds, 30, 13, 1, 0),
		right(&deep, 12, 0, 0, 0),
		right(&helper, 5, 5, 0, 0),
		right(&helper, 12, 13, 0, 1),
		right(&helper, 70, 5, 1, 0),
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
	r = with(right(&loop, 4, 0, 0, 0), 4, 0);
	ok &= fails(&r, true, "another number");
	r = with(right(&loop, 3, 0, 0, 0), 4, 0);
	ok &= fails(&r, true, "another number in the image");
	r = with(right(&loops, 18, 0, 0, 0), 7, 1);
	ok &= fails(&r, true, "less than the loop and its function");
	r = kernel_loop(7, 7);
	ok &= fails(&r, true, "a call in a loop for nothing");
	r = with(right(&loops, 19, 0, 0, 0), 7, 1);
	r.image[1].to_return[1] = 0;
	ok &= fails(&r, true, "the loop's function branches");
	r = with(right(&tail, 31, 0, 0, 0), 30, 0);
	ok &= fails(&r, true, "a tail call takes more than its image has");
	r = with(right(&tail, 31, 0, 0, 0), 0, 0);
	ok &= fails(&r, true, "no tail call in the image");
	r = right(&finds, 13, 13, 0, 2);
	ok &= fails(&r, true, "nothing is skipped in an inlined helper");
	r = right(&finds, 12, 13, 0, 0);
	ok &= fails(&r, true, "something is, without a branch");
	r = right(&call, 13, 2, 1, 0);
	ok &= fails(&r, true, "less than caller and callee");
	r = right(&deep, 13, 0, 0, 0);
	ok &= fails(&r, true, "more than a frame");
	r = right(&deep, 12, 0, 0, 0);
	r.image[1].to_return[1] = 0;
	ok &= fails(&r, true, "the function branches");
	r.image[1].thunks = 1;
	ok &= passes(&r, true, "the function returns by a thunk");
	r = right(&helper, 6, 5, 0, 0);
	ok &= fails(&r, true, "inlined, but dearer than its image");
	r = right(&helper, 5, 5, 1, 0);
	ok &= fails(&r, true, "called for nothing");
	r = right(&helper, 14, 13, 0, 1);
	ok &= fails(&r, true, "branches cost more than all instructions");
	r = right(&linear, 0, 5, 1, 0);
	ok &= fails(&r, true, "steps for nothing");
	r = right(&linear, 5, 5, 1, 0);
	r.image[0].decoded = false;
	ok &= fails(&r, true, "an image that cannot be read");
	r.image[0].decoded = true;
	r.image[2].insns += 1;
	ok &= fails(&r, true, "the image does not grow evenly");
	return ok;
}

static bool test_limit(void)
{
	struct known_result r = right(&linear, 5, 5, 1, 0);
	bool ok = true;

	r.has_limit = r.limited = true;
	ok &= passes(&r, true, "a limit") && passes(&r, false, "a limit");
	r.limited = false;
	ok &= fails(&r, true, "no limit") && fails(&r, false, "no limit");
	return ok;
}

/* What loads a map's address is in what is checked, and not in what is reported. */
static bool test_address(void)
{
	const struct known k = {.exact = true};
	struct known_result r = with(right(&tail, 30, 0, 0, 0), 30, 0);

	r.stage.tail_address = 3;
	return passes(&r, true, "an address") &&
	       fabs(known__result(&k, &r, KNOWN_RUN_TIME) - 27) < 1e-9 && known__address(&r) == 3;
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
		{"known: what the kernel limits is limited", test_limit},
		{"known: without the address of a map", test_address},
		{"known: bounds where there is noise", test_noisy},
	};
	struct ktap k;

	ktap_begin(&k, ARRAY_SIZE(tests));
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		ktap_ok(&k, tests[i].run(), tests[i].name);
	return ktap_end(&k);
}
