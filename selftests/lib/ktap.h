/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_KTAP_H
#define SELFTESTS_KTAP_H

/*
 * Results as KTAP version 1: a plan, one line a test, notes that start with "# ", and totals.
 * A note about a test comes before its result line, where kernel CI looks for it.
 */

enum ktap_status {
	KTAP_PASS,
	KTAP_FAIL,
	KTAP_SKIP,
	KTAP_XFAIL, /* failed, and known to fail for a stated reason */
	KTAP_XPASS, /* passed, though known to fail: the list of known failures is wrong */
	KTAP_STATUSES,
};

/* The exit statuses of the kernel's selftests. */
#define KTAP_EXIT_PASS 0
#define KTAP_EXIT_FAIL 1
#define KTAP_EXIT_SKIP 4

struct ktap {
	unsigned int planned;
	unsigned int seen[KTAP_STATUSES];
};

/* Prints the header and the plan. */
void ktap_begin(struct ktap *k, unsigned int planned);

/* Prints a note; every line of the text gets its "# ". */
void ktap_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints the result line of the next test. @reason is for skips and known failures; NULL if
 * none. */
void ktap_result(struct ktap *k, enum ktap_status status, const char *name, const char *reason);

/* A pass or a failure, for tests that are one condition. Returns @ok. */
int ktap_ok(struct ktap *k, int ok, const char *name);

/* Prints the totals, returns the exit status: a test that did not report is a failure, and a run
 * without a single pass, of which something was skipped, is a skip. */
int ktap_end(struct ktap *k);

#endif
