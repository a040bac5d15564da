// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "stats_sample.h"

struct stats_row *stats_sample__add(struct stats_sample *s)
{
	struct stats_row *v;
	size_t size;

	if (s->n == s->size) {
		size = s->size ? s->size * 2 : 64;
		v = realloc(s->v, size * sizeof(*v));
		if (!v)
			return NULL;
		s->v = v;
		s->size = size;
	}
	memset(&s->v[s->n], 0, sizeof(s->v[0]));
	return &s->v[s->n++];
}

int stats_row__compare(const struct stats_row *a, const struct stats_row *b)
{
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->load_time != b->load_time)
		return a->load_time < b->load_time ? -1 : 1;
	return memcmp(a->tag, b->tag, sizeof(a->tag));
}

static int compare(const void *a, const void *b)
{
	return stats_row__compare(a, b);
}

void stats_sample__sort(struct stats_sample *s)
{
	size_t i;

	/* Most often they come in order. */
	for (i = 1; i < s->n; i++) {
		if (stats_row__compare(&s->v[i - 1], &s->v[i]) > 0) {
			qsort(s->v, s->n, sizeof(*s->v), compare);
			return;
		}
	}
}

void stats_sample__reset(struct stats_sample *s)
{
	struct stats_row *v = s->v;
	size_t size = s->size;

	memset(s, 0, sizeof(*s));
	s->v = v;
	s->size = size;
}

void stats_sample__free(struct stats_sample *s)
{
	if (!s)
		return;
	free(s->v);
	memset(s, 0, sizeof(*s));
}
