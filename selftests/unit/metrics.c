// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Words and the events they stand for, on machines that exist as files only. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ktap.h"
#include "metrics.h"
#include "unit.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A metric as one line: what a test expects is such a line, or the error message. */
static void describe(const struct metric *m, char *text, size_t size)
{
	const struct metric_event *e;
	size_t i, len;
	char cpus[64];

	len = (size_t)snprintf(text, size, "%s %s", m->name, metrics__family(m->family));
	if (m->clock)
		len += (size_t)snprintf(text + len, size - len, " clock");
	for (i = 0; i < m->n_events && len < size; i++) {
		e = &m->events[i];
		len += (size_t)snprintf(text + len, size - len, "; %u:0x%llx", e->attr.type,
					(unsigned long long)e->attr.config);
		if (e->attr.config1 && len < size)
			len += (size_t)snprintf(text + len, size - len, ",1:0x%llx",
						(unsigned long long)e->attr.config1);
		if (e->attr.config2 && len < size)
			len += (size_t)snprintf(text + len, size - len, ",2:0x%llx",
						(unsigned long long)e->attr.config2);
		if (e->config3 && len < size)
			len += (size_t)snprintf(text + len, size - len, ",3:0x%" PRIx64,
						e->config3);
		if (len < size)
			len += (size_t)snprintf(text + len, size - len, " %s%s%s",
						e->attr.exclude_user ? "" : "u",
						e->attr.exclude_kernel ? "" : "k",
						e->attr.exclude_hv ? "" : "h");
		if (e->pmu && len < size)
			len += (size_t)snprintf(text + len, size - len, " %s", e->pmu);
		if (e->some_cpus && len < size)
			len += (size_t)snprintf(text + len, size - len, " [%s]",
						cpus__format(&e->cpus, cpus, sizeof(cpus)));
	}
}

struct expectation {
	const char *word;
	const char *result;
};

static bool check(const char *tree, const struct expectation *list, size_t n)
{
	char root[4096], text[4096];
	struct errmsg err;
	struct metric m;
	bool ok = true;
	size_t i;
	int rc;

	unit_tree(tree, root, sizeof(root));
	for (i = 0; i < n; i++) {
		memset(&err, 0, sizeof(err));
		rc = metrics__parse(list[i].word, root, &m, &err);
		if (rc)
			snprintf(text, sizeof(text), "%s%s",
				 err.status == EXIT_USAGE ? "usage: " : "error: ", err.text);
		else
			describe(&m, text, sizeof(text));
		if (rc && (m.name || m.events || m.n_events)) {
			ktap_note("'%s': something is left after an error", list[i].word);
			ok = false;
		}
		metrics__free(&m);
		if (strcmp(text, list[i].result)) {
			ktap_note("%s: '%s':\n  expected %s\n  seen     %s", tree, list[i].word,
				  list[i].result, text);
			ok = false;
		}
	}
	unit_tree_remove(root);
	return ok;
}

#define CHECK(tree, list) check(tree, list, ARRAY_SIZE(list))

/* The six of bpftool: types, configurations, and exclude_user are those of its table. */
static const struct expectation bpftool_names[] = {
	{"cycles", "cycles bpftool; 0:0x0 kh"},
	{"instructions", "instructions bpftool; 0:0x1 kh"},
	{"l1d_loads", "l1d_loads bpftool; 3:0x0 kh"},
	{"llc_misses", "llc_misses bpftool; 3:0x10002 kh"},
	{"itlb_misses", "itlb_misses bpftool; 3:0x10004 kh"},
	{"dtlb_misses", "dtlb_misses bpftool; 3:0x10003 kh"},
	{"ns", "ns clock clock"},
};

static const struct expectation prefixes[] = {
	{"c", "cycles bpftool; 0:0x0 kh"},
	{"cyc", "cycles bpftool; 0:0x0 kh"},
	{"i", "instructions bpftool; 0:0x1 kh"},
	{"in", "instructions bpftool; 0:0x1 kh"},
	{"it", "itlb_misses bpftool; 3:0x10004 kh"},
	{"l", "l1d_loads bpftool; 3:0x0 kh"},
	{"l1", "l1d_loads bpftool; 3:0x0 kh"},
	{"ll", "llc_misses bpftool; 3:0x10002 kh"},
	{"d", "dtlb_misses bpftool; 3:0x10003 kh"},
	{"n", "ns clock clock"},
	/* exact names of others win */
	{"cs", "context-switches software; 1:0x3 kh"},
	/* only bpftool's and ns are taken by a beginning */
	{"page", "usage: unknown metric 'page'; 'bpfcost metric list' shows those there are"},
	{"C", "usage: unknown metric 'C'; 'bpfcost metric list' shows those there are"},
	{"", "usage: there is no metric ''"},
};

