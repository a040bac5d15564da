/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_CHILD_H
#define BPFCOST_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * The COMMAND of `-- COMMAND`: made before privileges are dropped and limits are raised, so that it
 * has those of the caller, and started when the measurement has begun.
 */
struct child {
	pid_t pid; /* 0: none */
	int go;	   /* pipe: a byte starts it, the end of the file ends it */
	bool ended;
	int status; /* as a shell says it: its own, or 128 + signal */
};

/* Forks; the child waits for child__go(). @quiet_stdout: what it writes to stdout goes to stderr,
 * so that stdout stays one JSON document. Negative errno. */
int child__open(struct child *c, char **argv, bool quiet_stdout);
/* Starts it. -EPIPE if it is there no more. */
int child__go(struct child *c);
/* Looks whether it has ended, without waiting. */
bool child__poll(struct child *c);
/* Waits for its end. */
void child__wait(struct child *c);
/* A child that was not started ends without having run anything. */
void child__close(struct child *c);

#endif
