/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_COUNTERS_H
#define BPFCOST_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpus.h"
#include "errmsg.h"
#include "metrics.h"

/*
 * perf events, opened per CPU, for BPF programs to read through a BPF_MAP_TYPE_PERF_EVENT_ARRAY.
 *
 * A program on CPU c finds the i-th metric under the key c * n_metrics + i. CPU ids can have holes:
 * the map needs counters__n_keys() entries.
 *
 * Events are pinned where all of them fit, so that no value has to be scaled; a pinned event that
 * loses its counter is read as -EBUSY by the helpers (perf_event_read_local()) instead of as a
 * stale number. Where they do not fit, none is pinned, and the kernel takes turns:
 * counters__multiplexed().
 */
struct counters;

/*
 * Opens every metric on every online CPU. @metrics are metrics with events (no clock), and must
 * live until counters__close(). @n_metrics may be 0.
 *
 * Raises the soft limit of open files (RLIMIT_NOFILE; with CAP_SYS_RESOURCE also the hard one) if
 * it is too low for CPUs x metrics: who starts other programs restores it for them.
 *
 * A CPU that goes offline meanwhile is skipped. A CPU that cannot count the event is an error only
 * when no CPU can; else counters__has() is false there.
 *
 * Returns 0 or a negative errno with a message; *out is NULL then.
 */
int counters__open(struct counters **out, const struct metric *const *metrics, size_t n_metrics,
		   const char *sysfs_root, struct errmsg *err);

/* Detaches nothing from maps: a map drops what was put in when its fd is closed. NULL-safe. */
void counters__close(struct counters *c);

/* (highest possible CPU id + 1) * n_metrics: max_entries of the map. */
unsigned int counters__n_keys(const struct counters *c);

/* Puts every event into the map. Returns 0 or a negative errno. */
int counters__install(struct counters *c, int map_fd);

/*
 * Follows CPUs that went and came since the last call: closes the events of those that are gone
 * (and removes them from the map), opens events for those that are new. An event does not survive
 * its CPU's absence (perf_event_exit_cpu()). One that went and came between two calls is noticed by
 * the kernel's uevents, and a suspend by the clocks; where the kernel sends no uevents (they need
 * CONFIG_NET) it has to be told by counters__reopen_cpu().
 *
 * A new event counts from 0 again: a run that spans the exchange reads a smaller value at its end.
 * Needs what counters__open() needs, CAP_PERFMON in general, for as long as CPUs can come.
 *
 * @map_fd may be -1: there is no map. Returns the number of CPUs that changed or a negative errno;
 * a CPU that cannot count an event is no error, but counters__has() is false there.
 */
int counters__refresh(struct counters *c, int map_fd);

/* Opens the events of @cpu anew, or removes them if it is offline. Returns 1 or a negative
 * errno. */
int counters__reopen_cpu(struct counters *c, int map_fd, unsigned int cpu);

/* Some event is not pinned, so values may have to be scaled by enabled / running. */
bool counters__multiplexed(const struct counters *c);

/* Whether metric @i has an event on @cpu now. */
bool counters__has(const struct counters *c, unsigned int cpu, size_t i);

/* Why it has none: the negative errno of the last try to open it; 0 if none was tried (offline). */
int counters__why_not(const struct counters *c, unsigned int cpu, size_t i);

/* How long metric @i was enabled and really counted on @cpu, in ns since counters__open(); events
 * that were exchanged meanwhile are included. Equal where the event is pinned. Returns 0; -ENOENT
 * if the CPU never had the event; -EBUSY if it is pinned and lost its counter; or the errno of
 * read(2). */
int counters__times(const struct counters *c, unsigned int cpu, size_t i, uint64_t *enabled,
		    uint64_t *running);

/* The CPUs that are online as of the last open, refresh or reopen. */
const struct cpus *counters__online(const struct counters *c);

/* How many events are open. */
size_t counters__n_fds(const struct counters *c);

/* Says why metric @m could not be opened, what that means and what to do. Returns @rc. */
int counters__explain(const struct metric *m, int rc, struct errmsg *err);

/* Tries to open one event on the first online CPU that it is for. Returns 0 or a negative errno;
 * -ENODEV if no such CPU is online. Leaves nothing open. */
int counters__probe(const struct metric_event *e, const char *sysfs_root);

#endif
