/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_BTEST_H
#define SELFTESTS_BTEST_H

/*
 * A test program is a list of cases. Each case runs in a process of its own, which ends with the
 * first thing that is not as expected: nothing that a case opens, becomes or starts outlives it.
 * After each case, the runner checks from outside that the switch is off again.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

#include "behaviour.h"
#include "bstats.h"
#include "insn.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct btest;

struct btest_case {
	const char *name;
	const char *rule; /* what the kernel promises, as one sentence */
	void (*run)(struct btest *t);
	unsigned int needs; /* enum behaviour, ored */
	const void *data;   /* for cases that share one function */
	const char *tags;   /* separated by commas; NULL if none */
	unsigned int timeout_s; /* 0: 30 seconds */
};

struct btest {
	const struct btest_case *tc;
	int observer;  /* the fd of a program that nobody else runs */
	int result_fd; /* where the first failure is told */
	pid_t pid;     /* of the case's first process */
};

/* Runs what argv selects; returns the exit status. @cases ends with an entry without a name. */
int btest_main(int argc, char **argv, const struct btest_case *cases);

/* The ways out of a case. Each ends the process, and with it the case. */
_Noreturn void btest_failed(struct btest *t, const char *expected, const char *seen_fmt, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void btest_skip(struct btest *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Something that is not under test did not work. */
_Noreturn void btest_broken(struct btest *t, int err, const char *what);

/* A line in the output. */
void btest_note(struct btest *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns @rc; ends the case if it is negative: an errno, or -1 with errno set. */
long need(struct btest *t, long rc, const char *what);

/* What is expected, and at which point of the case (a printf format). */
void expect_on(struct btest *t, const char *when, ...) __attribute__((format(printf, 2, 3)));
void expect_off(struct btest *t, const char *when, ...) __attribute__((format(printf, 2, 3)));
/* The same where the kernel may take a while (work queues, garbage collection of sockets). */
void expect_off_soon(struct btest *t, const char *when);
void expect_eq(struct btest *t, long long expected, long long seen, const char *what, ...)
	__attribute__((format(printf, 4, 5)));
void expect_range(struct btest *t, long long low, long long high, long long seen, const char *what);
/* @rc is a negative errno or a success; @expected is an errno, or 0 for a success. */
void expect_errno(struct btest *t, int expected, long rc, const char *what, ...)
	__attribute__((format(printf, 4, 5)));

/* Opens a stats fd, expecting that to work. */
int must_open(struct btest *t);
void must_set(struct btest *t, int value);
struct bstats must_info(struct btest *t, int prog_fd);
void must_run(struct btest *t, int prog_fd, unsigned int repeat);

/* A second process, and a socket to it for turns and for file descriptors. */
struct peer {
	pid_t pid; /* 0 in the peer itself */
	int sock;
};

/* Starts one that runs @fn and exits with 0. It dies with the case's first process. */
struct peer peer_start(struct btest *t, void (*fn)(struct btest *t, struct peer *me, void *arg),
		       void *arg);
/* Gives the turn to the other side, with a value; waits for it. */
void peer_say(struct btest *t, const struct peer *p, int value);
int peer_hear(struct btest *t, const struct peer *p);
/* Say, then hear. */
int peer_ask(struct btest *t, const struct peer *p, int value);
/* Waits for the end of the peer; returns its wait status. */
int peer_wait(struct btest *t, struct peer *p);
int peer_kill(struct btest *t, struct peer *p, int sig);

/* Sends and receives a file descriptor over any unix socket. Negative errno. */
int send_fd(int sock, int fd);
int recv_fd(int sock, int flags);

/* Replaces this process with one that says 1 on @sock, hears, and exits: what is left of its file
 * descriptors is what exec kept. */
_Noreturn void exec_pause(struct btest *t, int sock);

/* Drops every capability but those in @keep (bits), effective and permitted. */
int caps_keep(uint64_t keep);
/* Becomes uid and gid @id, with @keep. */
int become(unsigned int id, uint64_t keep);
#define CAP_BIT(c) (1ULL << (c))

/* Writes a whole small file; negative errno. */
int put_file(const char *path, const char *text);

/* "6.12.9-cloud-amd64 x86_64" */
const char *kernel_release(char *buf, size_t size);
long long now_ns(void);
void sleep_ms(unsigned int ms);
/* Keeps this process on the @nth of the CPUs that it may use, counted round and round. Returns the
 * CPU's number, or a negative errno. */
int stay_on_cpu(unsigned int nth);
/* Is an instruction a nanosecond here, as in an emulator that counts time by instructions? */
bool time_is_exact(void);

#endif
