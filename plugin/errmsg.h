/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_ERRMSG_H
#define BPFCOST_ERRMSG_H

/*
 * Modules do not print. A function that can fail takes a struct errmsg, says in it what failed, on
 * what, why, and what to do, and returns a negative errno; main() shows it as text or as JSON.
 */

enum exit_status {
	EXIT_DONE = 0,
	EXIT_NOT_MEASURED = 1, /* it could not be measured */
	EXIT_USAGE = 2,	       /* wrong usage or bad input */
};

struct errmsg {
	enum exit_status status;
	char text[2048];
};

/* It could not be measured (exit status 1). @rc: a negative errno, returned. A second message for
 * one struct is dropped: the first is the cause. @e may be NULL. */
int errmsg__fail(struct errmsg *e, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Wrong usage or bad input (exit status 2). Returns -EINVAL. */
int errmsg__usage(struct errmsg *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The text of an errno with its name: "No such file or directory (ENOENT)". @err may have either
 * sign. Returns @buf. */
const char *errmsg__errno(int err, char *buf, unsigned int size);

#endif
