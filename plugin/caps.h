/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_CAPS_H
#define BPFCOST_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/capability.h>

/* True if the process has @cap, or CAP_SYS_ADMIN, which stood for it before 5.8 and still does. */
bool caps__have(cap_value_t cap);

/* The names of those of @caps that the process does not have, as "CAP_BPF, CAP_PERFMON" in @buf.
 * Returns how many there are. */
size_t caps__missing(const cap_value_t *caps, size_t n, char *buf, size_t size);

/* Gives up every capability but those of @keep (of which one that is not there is not gained), and
 * the limit of locked memory, where that may be. Returns 0 or a negative errno. */
int caps__keep_only(const cap_value_t *keep, size_t n);

#endif
