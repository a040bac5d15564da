// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sets of CPUs: what the kernel prints is read, and nothing else is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpus.h"
#include "ktap.h"
#include "unit.h"

static const struct {
	const char *text;
	int rc;
	const char *set; /* as printed again */
	unsigned int count;
	int max;
} lists[] = {
	{"", 0, "", 0, -1},
	{"\n", 0, "", 0, -1},
	{"0", 0, "0", 1, 0},
	{"0\n", 0, "0", 1, 0},
	{"0-3", 0, "0-3", 4, 3},
	{"0-3,8,10-11\n", 0, "0-3,8,10-11", 7, 11},
	{"63-64", 0, "63-64", 2, 64},
	{"64", 0, "64", 1, 64},
	{"0,2,64-65,300", 0, "0,2,64-65,300", 5, 300},
	{"3,1,2", 0, "1-3", 3, 3},
	{"5-5", 0, "5", 1, 5},
	{"0-8191", 0, "0-8191", 8192, 8191},
	{"65535", 0, "65535", 1, 65535},
	{"65536", -EINVAL, "", 0, -1},
	{"4294967296", -EINVAL, "", 0, -1},
	{"18446744073709551616", -EINVAL, "", 0, -1},
	{"3-1", -EINVAL, "", 0, -1},
	{"-1", -EINVAL, "", 0, -1},
	{"+1", -EINVAL, "", 0, -1},
	{" 1", -EINVAL, "", 0, -1},
	{"1 ", -EINVAL, "", 0, -1},
	{"1\n\n", -EINVAL, "", 0, -1},
	{"1-", -EINVAL, "", 0, -1},
	{"1,", -EINVAL, "", 0, -1},
	{",1", -EINVAL, "", 0, -1},
	{"0,,1", -EINVAL, "", 0, -1},
	{"1-2-3", -EINVAL, "", 0, -1},
	{"0x1", -EINVAL, "", 0, -1},
	{"a", -EINVAL, "", 0, -1},
	{"0-3:1/2", -EINVAL, "", 0, -1},
};

static bool test_parse(void)
{
	struct cpus c = {};
	char text[64];
	bool ok = true;
	size_t i;
	int rc;

	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		cpus__free(&c);
		rc = cpus__parse(&c, lists[i].text);
		cpus__format(&c, text, sizeof(text));
		if (rc != lists[i].rc || strcmp(text, lists[i].set) ||
		    cpus__count(&c) != lists[i].count || cpus__max(&c) != lists[i].max) {
			ktap_note("'%s': %d, '%s', %u CPUs, highest %d", lists[i].text, rc, text,
				  cpus__count(&c), cpus__max(&c));
			ok = false;
		}
	}
	cpus__free(&c);
	return ok;
}

static bool test_error_keeps(void)
{
	struct cpus c = {};
	bool ok;

	ok = !cpus__parse(&c, "1-2") && cpus__parse(&c, "1-") == -EINVAL && cpus__count(&c) == 2 &&
	     cpus__has(&c, 1) && cpus__has(&c, 2);
	cpus__free(&c);
	return ok;
}

static bool test_members(void)
{
	struct cpus a = {}, b = {};
	bool ok;
	int cpu, n = 0, sum = 0;

	ok = !cpus__parse(&a, "0,63-64,300");
	ok &= !cpus__has(&a, 1) && cpus__has(&a, 63) && cpus__has(&a, 64) && !cpus__has(&a, 65);
	ok &= !cpus__has(&a, 1000000);
	cpus__for_each(cpu, &a)
	{
		n++;
		sum += cpu;
	}
	ok &= n == 4 && sum == 0 + 63 + 64 + 300;
	cpus__del(&a, 300);
	cpus__del(&a, 1000000);
	ok &= cpus__max(&a) == 64;

	/* Equal, though one has room for more. */
	ok &= !cpus__parse(&b, "0,63-64") && cpus__equal(&a, &b) && cpus__equal(&b, &a);
	ok &= !cpus__add(&b, 200) && !cpus__equal(&a, &b) && !cpus__equal(&b, &a);
	ok &= cpus__add(&b, CPUS_MAX_ID + 1) == -EINVAL;
	ok &= !cpus__copy(&a, &b) && cpus__equal(&a, &b);
	cpus__del(&a, 200);
	ok &= cpus__has(&b, 200);
	cpus__free(&b);
	ok &= !cpus__copy(&a, &b) && cpus__count(&a) == 0 && cpus__next(&a, -1) == -1;
	cpus__free(&a);
	return ok;
}

static bool test_format(void)
{
	struct cpus c = {};
	char text[12];
	bool ok;

	ok = !cpus__parse(&c, "1-2,4,100-200");
	ok &= !strcmp(cpus__format(&c, text, sizeof(text)), "1-2,4...");
	ok &= !strcmp(cpus__format(&c, text, 4), "...");
	ok &= !strcmp(cpus__format(&c, text, 1), "");
	ok &= !cpus__parse(&c, "1-2,10-11") && !strcmp(cpus__format(&c, text, 10), "1-2,10-11");
	if (!ok)
		ktap_note("'%s'", text);
	cpus__free(&c);
	return ok;
}

static bool test_read(void)
{
	static const struct {
		const char *tree, *which;
		int rc;
		const char *set;
	} files[] = {
		{"hybrid", "possible", 0, "0-15"},     {"sparse", "possible", 0, "0,2,64-65,300"},
		{"sparse", "present", 0, "0,2,64-65"}, {"sparse", "online", 0, "0,2,65"},
		{"broken", "present", -EINVAL, ""},    {"broken", "online", -EINVAL, ""},
		{"broken", "isolated", -ENOENT, ""},
	};
	struct cpus c = {};
	char root[4096], text[64];
	bool ok = true;
	size_t i;
	int rc;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		cpus__free(&c);
		unit_tree(files[i].tree, root, sizeof(root));
		rc = cpus__read(&c, root, files[i].which);
		unit_tree_remove(root);
		cpus__format(&c, text, sizeof(text));
		if (rc != files[i].rc || strcmp(text, files[i].set)) {
			ktap_note("%s/%s: %d, '%s'", files[i].tree, files[i].which, rc, text);
			ok = false;
		}
	}
	cpus__free(&c);
	return ok;
}

static bool test_machine(void)
{
	struct cpus possible = {}, online = {};
	bool ok = true;
	int cpu;

	if (cpus__read(&possible, "/sys", "possible") || cpus__read(&online, "/sys", "online"))
		return false;
	ok = cpus__max(&online) >= 0;
	cpus__for_each(cpu, &online) ok &= cpus__has(&possible, (unsigned int)cpu);
	cpus__free(&possible);
	cpus__free(&online);
	return ok;
}

int main(void)
{
	struct ktap k;

	ktap_begin(&k, 6);
	ktap_ok(&k, test_parse(), "lists are read as the kernel prints them");
	ktap_ok(&k, test_error_keeps(), "a bad list leaves the set alone");
	ktap_ok(&k, test_members(), "members, copies, and equality");
	ktap_ok(&k, test_format(), "a list that does not fit ends with dots");
	ktap_ok(&k, test_read(), "sets from sysfs, sparse and broken ones");
	ktap_ok(&k, test_machine(), "this machine's online CPUs are possible");
	return ktap_end(&k);
}