static const struct expectation perf_names[] = {
	{"cpu-cycles", "cycles bpftool; 0:0x0 kh"},
	{"branch-instructions", "branch-instructions hardware; 0:0x4 kh"},
	{"branches", "branch-instructions hardware; 0:0x4 kh"},
	{"branch-misses", "branch-misses hardware; 0:0x5 kh"},
	{"bus-cycles", "bus-cycles hardware; 0:0x6 kh"},
	{"cache-references", "cache-references hardware; 0:0x2 kh"},
	{"cache-misses", "cache-misses hardware; 0:0x3 kh"},
	{"stalled-cycles-frontend", "stalled-cycles-frontend hardware; 0:0x7 kh"},
	{"idle-cycles-backend", "stalled-cycles-backend hardware; 0:0x8 kh"},
	{"ref-cycles", "ref-cycles hardware; 0:0x9 kh"},
	{"L1-dcache-loads", "L1-dcache-loads cache; 3:0x0 kh"},
	{"l1-dcache-loads", "L1-dcache-loads cache; 3:0x0 kh"},
	{"L1-dcache-load-misses", "L1-dcache-load-misses cache; 3:0x10000 kh"},
	{"L1-dcache-store-misses", "L1-dcache-store-misses cache; 3:0x10100 kh"},
	{"L1-icache-prefetches", "L1-icache-prefetches cache; 3:0x201 kh"},
	{"LLC-prefetch-misses", "LLC-prefetch-misses cache; 3:0x10202 kh"},
	{"dTLB-stores", "dTLB-stores cache; 3:0x103 kh"},
	{"iTLB-load-misses", "iTLB-load-misses cache; 3:0x10004 kh"},
	{"branch-loads", "branch-loads cache; 3:0x5 kh"},
	{"node-store-misses", "node-store-misses cache; 3:0x10106 kh"},
	{"page-faults", "page-faults software; 1:0x2 kh"},
	{"faults", "page-faults software; 1:0x2 kh"},
	{"minor-faults", "minor-faults software; 1:0x5 kh"},
	{"major-faults", "major-faults software; 1:0x6 kh"},
	{"alignment-faults", "alignment-faults software; 1:0x7 kh"},
	{"emulation-faults", "emulation-faults software; 1:0x8 kh"},
	{"cpu-clock", "cpu-clock software; 1:0x0 kh"},
	{"task-clock", "task-clock software; 1:0x1 kh"},
	{"migrations", "cpu-migrations software; 1:0x4 kh"},
	{"cgroup-switches", "cgroup-switches software; 1:0xb kh"},
	/* what perf has no name for */
	{"iTLB-stores", "usage: unknown metric 'iTLB-stores'; did you mean 'dTLB-stores'?"},
	{"L1-icache-stores",
	 "usage: unknown metric 'L1-icache-stores'; did you mean 'L1-dcache-stores'?"},
};

static const struct expectation raw[] = {
	{"r1", "r1 raw; 4:0x1 kh"},
	{"r01c2", "r01c2 raw; 4:0x1c2 kh"},
	{"rFFFFffffFFFFffff", "rFFFFffffFFFFffff raw; 4:0xffffffffffffffff kh"},
	{"r10000000000000000", "usage: unknown metric 'r10000000000000000'; 'bpfcost metric list' "
			       "shows those there are"},
	{"r", "usage: unknown metric 'r'; 'bpfcost metric list' shows those there are"},
	{"r0x1", "usage: unknown metric 'r0x1'; 'bpfcost metric list' shows those there are"},
	{"r-1", "usage: unknown metric 'r-1'; 'bpfcost metric list' shows those there are"},
};

