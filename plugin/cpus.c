// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpus.h"
#include "sysfs.h"

#define WORD_BITS 64U

static int grow(struct cpus *c, unsigned int cpu)
{
	size_t n = cpu / WORD_BITS + 1;
	uint64_t *bits;

	if (cpu > CPUS_MAX_ID)
		return -EINVAL;
	if (n <= c->n_words)
		return 0;
	bits = realloc(c->bits, n * sizeof(*bits));
	if (!bits)
		return -ENOMEM;
	memset(bits + c->n_words, 0, (n - c->n_words) * sizeof(*bits));
	c->bits = bits;
	c->n_words = n;
	return 0;
}

int cpus__add(struct cpus *c, unsigned int cpu)
{
	int err = grow(c, cpu);

	if (err)
		return err;
	c->bits[cpu / WORD_BITS] |= 1ULL << (cpu % WORD_BITS);
	return 0;
}

void cpus__del(struct cpus *c, unsigned int cpu)
{
	if (cpu / WORD_BITS < c->n_words)
		c->bits[cpu / WORD_BITS] &= ~(1ULL << (cpu % WORD_BITS));
}

bool cpus__has(const struct cpus *c, unsigned int cpu)
{
	return cpu / WORD_BITS < c->n_words && (c->bits[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1);
}

/* strtoul() would take signs, white space and numbers that wrap. */
static int parse_id(const char **text, unsigned int *id)
{
	const char *p = *text;
	unsigned int v = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		v = v * 10 + (unsigned int)(*p - '0');
		if (v > CPUS_MAX_ID)
			return -EINVAL;
	}
	*id = v;
	*text = p;
	return 0;
}

int cpus__parse(struct cpus *c, const char *text)
{
	struct cpus set = {};
	unsigned int first, last;
	int err = 0;

	/* present may be empty where the kernel has no notion of it, and cpumask files of a PMU
	 * that lost its last CPU are a newline */
	if (!*text || !strcmp(text, "\n"))
		goto done;
	for (;;) {
		err = parse_id(&text, &first);
		if (err)
			goto cleanup;
		last = first;
		if (*text == '-') {
			text++;
			err = parse_id(&text, &last);
			if (!err && last < first)
				err = -EINVAL;
			if (err)
				goto cleanup;
		}
		for (; first <= last; first++) {
			err = cpus__add(&set, first);
			if (err)
				goto cleanup;
		}
		if (*text != ',')
			break;
		text++;
	}
	if (*text && strcmp(text, "\n")) {
		err = -EINVAL;
		goto cleanup;
	}
done:
	cpus__free(c);
	*c = set;
	memset(&set, 0, sizeof(set));
cleanup:
	cpus__free(&set);
	return err;
}

int cpus__read(struct cpus *c, const char *sysfs_root, const char *which)
{
	char *text;
	int err;

	err = sysfs__text(&text, "%s/devices/system/cpu/%s", sysfs_root, which);
	if (err)
		return err;
	err = cpus__parse(c, text);
	free(text);
	return err;
}

bool cpus__equal(const struct cpus *a, const struct cpus *b)
{
	size_t i, n = a->n_words > b->n_words ? a->n_words : b->n_words;

	for (i = 0; i < n; i++) {
		if ((i < a->n_words ? a->bits[i] : 0) != (i < b->n_words ? b->bits[i] : 0))
			return false;
	}
	return true;
}

unsigned int cpus__count(const struct cpus *c)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < c->n_words; i++)
		n += (unsigned int)__builtin_popcountll(c->bits[i]);
	return n;
}

int cpus__max(const struct cpus *c)
{
	size_t i;

	for (i = c->n_words; i-- > 0;) {
		if (c->bits[i])
			return (int)(i * WORD_BITS + WORD_BITS - 1) - __builtin_clzll(c->bits[i]);
	}
	return -1;
}

int cpus__next(const struct cpus *c, int after)
{
	unsigned int from = (unsigned int)(after + 1);
	size_t i = from / WORD_BITS;
	uint64_t word;

	if (i >= c->n_words)
		return -1;
	word = c->bits[i] & (~0ULL << (from % WORD_BITS));
	while (!word) {
		if (++i >= c->n_words)
			return -1;
		word = c->bits[i];
	}
	return (int)(i * WORD_BITS) + __builtin_ctzll(word);
}

int cpus__copy(struct cpus *to, const struct cpus *from)
{
	uint64_t *bits = NULL;

	if (from->n_words) {
		bits = malloc(from->n_words * sizeof(*bits));
		if (!bits)
			return -ENOMEM;
		memcpy(bits, from->bits, from->n_words * sizeof(*bits));
	}
	free(to->bits);
	to->bits = bits;
	to->n_words = from->n_words;
	return 0;
}

const char *cpus__format(const struct cpus *c, char *buf, size_t size)
{
	static const char dots[] = "...";
	int first, last, n, max = cpus__max(c);
	size_t len = 0;

	if (!size)
		return buf;
	buf[0] = '\0';
	for (first = cpus__next(c, -1); first >= 0; first = cpus__next(c, last)) {
		for (last = first; last < max && cpus__has(c, (unsigned int)last + 1); last++)
			;
		n = snprintf(buf + len, size - len, first == last ? "%s%d" : "%s%d-%d",
			     len ? "," : "", first, last);
		if (n < 0)
			break;
		/* The dots go where the last whole range ends, if they fit there. */
		if ((size_t)n >= size - len || (last < max && len + n + sizeof(dots) > size)) {
			snprintf(buf + len, size - len, "%s", dots);
			break;
		}
		len += (size_t)n;
	}
	return buf;
}

void cpus__free(struct cpus *c)
{
	free(c->bits);
	c->bits = NULL;
	c->n_words = 0;
}
