/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_PMU_H
#define BPFCOST_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpus.h"
#include "errmsg.h"
#include "metrics.h"

/*
 * The kernel's performance monitoring units, as <sysfs_root>/bus/event_source/devices/NAME
 * describes them: type (a number for perf_event_attr.type), format/TERM (which bits of config,
 * config1, ... a term fills), events/NAME (a list of terms), cpus or cpumask. The kernel's
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-* says what they mean.
 */

enum pmu_kind {
	PMU_OTHER,  /* neither: counts on any CPU, and knows nothing of user and kernel mode */
	PMU_CORE,   /* the CPU's own; with a cpus file if there can be several kinds of CPUs */
	PMU_UNCORE, /* has a cpumask: counts for a package or so, on a CPU that stands for all */
};

struct pmu {
	char *name;
	uint32_t type;
	enum pmu_kind kind;
	bool some_cpus; /* there is a cpus file, and this was in it: */
	struct cpus cpus;
};

/* Names of PMUs, of events, or of terms: sorted, allocated; pmu__free_names(). */
struct pmu_names {
	char **names;
	size_t n;
};

/* Reads the PMU @name. Returns 0; -ENOENT without a message if there is none; or another negative
 * errno with a message. pmu__free() empties *p. */
int pmu__read(struct pmu *p, const char *sysfs_root, const char *name, struct errmsg *err);
void pmu__free(struct pmu *p);

/* All PMUs; none if the kernel has no such directory. Returns 0 or a negative errno. */
int pmu__list(struct pmu_names *names, const char *sysfs_root);

/* The events that PMU @pmu names, or its terms. Returns 0 or a negative errno. */
int pmu__events(struct pmu_names *names, const char *sysfs_root, const char *pmu);
int pmu__terms(struct pmu_names *names, const char *sysfs_root, const char *pmu);
void pmu__free_names(struct pmu_names *names);

/* Fills type, config, config1, config2 and config3 of *e from the @terms between the slashes of
 * pmu/terms/. *@name, allocated, is what the term name=NAME said, or NULL. Returns 0 or a negative
 * errno with a message. */
int pmu__encode(const struct pmu *p, const char *sysfs_root, const char *terms,
		struct metric_event *e, char **name, struct errmsg *err);

#endif
