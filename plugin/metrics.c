// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "pmu.h"
#include "suggest.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Where a generic event's config keeps the type of the PMU that it is for, when the machine has
 * several (include/uapi/linux/perf_event.h, PERF_PMU_TYPE_SHIFT, 5.13). */
#define PMU_TYPE_SHIFT 32

#define CACHE(cache, op, result)                                                              \
	((uint64_t)PERF_COUNT_HW_CACHE_##cache | (uint64_t)PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 (uint64_t)PERF_COUNT_HW_CACHE_RESULT_##result << 16)

#define CYCLES	     "cycles"
#define INSTRUCTIONS "instructions"
#define EVENTS	     "events"
#define NS	     "ns"

struct known {
	const char *name;
	const char *alias; /* a second name; NULL: none */
	uint32_t type;
	uint64_t config;
	const char *unit;
	const char *ratio_of;
	const char *ratio_desc;
	double ratio_mul;
};

/* bpftool's six, in its order, with its ratios: its output is made of these. */
static const struct known bpftool_metrics[] = {
	{"cycles", "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, CYCLES, NULL, NULL,
	 0},
	{"instructions", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, INSTRUCTIONS,
	 "cycles", "insns per cycle", 1},
	{"l1d_loads", NULL, PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS), EVENTS, NULL, NULL, 0},
	{"llc_misses", NULL, PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS), EVENTS, "instructions",
	 "LLC misses per million insns", 1e6},
	{"itlb_misses", NULL, PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, MISS), EVENTS, "instructions",
	 "itlb misses per million insns", 1e6},
	{"dtlb_misses", NULL, PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS), EVENTS, "instructions",
	 "dtlb misses per million insns", 1e6},
};

static const struct known clock_metric = {.name = "ns", .unit = NS};

/* perf's names of the kernel's perf_hw_id; cycles and instructions are above. */
static const struct known hardware_metrics[] = {
	{.name = "branch-instructions",
	 .alias = "branches",
	 .config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	 .unit = EVENTS},
	{.name = "branch-misses", .config = PERF_COUNT_HW_BRANCH_MISSES, .unit = EVENTS},
	{.name = "bus-cycles", .config = PERF_COUNT_HW_BUS_CYCLES, .unit = CYCLES},
	{.name = "cache-misses", .config = PERF_COUNT_HW_CACHE_MISSES, .unit = EVENTS},
	{.name = "cache-references", .config = PERF_COUNT_HW_CACHE_REFERENCES, .unit = EVENTS},
	{.name = "ref-cycles", .config = PERF_COUNT_HW_REF_CPU_CYCLES, .unit = CYCLES},
	{.name = "stalled-cycles-backend",
	 .alias = "idle-cycles-backend",
	 .config = PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	 .unit = CYCLES},
	{.name = "stalled-cycles-frontend",
	 .alias = "idle-cycles-frontend",
	 .config = PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	 .unit = CYCLES},
};

/* perf's names of the kernel's perf_sw_ids; dummy and bpf-output count nothing. */
static const struct known software_metrics[] = {
	{.name = "alignment-faults", .config = PERF_COUNT_SW_ALIGNMENT_FAULTS, .unit = EVENTS},
	{.name = "cgroup-switches", .config = PERF_COUNT_SW_CGROUP_SWITCHES, .unit = EVENTS},
	{.name = "context-switches",
	 .alias = "cs",
	 .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
	 .unit = EVENTS},
	{.name = "cpu-clock", .config = PERF_COUNT_SW_CPU_CLOCK, .unit = NS},
	{.name = "cpu-migrations",
	 .alias = "migrations",
	 .config = PERF_COUNT_SW_CPU_MIGRATIONS,
	 .unit = EVENTS},
	{.name = "emulation-faults", .config = PERF_COUNT_SW_EMULATION_FAULTS, .unit = EVENTS},
	{.name = "major-faults", .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ, .unit = EVENTS},
	{.name = "minor-faults", .config = PERF_COUNT_SW_PAGE_FAULTS_MIN, .unit = EVENTS},
	{.name = "page-faults",
	 .alias = "faults",
	 .config = PERF_COUNT_SW_PAGE_FAULTS,
	 .unit = EVENTS},
	{.name = "task-clock", .config = PERF_COUNT_SW_TASK_CLOCK, .unit = NS},
};

