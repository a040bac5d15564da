/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_CPUS_H
#define BPFCOST_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sets of CPU ids. Possible, present and online CPUs are different sets, each can have holes, and
 * the number of CPUs says nothing about the highest id: whoever sizes an array by CPU id takes
 * cpus__max() + 1, not cpus__count().
 */

/* The highest id that is believed. Linux ends at 8192 CPUs; a list that says more is broken. */
#define CPUS_MAX_ID 65535U

/* Zeroed, it is the empty set. */
struct cpus {
	uint64_t *bits;
	size_t n_words;
};

/* Iterates over the ids in ascending order; @cpu is an int. */
#define cpus__for_each(cpu, set) \
	for ((cpu) = cpus__next((set), -1); (cpu) >= 0; (cpu) = cpus__next((set), (cpu)))

/* Reads a list as the kernel prints it: "0-3,8,10-11", with or without a newline; empty is the
 * empty set. @c must be initialized; what it held is replaced, or left as it was on an error:
 * -EINVAL for bad text, -ENOMEM. */
int cpus__parse(struct cpus *c, const char *text);

/* The same of <sysfs_root>/devices/system/cpu/<which>; @which is "possible", "present" or "online".
 * Returns also the errno of open and read. */
int cpus__read(struct cpus *c, const char *sysfs_root, const char *which);

/* Returns 0, -EINVAL for an id above CPUS_MAX_ID, or -ENOMEM. */
int cpus__add(struct cpus *c, unsigned int cpu);
void cpus__del(struct cpus *c, unsigned int cpu);

bool cpus__has(const struct cpus *c, unsigned int cpu);
bool cpus__equal(const struct cpus *a, const struct cpus *b);
unsigned int cpus__count(const struct cpus *c);

/* The highest id; -1 if the set is empty. */
int cpus__max(const struct cpus *c);

/* The lowest id above @after, which may be -1; -1 if there is none. */
int cpus__next(const struct cpus *c, int after);

/* Replaces @to by a copy of @from. Returns 0 or -ENOMEM (then @to is as it was). */
int cpus__copy(struct cpus *to, const struct cpus *from);

/* The set as the kernel would print it, without a newline; ends with "..." when @size is too small.
 * Returns @buf. */
const char *cpus__format(const struct cpus *c, char *buf, size_t size);

/* Leaves the empty set. */
void cpus__free(struct cpus *c);

#endif