static const struct expectation modifiers[] = {
	{"cycles:u", "cycles:u bpftool; 0:0x0 u"},
	{"cycles:k", "cycles:k bpftool; 0:0x0 k"},
	{"cycles:hk", "cycles:hk bpftool; 0:0x0 kh"},
	{"branches:uk", "branch-instructions:uk hardware; 0:0x4 uk"},
	{"r3c:k", "r3c:k raw; 4:0x3c k"},
	{"cpu/cpu-cycles/k", "cpu/cpu-cycles/k pmu; 4:0x3c k cpu"},
	{"cpu/cpu-cycles/:ku", "cpu/cpu-cycles/:ku pmu; 4:0x3c uk cpu"},
	{"cycles:", "usage: metric 'cycles:': there is no modifier after the ':'"},
	{"cycles:x",
	 "usage: metric 'cycles:x': unknown modifier 'x'; the modifiers are u, k and h"},
	{"cycles:pp",
	 "usage: metric 'cycles:pp': unknown modifier 'p'; the modifiers are u, k and h"},
	{"ns:k", "usage: metric 'ns:k': the clock knows no modes, so 'ns' takes no modifier"},
	{"c:k", "usage: unknown metric 'c:k'; 'bpfcost metric list' shows those there are"},
	{"cylces:k", "usage: unknown metric 'cylces:k'; did you mean 'cycles'?"},
};

static const struct expectation pmu_terms[] = {
	{"cpu/cpu-cycles/", "cpu/cpu-cycles/ pmu; 4:0x3c kh cpu"},
	{"cpu/cache-misses/", "cpu/cache-misses/ pmu; 4:0x412e kh cpu"},
	{"cpu/event=0x3c,umask=1/", "cpu/event=0x3c,umask=1/ pmu; 4:0x13c kh cpu"},
	{"cpu/event=60,umask=010/", "cpu/event=60,umask=010/ pmu; 4:0xa3c kh cpu"},
	/* bits 0 to 7 and 32 to 35 */
	{"cpu/event=0xabc/", "cpu/event=0xabc/ pmu; 4:0xa000000bc kh cpu"},
	{"cpu/event=0x1c2,inv,cmask=0x10,any/",
	 "cpu/event=0x1c2,inv,cmask=0x10,any/ pmu; 4:0x110a000c2 kh cpu"},
	/* an event with a term of one's own; the last word counts */
	{"cpu/cache-misses,umask=1/", "cpu/cache-misses,umask=1/ pmu; 4:0x12e kh cpu"},
	{"cpu/config=0x1234,config1=5,config2=6,config3=7/",
	 "cpu/config=0x1234,config1=5,config2=6,config3=7/ pmu; 4:0x1234,1:0x5,2:0x6,3:0x7 kh "
	 "cpu"},
	{"cpu/event=0x3c,name=mine/", "mine pmu; 4:0x3c kh cpu"},
	{"cpu/event=0x1000/", "usage: PMU 'cpu': event=0x1000 does not fit: it has 12 bits"},
	{"cpu/inv=2/", "usage: PMU 'cpu': inv=0x2 does not fit: it has 1 bit"},
	{"cpu/event=/", "usage: PMU 'cpu': no value in 'event='"},
	{"cpu/=1/", "usage: PMU 'cpu': no name in '='"},
	{"cpu/event=1,/", "usage: PMU 'cpu': no name in ''"},
	{"cpu/event=-1/", "usage: PMU 'cpu': event=-1: not a number"},
	{"cpu/event=0x/", "usage: PMU 'cpu': event=0x: not a number"},
	{"cpu/event=fc/", "usage: PMU 'cpu': event=fc: not a number"},
	{"cpu/event=18446744073709551616/",
	 "usage: PMU 'cpu': event=18446744073709551616: more than 64 bits"},
	{"cpu/config/", "usage: PMU 'cpu': 'config' needs a value"},
	{"cpu//", "usage: PMU 'cpu': there is no event between the slashes"},
	{"cpu/cpu-cycles", "usage: metric 'cpu/cpu-cycles': there is no '/' at its end"},
	{"cpu/cpu-cylces/",
	 "usage: PMU 'cpu' has no event or term 'cpu-cylces'; did you mean 'cpu-cycles'?"},
	{"cpu/umsk=1/", "usage: PMU 'cpu' has no event or term 'umsk'; did you mean 'umask'?"},
	{"cpu/nothing/", "usage: PMU 'cpu' has no event or term 'nothing'; 'bpfcost metric list' "
			 "shows its events"},
	{"cpu/../../type/", "usage: PMU 'cpu' has no event or term '../../type'; 'bpfcost metric "
			    "list' shows its events"},
	{"cup/cpu-cycles/",
	 "usage: metric 'cup/cpu-cycles/': there is no PMU 'cup'; did you mean 'cpu'?"},
	{"../cpu-cycles/", "usage: metric '../cpu-cycles/': there is no PMU '..'; 'bpfcost metric "
			   "list' shows what there is"},
	{"/cpu-cycles/", "usage: metric '/cpu-cycles/': there is no PMU ''; 'bpfcost metric list' "
			 "shows what there is"},
};