/* The caches, and what can be asked of each: the pairs for which perf has a name. */
#define OP(op) (1U << PERF_COUNT_HW_CACHE_OP_##op)

static const struct {
	const char *name;
	uint64_t id;
	unsigned int ops;
} caches[] = {
	{"L1-dcache", PERF_COUNT_HW_CACHE_L1D, OP(READ) | OP(WRITE) | OP(PREFETCH)},
	{"L1-icache", PERF_COUNT_HW_CACHE_L1I, OP(READ) | OP(PREFETCH)},
	{"LLC", PERF_COUNT_HW_CACHE_LL, OP(READ) | OP(WRITE) | OP(PREFETCH)},
	{"branch", PERF_COUNT_HW_CACHE_BPU, OP(READ)},
	{"dTLB", PERF_COUNT_HW_CACHE_DTLB, OP(READ) | OP(WRITE) | OP(PREFETCH)},
	{"iTLB", PERF_COUNT_HW_CACHE_ITLB, OP(READ)},
	{"node", PERF_COUNT_HW_CACHE_NODE, OP(READ) | OP(WRITE) | OP(PREFETCH)},
};

static const struct {
	uint64_t op;
	const char *accesses;
	const char *misses;
} cache_ops[] = {
	{PERF_COUNT_HW_CACHE_OP_READ, "loads", "load-misses"},
	{PERF_COUNT_HW_CACHE_OP_WRITE, "stores", "store-misses"},
	{PERF_COUNT_HW_CACHE_OP_PREFETCH, "prefetches", "prefetch-misses"},
};

static const char *const family_names[METRIC_FAMILIES] = {
	[METRIC_BPFTOOL] = "bpftool",	[METRIC_CLOCK] = "clock",
	[METRIC_HARDWARE] = "hardware", [METRIC_CACHE] = "cache",
	[METRIC_SOFTWARE] = "software", [METRIC_RAW] = "raw",
	[METRIC_PMU] = "pmu",
};

const char *metrics__family(enum metric_family family)
{
	return family_names[family];
}

/* ---- the tables as one list ---- */

#define CACHE_NAME_MAX 40

/* Fills *k with entry @i of @family, and @name, of CACHE_NAME_MAX bytes, with a name that has to be
 * put together. False after the last entry. */
static bool entry(enum metric_family family, size_t i, struct known *k, char *name)
{
	size_t c, o, miss;

	switch (family) {
	case METRIC_BPFTOOL:
		if (i >= ARRAY_SIZE(bpftool_metrics))
			return false;
		*k = bpftool_metrics[i];
		return true;
	case METRIC_CLOCK:
		*k = clock_metric;
		return i == 0;
	case METRIC_HARDWARE:
		if (i >= ARRAY_SIZE(hardware_metrics))
			return false;
		*k = hardware_metrics[i];
		k->type = PERF_TYPE_HARDWARE;
		return true;
	case METRIC_SOFTWARE:
		if (i >= ARRAY_SIZE(software_metrics))
			return false;
		*k = software_metrics[i];
		k->type = PERF_TYPE_SOFTWARE;
		return true;
	case METRIC_CACHE:
		for (c = 0; c < ARRAY_SIZE(caches); c++) {
			for (o = 0; o < ARRAY_SIZE(cache_ops); o++) {
				if (!(caches[c].ops >> cache_ops[o].op & 1))
					continue;
				for (miss = 0; miss < 2; miss++) {
					if (i--)
						continue;
					snprintf(name, CACHE_NAME_MAX, "%s-%s", caches[c].name,
						 miss ? cache_ops[o].misses
						      : cache_ops[o].accesses);
					memset(k, 0, sizeof(*k));
					k->name = name;
					k->type = PERF_TYPE_HW_CACHE;
					k->config = caches[c].id | cache_ops[o].op << 8 |
						    (uint64_t)miss << 16;
					k->unit = EVENTS;
					return true;
				}
			}
		}
		return false;
	default:
		return false;
	}
}

