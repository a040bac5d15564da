// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ktap.h"

static unsigned int total(const struct ktap *k)
{
	unsigned int n = 0;

	for (int i = 0; i < KTAP_STATUSES; i++)
		n += k->seen[i];
	return n;
}

void ktap_begin(struct ktap *k, unsigned int planned)
{
	*k = (struct ktap){.planned = planned};
	printf("KTAP version 1\n1..%u\n", planned);
	fflush(stdout);
}

void ktap_note(const char *fmt, ...)
{
	char text[8192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");

		printf("# %.*s\n", (int)len, line);
		line += len + (line[len] == '\n');
	}
	fflush(stdout);
}

/* Parsers end a description at '#', and know no way to quote it. */
static void put_plain(const char *s)
{
	for (; *s; s++)
		putchar(*s == '#' || (unsigned char)*s < ' ' ? '_' : *s);
}

void ktap_result(struct ktap *k, enum ktap_status status, const char *name, const char *reason)
{
	static const char *const directive[KTAP_STATUSES] = {
		[KTAP_SKIP] = "SKIP",
		[KTAP_XFAIL] = "XFAIL",
	};
	int ok = status != KTAP_FAIL && status != KTAP_XPASS;

	k->seen[status]++;
	printf("%s %u ", ok ? "ok" : "not ok", total(k));
	put_plain(name);
	if (directive[status]) {
		printf(" # %s ", directive[status]);
		put_plain(reason ? reason : "no reason given");
	}
	putchar('\n');
	fflush(stdout);
}

int ktap_ok(struct ktap *k, int ok, const char *name)
{
	ktap_result(k, ok ? KTAP_PASS : KTAP_FAIL, name, NULL);
	return ok;
}

int ktap_end(struct ktap *k)
{
	unsigned int missing = k->planned > total(k) ? k->planned - total(k) : 0;

	if (missing)
		ktap_note("%u of %u planned tests did not report", missing, k->planned);
	printf("# Totals: pass:%u fail:%u xfail:%u xpass:%u skip:%u error:%u\n", k->seen[KTAP_PASS],
	       k->seen[KTAP_FAIL], k->seen[KTAP_XFAIL], k->seen[KTAP_XPASS], k->seen[KTAP_SKIP],
	       missing);
	fflush(stdout);
	if (k->seen[KTAP_FAIL] || k->seen[KTAP_XPASS] || missing)
		return KTAP_EXIT_FAIL;
	if (k->seen[KTAP_SKIP] && !k->seen[KTAP_PASS])
		return KTAP_EXIT_SKIP;
	return KTAP_EXIT_PASS;
}