/* A generic event carries the type of the PMU in its upper half; others are of that type. */
static const struct expectation hybrid[] = {
	{"cycles", "cycles bpftool; 0:0xa00000000 kh cpu_atom [8-15]; 0:0x400000000 kh cpu_core "
		   "[0-7]"},
	{"llc_misses", "llc_misses bpftool; 3:0xa00010002 kh cpu_atom [8-15]; 3:0x400010002 kh "
		       "cpu_core [0-7]"},
	{"branch-misses", "branch-misses hardware; 0:0xa00000005 kh cpu_atom [8-15]; "
			  "0:0x400000005 kh cpu_core [0-7]"},
	{"rc0", "rc0 raw; 10:0xc0 kh cpu_atom [8-15]; 4:0xc0 kh cpu_core [0-7]"},
	{"page-faults", "page-faults software; 1:0x2 kh"},
	{"ns", "ns clock clock"},
	{"cpu_core/slots/", "cpu_core/slots/ pmu; 4:0x400 kh cpu_core [0-7]"},
	{"cpu_atom/mem-loads/", "cpu_atom/mem-loads/ pmu; 10:0x1cd,1:0x3 kh cpu_atom [8-15]"},
	{"cpu_atom/slots/", "usage: PMU 'cpu_atom' has no event or term 'slots'; 'bpfcost metric "
			    "list' shows its events"},
	{"slots", "usage: unknown metric 'slots'; did you mean 'cpu_core/slots/'?"},
	/* no modes there: not even the default */
	{"msr/tsc/", "msr/tsc/ pmu; 9:0x0 ukh msr"},
	{"msr/tsc/k", "msr/tsc/k pmu; 9:0x0 k msr"},
	{"msr/cpu_thermal_margin/",
	 "usage: msr/cpu_thermal_margin/ is a reading of the moment, not a count: there is no "
	 "difference between two of them to measure"},
	{"uncore_imc_0/cas_count_read/",
	 "usage: metric 'uncore_imc_0/cas_count_read/': the PMU 'uncore_imc_0' counts for many "
	 "CPUs at once (it has a cpumask), so it cannot say what one run costs"},
	{"uncore_imc_0/cas_count_read.scale/",
	 "usage: metric 'uncore_imc_0/cas_count_read.scale/': the PMU 'uncore_imc_0' counts for "
	 "many CPUs at once (it has a cpumask), so it cannot say what one run costs"},
	{"msr/cpu_thermal_margin.unit/", "usage: PMU 'msr' has no event or term "
					 "'cpu_thermal_margin.unit'; did you mean "
					 "'cpu_thermal_margin'?"},
};

static const struct expectation arm64[] = {
	{"cycles", "cycles bpftool; 0:0x0 kh"},
	{"r11", "r11 raw; 4:0x11 kh"},
	{"armv8_pmuv3_0/inst_retired/",
	 "armv8_pmuv3_0/inst_retired/ pmu; 8:0x8 kh armv8_pmuv3_0 [0-3]"},
	{"armv8_pmuv3_0/event=0x11,long/",
	 "armv8_pmuv3_0/event=0x11,long/ pmu; 8:0x11,1:0x1 kh armv8_pmuv3_0 [0-3]"},
	{"armv8_pmuv3/cpu_cycles/", "usage: metric 'armv8_pmuv3/cpu_cycles/': there is no PMU "
				    "'armv8_pmuv3'; did you mean 'armv8_pmuv3_0'?"},
	{"arm_spe_0/ts_enable/",
	 "usage: metric 'arm_spe_0/ts_enable/': the PMU 'arm_spe_0' counts for many CPUs at once "
	 "(it has a cpumask), so it cannot say what one run costs"},
};

static const struct expectation biglittle[] = {
	{"cycles", "cycles bpftool; 0:0x800000000 kh armv8_cortex_a53 [0-3]; 0:0x900000000 kh "
		   "armv8_cortex_a72 []"},
	{"r11", "r11 raw; 8:0x11 kh armv8_cortex_a53 [0-3]; 9:0x11 kh armv8_cortex_a72 []"},
};

static const struct expectation none[] = {
	{"cycles", "cycles bpftool; 0:0x0 kh"},
	{"r1", "r1 raw; 4:0x1 kh"},
	{"cpu/cycles/", "usage: metric 'cpu/cycles/': there is no PMU 'cpu'; 'bpfcost metric list' "
			"shows what there is"},
};