/* The first entry that is called exactly @word. bpftool's names are as bpftool writes them; perf
 * does not tell upper from lower case. */
static bool find(const char *word, enum metric_family *family, struct known *k, char *name)
{
	size_t i;

	for (*family = 0; *family < METRIC_FAMILIES; (*family)++) {
		for (i = 0; entry(*family, i, k, name); i++) {
			if (!strcmp(word, k->name) || (k->alias && !strcasecmp(word, k->alias)))
				return true;
			if (*family > METRIC_CLOCK && !strcasecmp(word, k->name))
				return true;
		}
	}
	return false;
}

/* The first of bpftool's metrics, or ns, that @word is a beginning of. */
static bool find_prefix(const char *word, enum metric_family *family, struct known *k, char *name)
{
	size_t i;

	if (!*word)
		return false;
	for (*family = METRIC_BPFTOOL; *family <= METRIC_CLOCK; (*family)++) {
		for (i = 0; entry(*family, i, k, name); i++) {
			if (!strncmp(word, k->name, strlen(word)))
				return true;
		}
	}
	return false;
}

/* ---- metrics ---- */

void metrics__free(struct metric *m)
{
	size_t i;

	for (i = 0; i < m->n_events; i++) {
		free(m->events[i].pmu);
		cpus__free(&m->events[i].cpus);
	}
	free(m->events);
	free(m->name);
	memset(m, 0, sizeof(*m));
}

