// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names that others chose, made fit for a terminal and for JSON. */
#include <stdbool.h>
#include <string.h>

#include "ktap.h"
#include "text.h"

static const struct {
	const char *name, *printable, *utf8;
} names[] = {
	{"", "", ""},
	{"bpftop", "bpftop", "bpftop"},
	{"a b (c) d", "a b (c) d", "a b (c) d"},
	{"a\nb\tc", "a\\nb\\tc", "a\nb\tc"},
	{"\x1b[2J\a\x7f", "\\x1b[2J\\x07\\x7f", "\x1b[2J\a\x7f"},
	{"back\\slash", "back\\\\slash", "back\\slash"},
	{"caf\xc3\xa9", "caf\xc3\xa9", "caf\xc3\xa9"},
	{"\xe2\x82\xac\xf0\x9f\x90\x9d", "\xe2\x82\xac\xf0\x9f\x90\x9d",
	 "\xe2\x82\xac\xf0\x9f\x90\x9d"},
	/* control characters above ASCII: CSI */
	{"\xc2\x9b"
	 "2J",
	 "\\xc2\\x9b2J",
	 "\xc2\x9b"
	 "2J"},
	/* no UTF-8: Latin-1, cut, overlong, a surrogate, above the last, a stray byte */
	{"caf\xe9", "caf\\xe9", "caf\xef\xbf\xbd"},
	{"\xe2\x82", "\\xe2\\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
	{"\xc0\xaf", "\\xc0\\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
	{"\xed\xa0\x80", "\\xed\\xa0\\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80",
	 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	{"\xff\xfe", "\\xff\\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
	{"\x80", "\\x80", "\xef\xbf\xbd"},
};

static bool same(const char *what, const char *name, const char *expected, const char *seen)
{
	if (!strcmp(expected, seen))
		return true;
	ktap_note("%s of '%s': expected '%s', got '%s'", what, name, expected, seen);
	return false;
}

static bool test_names(bool printable)
{
	bool ok = true;
	char buf[256];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (printable)
			ok &= same("printable", names[i].name, names[i].printable,
				   text__printable(names[i].name, buf, sizeof(buf)));
		else
			ok &= same("utf8", names[i].name, names[i].utf8,
				   text__utf8(names[i].name, buf, sizeof(buf)));
	return ok;
}

/* A message may have lines and backslashes of its own; nothing else passes. */
static bool test_message(void)
{
	bool ok = true;
	char buf[256];

	ok &= same("message", "lines", "a\n\tb\\c", text__message("a\n\tb\\c", buf, sizeof(buf)));
	ok &= same("message", "escape", "'\\x1b[2J\\x0d\\xe9\\xc2\\x9b' caf\xc3\xa9",
		   text__message("'\x1b[2J\r\xe9\xc2\x9b' caf\xc3\xa9", buf, sizeof(buf)));
	return ok;
}

/* Nothing is written behind the end, and no character is cut in two. */
static bool test_cut(void)
{
	bool ok = true;
	char buf[16];
	size_t size;

	for (size = 0; size < sizeof(buf); size++) {
		memset(buf, '#', sizeof(buf));
		text__printable("ab\xe2\x82\xac\ncd", buf, size);
		ok &= buf[size] == '#';
		ok &= size < 1 || size > 11 ||
		      same("cut", "ab€\\ncd",
			   size <= 1   ? ""
			   : size <= 2 ? "a"
			   : size <= 5 ? "ab"
			   : size <= 7 ? "ab\xe2\x82\xac"
			   : size <= 8 ? "ab\xe2\x82\xac\\n"
			   : size <= 9 ? "ab\xe2\x82\xac\\nc"
				       : "ab\xe2\x82\xac\\ncd",
			   buf);
		memset(buf, '#', sizeof(buf));
		text__utf8("a\xff"
			   "b",
			   buf, size);
		ok &= buf[size] == '#';
		ok &= size < 1 || size > 6 ||
		      same("cut", "a?b",
			   size <= 1   ? ""
			   : size <= 4 ? "a"
			   : size <= 5 ? "a\xef\xbf\xbd"
				       : "a\xef\xbf\xbd"
					 "b",
			   buf);
	}
	return ok;
}

/* Enough for each character, and no more for those of Europe. */
static bool test_columns(void)
{
	static const struct {
		const char *text;
		unsigned columns;
	} lines[] = {
		{"", 0},
		{"bpftop", 6},
		{"caf\xc3\xa9", 4},
		{"\xd0\xb6", 1},
		{"\xe6\x97\xa5\xe6\x9c\xac", 4}, /* wide */
		{"\xf0\x9f\x90\x9d", 2},
	};
	bool ok = true;
	const char *s;
	unsigned sum;
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		for (sum = 0, s = lines[i].text; *s; s++)
			sum += text__columns(*s);
		if (sum == lines[i].columns)
			continue;
		ktap_note("'%s': expected %u columns, got %u", lines[i].text, lines[i].columns,
			  sum);
		ok = false;
	}
	return ok;
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 5);
	ktap_ok(&k, test_names(true), "for a terminal");
	ktap_ok(&k, test_names(false), "for JSON");
	ktap_ok(&k, test_message(), "in a message");
	ktap_ok(&k, test_cut(), "cut at whole characters");
	ktap_ok(&k, test_columns(), "columns on a terminal");
	return ktap_end(&k);
}
