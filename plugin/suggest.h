/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_SUGGEST_H
#define BPFCOST_SUGGEST_H

/*
 * The known word that somebody probably meant. Offer all of them, then take the best:
 *
 *	struct suggest s = { .word = "cylces" };
 *
 *	suggest__offer(&s, "cycles");
 *	suggest__offer(&s, "instructions");
 *	suggest__best(&s);	"cycles"; NULL if nothing is near enough
 */
struct suggest {
	const char *word;
	char best[128];
	unsigned int distance; /* of best, plus 1; 0: there is none yet */
};

void suggest__offer(struct suggest *s, const char *known);

/* Points into *s. */
const char *suggest__best(const struct suggest *s);

/* How many characters have to be inserted, removed, replaced or exchanged with their neighbour to
 * make @b of @a, whatever their case; words of 64 characters and more are at no distance that
 * matters (UINT_MAX). */
unsigned int suggest__distance(const char *a, const char *b);

#endif
