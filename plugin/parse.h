/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_PARSE_H
#define BPFCOST_PARSE_H

#include <linux/types.h>
#include <stdbool.h>

/* bpftool's rule for words: @word is a beginning of @full, or all of it. "" is not. */
bool parse__is_prefix(const char *word, const char *full);

/* A whole number, decimal, hexadecimal (0x) or octal (0), from @min to @max, and nothing after it.
 * Returns 0, -EINVAL (not a number) or -ERANGE. */
int parse__number(const char *word, unsigned long long min, unsigned long long max,
		  unsigned long long *value);

/* Seconds, with a fraction, above 0 and up to a hundred years, as nanoseconds. Returns 0, -EINVAL
 * or -ERANGE. */
int parse__seconds(const char *word, __u64 *ns);

#endif
