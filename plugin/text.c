// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "text.h"

/* Length of the character of UTF-8 that @s begins with, its code in *@code; 0: it is none
 * (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF). */
static size_t character(const unsigned char *s, unsigned *code)
{
	static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len, i;

	if (s[0] < 0x80) {
		*code = s[0];
		return 1;
	}
	len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
	if (!len || s[0] >= 0xf8)
		return 0;
	*code = s[0] & (0x7f >> len);
	for (i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (*code < least[len] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return len;
}

/* Appends as a whole, or not at all. */
static int append(char *buf, size_t size, size_t *used, const char *s, size_t len)
{
	if (len >= size - *used)
		return 0;
	memcpy(buf + *used, s, len);
	*used += len;
	buf[*used] = '\0';
	return 1;
}

static const char *escape_all(const char *text, const char *plain, char *buf, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t used = 0, len;
	char escape[8];
	unsigned code;

	if (!size)
		return "";
	buf[0] = '\0';
	for (; *s; s += len) {
		len = character(s, &code);
		if (len && ((code >= 0x20 && code != '\\' && (code < 0x7f || code >= 0xa0)) ||
			    (code < 0x80 && strchr(plain, (int)code)))) {
			if (!append(buf, size, &used, (const char *)s, len))
				break;
			continue;
		}
		/* A control character of two bytes is escaped by both. */
		len = 1;
		if (*s == '\n' || *s == '\t' || *s == '\\')
			snprintf(escape, sizeof(escape), "\\%c",
				 *s == '\n'   ? 'n'
				 : *s == '\t' ? 't'
					      : '\\');
		else
			snprintf(escape, sizeof(escape), "\\x%02x", *s);
		if (!append(buf, size, &used, escape, strlen(escape)))
			break;
	}
	return buf;
}

const char *text__printable(const char *name, char *buf, size_t size)
{
	return escape_all(name, "", buf, size);
}

const char *text__message(const char *text, char *buf, size_t size)
{
	return escape_all(text, "\n\t\\", buf, size);
}

const char *text__utf8(const char *name, char *buf, size_t size)
{
	const unsigned char *s = (const unsigned char *)name;
	size_t used = 0, len;
	unsigned code;

	if (!size)
		return "";
	buf[0] = '\0';
	for (; *s; s += len ? len : 1) {
		len = character(s, &code);
		if (!append(buf, size, &used, len ? (const char *)s : "\xef\xbf\xbd",
			    len ? len : 3))
			break;
	}
	return buf;
}

unsigned text__columns(char byte)
{
	unsigned char c = byte;

	/* 0xe1 is what U+1000 begins with. */
	return c >= 0x80 && c < 0xc0 ? 0 : c < 0xe1 ? 1 : 2;
}
