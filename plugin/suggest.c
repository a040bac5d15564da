// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "suggest.h"

#define LONGEST 64

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static int lower(char c)
{
	return tolower((unsigned char)c);
}

unsigned int suggest__distance(const char *a, const char *b)
{
	/* Three rows of the usual table: an exchange looks two rows back. */
	unsigned int rows[3][LONGEST + 1], *before, *above, *row, *spare;
	size_t n = strlen(a), m = strlen(b), i, j;

	if (n >= LONGEST || m >= LONGEST)
		return UINT_MAX;
	before = rows[0];
	above = rows[1];
	row = rows[2];
	for (j = 0; j <= m; j++)
		before[j] = above[j] = (unsigned int)j;
	for (i = 1; i <= n; i++) {
		row[0] = (unsigned int)i;
		for (j = 1; j <= m; j++) {
			row[j] = above[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
			row[j] = min(row[j], min(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
			    lower(a[i - 2]) == lower(b[j - 1]))
				row[j] = min(row[j], before[j - 2] + 1);
		}
		spare = before;
		before = above;
		above = row;
		row = spare;
	}
	return above[m];
}

void suggest__offer(struct suggest *s, const char *known)
{
	unsigned int d = suggest__distance(s->word, known);
	size_t shorter = strlen(s->word) < strlen(known) ? strlen(s->word) : strlen(known);

	/* The word itself is no help where it did not work, and with more than a third of the
	 * letters wrong it is another word. */
	if (!strcmp(s->word, known) || d > shorter / 3 || (s->distance && d + 1 >= s->distance))
		return;
	s->distance = d + 1;
	snprintf(s->best, sizeof(s->best), "%s", known);
}

const char *suggest__best(const struct suggest *s)
{
	return s->distance ? s->best : NULL;
}