static int add_event(struct metric *m, const struct perf_event_attr *attr, const struct pmu *pmu)
{
	struct metric_event *more, *e;

	more = realloc(m->events, (m->n_events + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	m->events = more;
	e = &more[m->n_events];
	memset(e, 0, sizeof(*e));
	m->n_events++;
	e->attr = *attr;
	e->attr.size = sizeof(e->attr);
	if (!pmu)
		return 0;
	e->pmu = strdup(pmu->name);
	if (!e->pmu)
		return -ENOMEM;
	e->some_cpus = pmu->some_cpus;
	return cpus__copy(&e->cpus, &pmu->cpus);
}

/*
 * One event that the kernel finds the PMU for, or, where there are several kinds of CPUs, an event
 * for each kind: on such a machine the kernel takes an event without a PMU's type for one of them.
 */
static int add_core_events(struct metric *m, const struct perf_event_attr *attr,
			   const char *sysfs_root, struct errmsg *err)
{
	struct pmu_names names = {};
	struct perf_event_attr one;
	struct pmu *pmus = NULL;
	size_t i, n_core = 0;
	char why[128];
	int rc;

	rc = pmu__list(&names, sysfs_root);
	if (rc) {
		errmsg__fail(err, rc, "cannot list the PMUs in %s: %s", sysfs_root,
			     errmsg__errno(rc, why, sizeof(why)));
		goto cleanup;
	}
	pmus = calloc(names.n ? names.n : 1, sizeof(*pmus));
	if (!pmus) {
		rc = -ENOMEM;
		goto cleanup;
	}
	for (i = 0; i < names.n; i++) {
		rc = pmu__read(&pmus[n_core], sysfs_root, names.names[i], err);
		if (rc == -ENOENT)
			continue;
		if (rc)
			goto cleanup;
		if (pmus[n_core].kind == PMU_CORE && pmus[n_core].some_cpus)
			n_core++;
		else
			pmu__free(&pmus[n_core]);
	}
	if (n_core < 2) {
		rc = add_event(m, attr, NULL);
		goto cleanup;
	}
	for (i = 0; i < n_core; i++) {
		one = *attr;
		/* perf_init_event() looks for a PMU's type in the config of these two only. */
		if (one.type == PERF_TYPE_HARDWARE || one.type == PERF_TYPE_HW_CACHE)
			one.config |= (uint64_t)pmus[i].type << PMU_TYPE_SHIFT;
		else
			one.type = pmus[i].type;
		rc = add_event(m, &one, &pmus[i]);
		if (rc)
			goto cleanup;
	}
cleanup:
	for (i = 0; pmus && i < names.n; i++)
		pmu__free(&pmus[i]);
	free(pmus);
	pmu__free_names(&names);
	return rc;
}

/* perf's modifiers: those levels are counted that are named. Without any, all but user mode: a BPF
 * program never runs there, and bpftool does the same. */
static int apply_modifiers(const char *word, const char *modifiers, struct perf_event_attr *attr,
			   struct errmsg *err)
{
	attr->exclude_user = 1;
	if (!*modifiers)
		return 0;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	for (; *modifiers; modifiers++) {
		switch (*modifiers) {
		case 'u':
			attr->exclude_user = 0;
			break;
		case 'k':
			attr->exclude_kernel = 0;
			break;
		case 'h':
			attr->exclude_hv = 0;
			break;
		default:
			return errmsg__usage(
				err,
				"metric '%s': unknown modifier '%c'; the modifiers are "
				"u, k and h",
				word, *modifiers);
		}
	}
	return 0;
}

static int from_known(const char *word, enum metric_family family, const struct known *k,
		      const char *modifiers, const char *sysfs_root, struct metric *m,
		      struct errmsg *err)
{
	struct perf_event_attr attr = {.type = k->type, .config = k->config};
	int rc;

	m->family = family;
	m->unit = k->unit;
	m->ratio_of = k->ratio_of;
	m->ratio_desc = k->ratio_desc;
	m->ratio_mul = k->ratio_mul;
	if (asprintf(&m->name, "%s%s%s", k->name, modifiers ? ":" : "",
		     modifiers ? modifiers : "") < 0) {
		m->name = NULL;
		return -ENOMEM;
	}
	if (family == METRIC_CLOCK) {
		if (modifiers)
			return errmsg__usage(err,
					     "metric '%s': the clock knows no modes, so '%s' takes "
					     "no modifier",
					     word, k->name);
		m->clock = true;
		return 0;
	}
	rc = apply_modifiers(word, modifiers ? modifiers : "", &attr, err);
	if (rc)
		return rc;
	if (family == METRIC_SOFTWARE)
		return add_event(m, &attr, NULL);
	return add_core_events(m, &attr, sysfs_root, err);
}

/* r and one to sixteen hexadecimal digits. */
static bool is_raw(const char *word, uint64_t *config)
{
	size_t i;

	if (word[0] != 'r')
		return false;
	for (i = 1; isxdigit((unsigned char)word[i]); i++)
		;
	if (word[i] || i < 2 || i > 17)
		return false;
	*config = strtoull(word + 1, NULL, 16);
	return true;
}

static int from_raw(const char *word, uint64_t config, const char *modifiers,
		    const char *sysfs_root, struct metric *m, struct errmsg *err)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_RAW, .config = config};
	int rc;

	m->family = METRIC_RAW;
	m->unit = EVENTS;
	m->name = strdup(word);
	if (!m->name)
		return -ENOMEM;
	rc = apply_modifiers(word, modifiers ? modifiers : "", &attr, err);
	if (rc)
		return rc;
	return add_core_events(m, &attr, sysfs_root, err);
}

static int unknown_pmu(const char *word, const char *name, const char *sysfs_root,
		       struct errmsg *err)
{
	struct suggest s = {.word = name};
	struct pmu_names names = {};
	const char *best;
	size_t i;
	int rc;

