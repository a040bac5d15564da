/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_TEXT_H
#define BPFCOST_TEXT_H

#include <stddef.h>

/* Names that others chose, of processes for example, may be any bytes. */

/* For a terminal: control characters and what is no UTF-8 become \n, \t, \xNN, a backslash two. In
 * @buf, cut at a whole character. Returns @buf. */
const char *text__printable(const char *name, char *buf, size_t size);

/* The same for a sentence that such names may be in: its own lines, tabs and backslashes stay. */
const char *text__message(const char *text, char *buf, size_t size);

/* For JSON, whose writer escapes control characters: what is no UTF-8 becomes U+FFFD. In @buf, cut
 * at a whole character. Returns @buf. */
const char *text__utf8(const char *name, char *buf, size_t size);

/* How many columns of a terminal a byte of UTF-8 takes, at most: the bytes that continue a
 * character none. From U+1000 on there are some that take two columns, and all count so: rather a
 * column too few is used than a line becomes two. */
unsigned text__columns(char byte);

#endif