static const struct expectation broken[] = {
	{"notype/x/", "usage: metric 'notype/x/': there is no PMU 'notype'; 'bpfcost metric list' "
		      "shows what there is"},
	{"badtype/x/", "error: PMU 'badtype': its type is no number: 'four'"},
	{"hugetype/x/", "error: PMU 'hugetype': its type is no number: '4294967296'"},
	{"fmt/reversed=1/",
	 "error: PMU 'fmt': the format of 'reversed' is not understood: 'config:8-3'"},
	{"fmt/high=1/", "error: PMU 'fmt': the format of 'high' is not understood: 'config:0-64'"},
	{"fmt/where=1/",
	 "error: PMU 'fmt': the format of 'where' is not understood: 'config9:0-3'"},
	{"fmt/words=1/", "error: PMU 'fmt': the format of 'words' is not understood: 'hello'"},
	{"fmt/empty=1/", "error: PMU 'fmt': the format of 'empty' is not understood: ''"},
	{"fmt/overlap=1/",
	 "error: PMU 'fmt': the format of 'overlap' is not understood: 'config:0-3,2-5'"},
	{"fmt/tail=1/", "error: PMU 'fmt': the format of 'tail' is not understood: 'config:0-3x'"},
	{"fmt/comma=1/",
	 "error: PMU 'fmt': the format of 'comma' is not understood: 'config:0-3,'"},
	{"fmt/split=0x1fff/", "fmt/split=0x1fff/ pmu; 6:0xf002000ff ukh fmt"},
	{"fmt/split=0x2000/", "usage: PMU 'fmt': split=0x2000 does not fit: it has 13 bits"},
	{"fmt/three=0xf,one/", "fmt/three=0xf,one/ pmu; 6:0x0,2:0x200,3:0xf0 ukh fmt"},
	{"fmt/all=0xffffffffffffffff/",
	 "fmt/all=0xffffffffffffffff/ pmu; 6:0x0,1:0xffffffffffffffff ukh fmt"},
	{"fmt/fine/", "fmt/fine/ pmu; 6:0x800000001,2:0x200 ukh fmt"},
	{"fmt/loop/",
	 "usage: PMU 'fmt' has no event or term 'loop'; 'bpfcost metric list' shows its events"},
	{"fmt/parameter/", "usage: PMU 'fmt': the event takes a parameter, 'split'; write its "
			   "terms instead of its name"},
	{"fmt/garbage/", "usage: PMU 'fmt': no name in ''"},
	{"fmt/novalue/", "usage: PMU 'fmt': no value in 'split='"},
};

static const struct expectation broken_cpus[] = {
	{"cycles", "error: PMU 'cpu_atom': its list of CPUs is broken: '3-2'"},
	{"page-faults", "page-faults software; 1:0x2 kh"},
	{"cpu_core/config=1/", "cpu_core/config=1/ pmu; 4:0x1 kh cpu_core [0-1]"},
};

static bool test_ratios(void)
{
	static const struct {
		const char *name, *unit, *of, *text;
		double mul;
	} ratios[] = {
		{"cycles", "cycles", NULL, NULL, 0},
		{"instructions", "instructions", "cycles", "insns per cycle", 1},
		{"l1d_loads", "events", NULL, NULL, 0},
		{"llc_misses", "events", "instructions", "LLC misses per million insns", 1e6},
		{"itlb_misses", "events", "instructions", "itlb misses per million insns", 1e6},
		{"dtlb_misses", "events", "instructions", "dtlb misses per million insns", 1e6},
		{"ns", "ns", NULL, NULL, 0},
		{"task-clock", "ns", NULL, NULL, 0},
		{"r1", "events", NULL, NULL, 0},
	};
	struct metric m;
	bool ok = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ratios); i++) {
		if (metrics__parse(ratios[i].name, "/nowhere", &m, NULL))
			return false;
		ok &= !strcmp(m.unit, ratios[i].unit) && m.ratio_mul == ratios[i].mul;
		ok &= ratios[i].of ? m.ratio_of && !strcmp(m.ratio_of, ratios[i].of) &&
					     !strcmp(m.ratio_desc, ratios[i].text)
				   : !m.ratio_of && !m.ratio_desc;
		metrics__free(&m);
	}
	return ok;
}

struct seen {
	unsigned int n[METRIC_FAMILIES];
	unsigned int unencoded;
	const char *root;
	bool ok;
	unsigned int stop_at;
};