	if (!pmu__list(&names, sysfs_root)) {
		for (i = 0; i < names.n; i++)
			suggest__offer(&s, names.names[i]);
	}
	best = suggest__best(&s);
	if (best)
		rc = errmsg__usage(err, "metric '%s': there is no PMU '%s'; did you mean '%s'?",
				   word, name, best);
	else
		rc = errmsg__usage(err,
				   "metric '%s': there is no PMU '%s'; 'bpfcost metric list' shows "
				   "what there is",
				   word, name);
	pmu__free_names(&names);
	return rc;
}

/* pmu/terms/ with modifiers behind the last slash. */
static int from_pmu(const char *word, const char *sysfs_root, struct metric *m, struct errmsg *err)
{
	char *copy, *terms, *modifiers, *name = NULL;
	struct perf_event_attr attr = {};
	struct pmu pmu = {};
	int rc;

	copy = strdup(word);
	if (!copy)
		return -ENOMEM;
	terms = strchr(copy, '/');
	*terms++ = '\0';
	modifiers = strrchr(terms, '/');
	if (!modifiers) {
		rc = errmsg__usage(err, "metric '%s': there is no '/' at its end", word);
		goto cleanup;
	}
	*modifiers++ = '\0';
	if (*modifiers == ':')
		modifiers++;

	rc = pmu__read(&pmu, sysfs_root, copy, err);
	if (rc == -ENOENT)
		rc = unknown_pmu(word, copy, sysfs_root, err);
	if (rc)
		goto cleanup;
	if (pmu.kind == PMU_UNCORE) {
		rc = errmsg__usage(err,
				   "metric '%s': the PMU '%s' counts for many CPUs at once (it has "
				   "a cpumask), so it cannot say what one run costs",
				   word, pmu.name);
		goto cleanup;
	}
	rc = add_event(m, &attr, &pmu);
	if (rc)
		goto cleanup;
	rc = pmu__encode(&pmu, sysfs_root, terms, &m->events[0], &name, err);
	if (rc)
		goto cleanup;
	/* Other PMUs have no notion of modes, and refuse events that ask for one
	 * (PERF_PMU_CAP_NO_EXCLUDE). */
	if (pmu.kind == PMU_CORE || *modifiers)
		rc = apply_modifiers(word, modifiers, &m->events[0].attr, err);
	if (rc)
		goto cleanup;
	m->family = METRIC_PMU;
	m->unit = EVENTS;
	if (name) {
		m->name = name;
		name = NULL;
	} else {
		m->name = strdup(word);
		rc = m->name ? 0 : -ENOMEM;
	}
cleanup:
	pmu__free(&pmu);
	free(name);
	free(copy);
	return rc;
}

/* The event of a PMU that is called so, for people who forget the slashes. */
static bool find_pmu_event(const char *word, const char *sysfs_root, struct suggest *s)
{
	struct pmu_names names = {}, events;
	bool found = false;
	size_t i, k;

	if (pmu__list(&names, sysfs_root))
		return false;
	for (i = 0; !found && i < names.n; i++) {
		if (pmu__events(&events, sysfs_root, names.names[i]))
			continue;
		for (k = 0; !found && k < events.n; k++) {
			found = !strcmp(events.names[k], word);
			if (found)
				snprintf(s->best, sizeof(s->best), "%s/%s/", names.names[i], word);
		}
		pmu__free_names(&events);
	}
	pmu__free_names(&names);
	s->distance = found;
	return found;
}

static int unknown(const char *word, const char *base, const char *sysfs_root, struct errmsg *err)
{
	struct suggest s = {.word = base};
	enum metric_family family;
	char name[CACHE_NAME_MAX];
	struct known k;
	size_t i;

	if (!*base)
		return errmsg__usage(err, "there is no metric '%s'", word);
	if (!find_pmu_event(base, sysfs_root, &s)) {
		for (family = 0; family < METRIC_FAMILIES; family++) {
			for (i = 0; entry(family, i, &k, name); i++) {
				suggest__offer(&s, k.name);
				if (k.alias)
					suggest__offer(&s, k.alias);
			}
		}
	}
	if (suggest__best(&s))
		return errmsg__usage(err, "unknown metric '%s'; did you mean '%s'?", word,
				     suggest__best(&s));
	return errmsg__usage(
		err, "unknown metric '%s'; 'bpfcost metric list' shows those there are", word);
}

