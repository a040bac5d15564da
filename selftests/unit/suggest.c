// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The known word that somebody meant. */
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "ktap.h"
#include "suggest.h"

static bool test_distance(void)
{
	static const struct {
		const char *a, *b;
		unsigned int distance;
	} pairs[] = {
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"cycles", "cycles", 0},
		{"CYCLES", "cycles", 0},
		{"cylces", "cycles", 1},
		{"ycles", "cycles", 1},
		{"cyclees", "cycles", 1},
		{"cicles", "cycles", 1},
		{"ab", "ba", 1},
		{"kitten", "sitting", 3},
		{"ca", "abc", 3},
		{"0123456789012345678901234567890123456789012345678901234567890123", "a", UINT_MAX},
	};
	bool ok = true;
	unsigned int d;
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		d = suggest__distance(pairs[i].a, pairs[i].b);
		if (d != pairs[i].distance) {
			ktap_note("'%s' to '%s': %u, expected %u", pairs[i].a, pairs[i].b, d,
				  pairs[i].distance);
			ok = false;
		}
	}
	return ok;
}

static bool best_is(const char *word, const char *expected)
{
	static const char *const words[] = {
		"cycles", "cpu-cycles", "bus-cycles", "instructions", "ns", "cs",
	};
	struct suggest s = {.word = word};
	const char *best;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		suggest__offer(&s, words[i]);
	best = suggest__best(&s);
	if (best ? !expected || strcmp(best, expected) : !!expected) {
		ktap_note("'%s': '%s', expected '%s'", word, best ? best : "nothing",
			  expected ? expected : "nothing");
		return false;
	}
	return true;
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 3);
	ktap_ok(&k, test_distance(), "distances");
	ktap_ok(&k,
		best_is("cylces", "cycles") && best_is("cpucycles", "cpu-cycles") &&
			best_is("instrutcions", "instructions"),
		"the nearest word is taken");
	ktap_ok(&k, best_is("xy", NULL) && best_is("", NULL) && best_is("llc", NULL),
		"a word that is like none gets none");
	return ktap_end(&k);
}