/* What the list shows is what the parser takes. */
static int see(const char *name, enum metric_family family, const char *aliases,
	       const struct metric *m, const char *why, void *data)
{
	struct seen *seen = data;
	struct errmsg err = {};
	struct metric again;
	unsigned int i, n = 0;

	seen->n[family]++;
	if (!m) {
		seen->unencoded++;
		seen->ok &= why && *why;
		return 0;
	}
	seen->ok &= !why && !strcmp(m->name, name) && m->family == family;
	if (*aliases) {
		if (metrics__parse(aliases, seen->root, &again, &err)) {
			ktap_note("alias %s: %s", aliases, err.text);
			seen->ok = false;
		} else {
			seen->ok &= !strcmp(again.name, name);
			metrics__free(&again);
		}
	}
	for (i = 0; i < METRIC_FAMILIES; i++)
		n += seen->n[i];
	return n == seen->stop_at ? 77 : 0;
}

static bool test_each(void)
{
	struct seen seen = {.ok = true}, stopped = {.ok = true, .stop_at = 3};
	char root[4096];
	int rc;

	unit_tree("hybrid", root, sizeof(root));
	seen.root = stopped.root = root;
	rc = metrics__each(root, see, &seen);
	ktap_note("%d: %u %u %u %u %u %u, %u not encoded", rc, seen.n[METRIC_BPFTOOL],
		  seen.n[METRIC_CLOCK], seen.n[METRIC_HARDWARE], seen.n[METRIC_CACHE],
		  seen.n[METRIC_SOFTWARE], seen.n[METRIC_PMU], seen.unencoded);
	/* 16 pairs of cache and operation, each accesses and misses; the uncore event and the
	 * reading of the moment are listed with the reason */
	seen.ok &= !rc && seen.n[METRIC_BPFTOOL] == 6 && seen.n[METRIC_CLOCK] == 1 &&
		   seen.n[METRIC_HARDWARE] == 8 && seen.n[METRIC_CACHE] == 32 &&
		   seen.n[METRIC_SOFTWARE] == 10 && seen.n[METRIC_PMU] == 8 && seen.unencoded == 2;
	seen.ok &= metrics__each(root, see, &stopped) == 77 && stopped.n[METRIC_BPFTOOL] == 3;
	unit_tree_remove(root);
	return seen.ok && stopped.ok;
}

/* A PMU gains CPUs when they come online. */
static bool test_cpus(void)
{
	struct cpus cpus = {};
	char root[4096], text[64];
	struct metric m;
	bool ok;

	unit_tree("biglittle", root, sizeof(root));
	if (metrics__parse("cycles", root, &m, NULL))
		return false;
	unit_write(root, "bus/event_source/devices/armv8_cortex_a72/cpus", "4-5");
	ok = metric_event__cpus(&m.events[1], root, &cpus) == 1 &&
	     !strcmp(cpus__format(&cpus, text, sizeof(text)), "4-5");
	metrics__free(&m);
	ok &= !metrics__parse("page-faults", root, &m, NULL) &&
	      metric_event__cpus(&m.events[0], root, &cpus) == 0;
	metrics__free(&m);
	cpus__free(&cpus);
	unit_tree_remove(root);
	return ok;
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 15);
	ktap_ok(&k, CHECK("sparse", bpftool_names), "bpftool's six, and ns");
	ktap_ok(&k, CHECK("sparse", prefixes), "beginnings, as bpftool takes them");
	ktap_ok(&k, CHECK("sparse", perf_names), "perf's generic events");
	ktap_ok(&k, CHECK("sparse", raw), "raw events");
	ktap_ok(&k, CHECK("sparse", modifiers), "modifiers");
	ktap_ok(&k, CHECK("sparse", pmu_terms), "pmu/event/ and pmu/term=value/");
	ktap_ok(&k, CHECK("hybrid", hybrid), "two kinds of cores: an event for each");
	ktap_ok(&k, CHECK("arm64", arm64), "an arm64 PMU that lists its CPUs");
	ktap_ok(&k, CHECK("biglittle", biglittle), "a kind of cores that is offline");
	ktap_ok(&k, CHECK("none", none), "no PMU at all");
	ktap_ok(&k, CHECK("broken", broken), "broken files");
	ktap_ok(&k, CHECK("broken-cpus", broken_cpus), "a broken list of CPUs");
	ktap_ok(&k, test_ratios(), "bpftool's ratios, and units");
	ktap_ok(&k, test_each(), "the list of all metrics");
	ktap_ok(&k, test_cpus(), "the CPUs of a PMU are read again");
	return ktap_end(&k);
}