int metrics__parse(const char *word, const char *sysfs_root, struct metric *m, struct errmsg *err)
{
	enum metric_family family = METRIC_RAW;
	char *base = NULL, *modifiers = NULL, name[CACHE_NAME_MAX];
	uint64_t config = 0;
	struct known k;
	int rc;

	memset(m, 0, sizeof(*m));
	if (strchr(word, '/')) {
		rc = from_pmu(word, sysfs_root, m, err);
		goto cleanup;
	}
	base = strdup(word);
	if (!base) {
		rc = -ENOMEM;
		goto cleanup;
	}
	modifiers = strchr(base, ':');
	if (modifiers)
		*modifiers++ = '\0';
	if (modifiers && !*modifiers)
		rc = errmsg__usage(err, "metric '%s': there is no modifier after the ':'", word);
	else if (find(base, &family, &k, name) ||
		 (!modifiers && find_prefix(base, &family, &k, name)))
		rc = from_known(word, family, &k, modifiers, sysfs_root, m, err);
	else if (is_raw(base, &config))
		rc = from_raw(word, config, modifiers, sysfs_root, m, err);
	else
		rc = unknown(word, base, sysfs_root, err);
cleanup:
	free(base);
	if (rc)
		metrics__free(m);
	if (rc == -ENOMEM)
		errmsg__fail(err, rc, "metric '%s': out of memory", word);
	return rc;
}

int metrics__each(const char *sysfs_root, metrics__fn fn, void *data)
{
	char name[CACHE_NAME_MAX], *word;
	struct pmu_names pmus = {}, events;
	struct errmsg err;
	enum metric_family family;
	struct metric m;
	struct known k;
	size_t i, n;
	int rc;

	for (family = 0; family < METRIC_FAMILIES; family++) {
		for (i = 0; entry(family, i, &k, name); i++) {
			memset(&err, 0, sizeof(err));
			rc = metrics__parse(k.name, sysfs_root, &m, &err);
			if (rc == -ENOMEM)
				return rc;
			rc = fn(k.name, family, k.alias ? k.alias : "", rc ? NULL : &m,
				rc ? err.text : NULL, data);
			metrics__free(&m);
			if (rc)
				return rc;
		}
	}

	rc = pmu__list(&pmus, sysfs_root);
	for (i = 0; !rc && i < pmus.n; i++) {
		rc = pmu__events(&events, sysfs_root, pmus.names[i]);
		for (n = 0; !rc && n < events.n; n++) {
			if (asprintf(&word, "%s/%s/", pmus.names[i], events.names[n]) < 0) {
				rc = -ENOMEM;
				break;
			}
			memset(&err, 0, sizeof(err));
			rc = metrics__parse(word, sysfs_root, &m, &err);
			if (rc != -ENOMEM)
				rc = fn(word, METRIC_PMU, "", rc ? NULL : &m, rc ? err.text : NULL,
					data);
			metrics__free(&m);
			free(word);
		}
		pmu__free_names(&events);
	}
	pmu__free_names(&pmus);
	return rc;
}

int metric_event__cpus(const struct metric_event *e, const char *sysfs_root, struct cpus *cpus)
{
	struct pmu pmu;
	int rc;

	if (!e->some_cpus)
		return 0;
	rc = pmu__read(&pmu, sysfs_root, e->pmu, NULL);
	if (rc)
		return rc;
	cpus__free(cpus);
	*cpus = pmu.cpus;
	memset(&pmu.cpus, 0, sizeof(pmu.cpus));
	pmu__free(&pmu);
	return 1;
}
