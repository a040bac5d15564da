/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_METRICS_H
#define BPFCOST_METRICS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpus.h"
#include "errmsg.h"

/*
 * What can be measured, by name. A metric is `ns`, which is read from the clock, or an event of the
 * kernel's perf subsystem. Events carry the names that `perf` gives them.
 */

enum metric_family {
	METRIC_BPFTOOL,	 /* bpftool's six */
	METRIC_CLOCK,	 /* ns */
	METRIC_HARDWARE, /* perf's generic hardware events */
	METRIC_CACHE,	 /* perf's generic cache events */
	METRIC_SOFTWARE, /* the kernel's own counters */
	METRIC_RAW,	 /* rNNN */
	METRIC_PMU,	 /* pmu/event/ */
	METRIC_FAMILIES,
};

/* One event, for some of the CPUs. A CPU with hybrid siblings has a PMU per core type, and a metric
 * one event for each. */
struct metric_event {
	struct perf_event_attr attr; /* what to count; read_format and pinned are the opener's */
	uint64_t config3; /* belongs into attr; Linux 6.3 has it there, older headers not */
	char *pmu;	  /* the name of the PMU in sysfs; NULL: the kernel chooses */
	bool some_cpus;	  /* only for @cpus, which is what the PMU has at the moment: a PMU may
				      * gain CPUs when they come online (metric_event__cpus()) */
	struct cpus cpus;
};

struct metric {
	char *name; /* the canonical one: "cycles" for the word "c", "page-faults" for "faults" */
	enum metric_family family;
	bool clock;	  /* ns by bpf_ktime_get_ns(): no event at all */
	const char *unit; /* of a value: "ns", "cycles", "instructions" or "events" */
	struct metric_event *events;
	size_t n_events;
	/* What bpftool prints behind a value, if the metric @ratio_of was measured too:
	 * value / value of ratio_of * ratio_mul. NULL: nothing. */
	const char *ratio_of;
	const char *ratio_desc;
	double ratio_mul;
};

/*
 * Finds the metric that @word names, and encodes it for the PMUs in <sysfs_root>:
 *
 *  - a name, exactly: bpftool's six, ns, perf's generic hardware, cache and software events;
 *  - a beginning of one of bpftool's six or of ns; the first of the table wins, as in bpftool;
 *  - rNNN: a raw event in hexadecimal digits;
 *  - pmu/event/, pmu/key=value,.../, or both mixed, as sysfs defines them; name=NAME names it.
 *
 * All of perf's kinds take perf's modifiers u, k and h (name:k, pmu/event/k, pmu/event/:k) for the
 * levels to count; without, user mode is excluded, as in bpftool.
 *
 * Returns 0 and fills *m, which metrics__free() empties; -EINVAL for a word that is no metric or
 * one that can not be counted CPU by CPU (with the usage message); another negative errno where
 * sysfs cannot be read.
 */
int metrics__parse(const char *word, const char *sysfs_root, struct metric *m, struct errmsg *err);

/* Empties *m. It may be zeroed or empty already. */
void metrics__free(struct metric *m);

/* Calls @fn for every metric that has a name, in the order of the families and within them of the
 * tables or of the PMUs' names. @alias: another name of the same, or "". @why: NULL, or why @name
 * can not be encoded (then @m is NULL). Stops when @fn returns other than 0, and returns that; or
 * 0; or a negative errno. */
typedef int (*metrics__fn)(const char *name, enum metric_family family, const char *alias,
			   const struct metric *m, const char *why, void *data);
int metrics__each(const char *sysfs_root, metrics__fn fn, void *data);

/* "bpftool", "clock", "hardware", "cache", "software", "raw", "pmu". */
const char *metrics__family(enum metric_family family);

/* Reads again which CPUs the event's PMU has, into *cpus (initialized; replaced). Returns 1 if
 * there is such a list, 0 if the event is for all CPUs, or a negative errno. */
int metric_event__cpus(const struct metric_event *e, const char *sysfs_root, struct cpus *cpus);

#endif
