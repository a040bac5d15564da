/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_TEXT_H
#define BPFCOST_TEXT_H

#include <stddef.h>

/* Names that others chose, of processes for example, may be any bytes. */

/* For a terminal: control characters and what is no UTF-8 become \n, \t, \xNN, a backslash two. In
 * @buf, cut at a whole character. Returns @buf. */
const char *text__printable(const char *name, char *buf, size_t size);

/* For JSON, whose writer escapes control characters: what is no UTF-8 becomes U+FFFD. In @buf, cut
 * at a whole character. Returns @buf. */
const char *text__utf8(const char *name, char *buf, size_t size);

#endif
