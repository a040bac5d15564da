// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define MAX_SECONDS (100.0 * 366 * 24 * 3600)

bool parse__is_prefix(const char *word, const char *full)
{
	size_t n = strlen(word);

	return n && !strncmp(word, full, n);
}

int parse__number(const char *word, unsigned long long min, unsigned long long max,
		  unsigned long long *value)
{
	unsigned long long v;
	char *end;

	/* strtoull() takes a sign and leading space; a count has neither. */
	if (!isdigit((unsigned char)word[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(word, &end, 0);
	if (*end)
		return -EINVAL;
	if (errno || v < min || v > max)
		return -ERANGE;
	*value = v;
	return 0;
}

int parse__seconds(const char *word, __u64 *ns)
{
	unsigned long long whole;
	double v;
	char *end;

	/* bpftool takes whole seconds in base 0, so that 0x10 is a number here too. */
	if (!parse__number(word, 1, (unsigned long long)MAX_SECONDS, &whole)) {
		*ns = whole * 1000000000ULL;
		return 0;
	}
	if (strspn(word, "0123456789.") != strlen(word))
		return -EINVAL;
	errno = 0;
	v = strtod(word, &end);
	if (*end || end == word)
		return -EINVAL;
	if (errno || !isfinite(v) || v > MAX_SECONDS || v * 1e9 < 1)
		return -ERANGE;
	*ns = llround(v * 1e9);
	return 0;
}
