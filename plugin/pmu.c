// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmu.h"
#include "suggest.h"
#include "sysfs.h"

#define DEVICES "%s/bus/event_source/devices"

/* Files beside an event that say something about it, and are no events. */
static const char *const event_attributes[] = {".unit", ".scale", ".snapshot", ".per-pkg"};

/* Names become parts of paths. */
static bool is_name(const char *s)
{
	if (!*s || *s == '.')
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_-.:", *s))
			return false;
	}
	return true;
}

static bool is_event_attribute(const char *name)
{
	size_t i, len = strlen(name), suffix;

	for (i = 0; i < sizeof(event_attributes) / sizeof(*event_attributes); i++) {
		suffix = strlen(event_attributes[i]);
		if (len > suffix && !strcmp(name + len - suffix, event_attributes[i]))
			return true;
	}
	return false;
}

/* ---- names ---- */

void pmu__free_names(struct pmu_names *names)
{
	size_t i;

	for (i = 0; i < names->n; i++)
		free(names->names[i]);
	free(names->names);
	names->names = NULL;
	names->n = 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_directory(struct pmu_names *names, const char *path)
{
	struct dirent *entry;
	char **more;
	int err = 0;
	DIR *dir;

	names->names = NULL;
	names->n = 0;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	for (;;) {
		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			err = -errno;
			break;
		}
		if (!is_name(entry->d_name) || is_event_attribute(entry->d_name))
			continue;
		more = realloc(names->names, (names->n + 1) * sizeof(*more));
		if (!more) {
			err = -ENOMEM;
			break;
		}
		names->names = more;
		names->names[names->n] = strdup(entry->d_name);
		if (!names->names[names->n]) {
			err = -ENOMEM;
			break;
		}
		names->n++;
	}
	closedir(dir);
	if (err)
		pmu__free_names(names);
	else if (names->n)
		qsort(names->names, names->n, sizeof(*names->names), compare);
	return err;
}

static int list_in(struct pmu_names *names, const char *sysfs_root, const char *pmu,
		   const char *what)
{
	char *path;
	int err;

	if (asprintf(&path, DEVICES "/%s/%s", sysfs_root, pmu, what) < 0) {
		names->names = NULL;
		names->n = 0;
		return -ENOMEM;
	}
	err = list_directory(names, path);
	free(path);
	return err;
}

int pmu__list(struct pmu_names *names, const char *sysfs_root)
{
	return list_in(names, sysfs_root, "", "");
}

int pmu__events(struct pmu_names *names, const char *sysfs_root, const char *pmu)
{
	return list_in(names, sysfs_root, pmu, "events");
}

int pmu__terms(struct pmu_names *names, const char *sysfs_root, const char *pmu)
{
	return list_in(names, sysfs_root, pmu, "format");
}

/* ---- one PMU ---- */

/* Decimal, or hexadecimal after 0x, and nothing else: strtoull() takes signs and blanks, and reads
 * 010 as 8, which perf does not. */
static int parse_u64(const char *s, uint64_t *value)
{
	unsigned int base = 10, digit;
	uint64_t v = 0;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		base = 16;
		s += 2;
	}
	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		if (!isxdigit((unsigned char)*s))
			return -EINVAL;
		digit = isdigit((unsigned char)*s) ? (unsigned int)(*s - '0')
						   : (unsigned int)((*s | 0x20) - 'a') + 10;
		if (digit >= base)
			return -EINVAL;
		if (v > (UINT64_MAX - digit) / base)
			return -ERANGE;
		v = v * base + digit;
	}
	*value = v;
	return 0;
}

void pmu__free(struct pmu *p)
{
	free(p->name);
	cpus__free(&p->cpus);
	memset(p, 0, sizeof(*p));
}

int pmu__read(struct pmu *p, const char *sysfs_root, const char *name, struct errmsg *err)
{
	char *type = NULL, *cpus = NULL, why[128];
	uint64_t number;
	int rc;

	memset(p, 0, sizeof(*p));
	if (!is_name(name))
		return -ENOENT;
	rc = sysfs__text(&type, DEVICES "/%s/type", sysfs_root, name);
	if (rc == -ENOENT || rc == -ENOTDIR)
		return -ENOENT;
	if (rc) {
		errmsg__fail(err, rc, "PMU '%s': cannot read its type: %s", name,
			     errmsg__errno(rc, why, sizeof(why)));
		goto cleanup;
	}
	if (parse_u64(type, &number) || number > UINT32_MAX) {
		rc = errmsg__fail(err, -EINVAL, "PMU '%s': its type is no number: '%.60s'", name,
				  type);
		goto cleanup;
	}
	p->type = (uint32_t)number;

	rc = sysfs__text(&cpus, DEVICES "/%s/cpus", sysfs_root, name);
	if (!rc) {
		p->kind = PMU_CORE;
		p->some_cpus = true;
		rc = cpus__parse(&p->cpus, cpus);
		if (rc) {
			errmsg__fail(err, rc, "PMU '%s': its list of CPUs is broken: '%.60s'", name,
				     cpus);
			goto cleanup;
		}
	} else if (rc != -ENOENT) {
		errmsg__fail(err, rc, "PMU '%s': cannot read its CPUs: %s", name,
			     errmsg__errno(rc, why, sizeof(why)));
		goto cleanup;
	} else if (!strcmp(name, "cpu")) {
		p->kind = PMU_CORE;
	} else if (sysfs__exists(DEVICES "/%s/cpumask", sysfs_root, name)) {
		p->kind = PMU_UNCORE;
	}
	p->name = strdup(name);
	rc = p->name ? 0 : -ENOMEM;

cleanup:
	free(type);
	free(cpus);
	if (rc)
		pmu__free(p);
	return rc;
}

/* ---- terms ---- */

struct encoder {
	const struct pmu *pmu;
	const char *sysfs_root;
	struct metric_event *e;
	char *name;
	struct errmsg *err;
	bool in_event; /* the terms are those of an events file */
};

static uint64_t all_of(uint64_t bits)
{
	unsigned int width = (unsigned int)__builtin_popcountll(bits);

	return width >= 64 ? UINT64_MAX : (1ULL << width) - 1;
}

/* The field of *e that a name of a config word, of @len characters, stands for. */
static int put(struct metric_event *e, const char *field, size_t len, uint64_t mask, uint64_t bits)
{
	/* config1 and config2 share their place with unions, so there is no taking their addresses
	 * in a table. */
	if (len == strlen("config") && !memcmp(field, "config", len))
		e->attr.config = (e->attr.config & ~mask) | bits;
	else if (len == strlen("config1") && !memcmp(field, "config1", len))
		e->attr.config1 = (e->attr.config1 & ~mask) | bits;
	else if (len == strlen("config2") && !memcmp(field, "config2", len))
		e->attr.config2 = (e->attr.config2 & ~mask) | bits;
	else if (len == strlen("config3") && !memcmp(field, "config3", len))
		e->config3 = (e->config3 & ~mask) | bits;
	else
		return -EINVAL;
	return 0;
}

/* A bit number, 0 to 63. */
static int parse_bit(const char **text, unsigned int *bit)
{
	const char *p = *text;
	unsigned int v = 0;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		v = v * 10 + (unsigned int)(*p - '0');
		if (v > 63)
			return -EINVAL;
	}
	*bit = v;
	*text = p;
	return 0;
}

/* Distributes @value over the bits that a format file names: "config:0-7,21" takes the low eight
 * bits of the value to bits 0 to 7, and the next one to bit 21. -ERANGE if the value has more bits
 * than that; *width tells how many there are. */
static int put_formatted(struct metric_event *e, const char *format, uint64_t value,
			 unsigned int *width)
{
	const char *colon = strchr(format, ':'), *p;
	uint64_t mask = 0, bits = 0;
	unsigned int first, last;

	if (!colon)
		return -EINVAL;
	*width = 0;
	for (p = colon;;) {
		p++;
		if (parse_bit(&p, &first))
			return -EINVAL;
		last = first;
		if (*p == '-') {
			p++;
			if (parse_bit(&p, &last))
				return -EINVAL;
		}
		if (last < first)
			return -EINVAL;
		for (; first <= last; first++) {
			if (mask >> first & 1)
				return -EINVAL;
			mask |= 1ULL << first;
			bits |= (value >> *width & 1) << first;
			(*width)++;
		}
		if (*p != ',')
			break;
	}
	if (*p)
		return -EINVAL;
	if (value & ~all_of(mask))
		return -ERANGE;
	return put(e, format, (size_t)(colon - format), mask, bits);
}

static int unknown_term(const struct encoder *enc, const char *key)
{
	struct suggest s = {.word = key};
	struct pmu_names events = {}, terms = {};
	const char *best;
	size_t i;
	int rc;

	if (!pmu__events(&events, enc->sysfs_root, enc->pmu->name) &&
	    !pmu__terms(&terms, enc->sysfs_root, enc->pmu->name)) {
		for (i = 0; i < events.n; i++)
			suggest__offer(&s, events.names[i]);
		for (i = 0; i < terms.n; i++)
			suggest__offer(&s, terms.names[i]);
	}
	best = suggest__best(&s);
	if (best)
		rc = errmsg__usage(enc->err,
				   "PMU '%s' has no event or term '%s'; did you mean '%s'?",
				   enc->pmu->name, key, best);
	else
		rc = errmsg__usage(enc->err,
				   "PMU '%s' has no event or term '%s'; 'bpfcost metric list' "
				   "shows its events",
				   enc->pmu->name, key);
	pmu__free_names(&events);
	pmu__free_names(&terms);
	return rc;
}

static int put_term(struct encoder *enc, const char *key, const char *value)
{
	const char *pmu = enc->pmu->name;
	unsigned int width = 0;
	char *format = NULL, why[128];
	uint64_t number = 1;
	int rc;

	if (!is_name(key))
		return unknown_term(enc, key);
	/* Only PMUs of hypervisors have such events, and they count for the whole machine. */
	if (value && !strcmp(value, "?"))
		return errmsg__usage(enc->err,
				     "PMU '%s': the event takes a parameter, '%s'; write its terms "
				     "instead of its name",
				     pmu, key);
	if (value) {
		rc = parse_u64(value, &number);
		if (rc)
			return errmsg__usage(enc->err, "PMU '%s': %s=%s: %s", pmu, key, value,
					     rc == -ERANGE ? "more than 64 bits" : "not a number");
	}
	if (!put(enc->e, key, strlen(key), UINT64_MAX, number)) {
		if (!value)
			return errmsg__usage(enc->err, "PMU '%s': '%s' needs a value", pmu, key);
		return 0;
	}

	rc = sysfs__text(&format, DEVICES "/%s/format/%s", enc->sysfs_root, pmu, key);
	if (rc == -ENOENT)
		return unknown_term(enc, key);
	if (rc)
		return errmsg__fail(enc->err, rc, "PMU '%s': cannot read the format of '%s': %s",
				    pmu, key, errmsg__errno(rc, why, sizeof(why)));
	rc = put_formatted(enc->e, format, number, &width);
	if (rc == -ERANGE)
		rc = errmsg__usage(enc->err, "PMU '%s': %s=0x%llx does not fit: it has %u bit%s",
				   pmu, key, (unsigned long long)number, width,
				   width == 1 ? "" : "s");
	else if (rc)
		errmsg__fail(enc->err, rc,
			     "PMU '%s': the format of '%s' is not understood: '%.60s'", pmu, key,
			     format);
	free(format);
	return rc;
}

static int put_terms(struct encoder *enc, const char *terms);

/* Returns -ENOENT without a message if the PMU has no such event. */
static int put_event(struct encoder *enc, const char *event)
{
	const char *pmu = enc->pmu->name;
	char *terms = NULL, why[128];
	int rc;

	if (!is_name(event) || is_event_attribute(event))
		return -ENOENT;
	rc = sysfs__text(&terms, DEVICES "/%s/events/%s", enc->sysfs_root, pmu, event);
	if (rc == -ENOENT || rc == -ENOTDIR)
		return -ENOENT;
	if (rc)
		return errmsg__fail(enc->err, rc, "PMU '%s': cannot read the event '%s': %s", pmu,
				    event, errmsg__errno(rc, why, sizeof(why)));
	if (sysfs__exists(DEVICES "/%s/events/%s.snapshot", enc->sysfs_root, pmu, event)) {
		rc = errmsg__usage(enc->err,
				   "%s/%s/ is a reading of the moment, not a count: there is no "
				   "difference between two of them to measure",
				   pmu, event);
		goto cleanup;
	}
	enc->in_event = true;
	rc = put_terms(enc, terms);
	enc->in_event = false;
cleanup:
	free(terms);
	return rc;
}

/* Fills one term, which is "event", "key" or "key=value" and may be cut into pieces. */
static int put_word(struct encoder *enc, char *word)
{
	char *value = strchr(word, '=');
	int rc;

	if (value)
		*value++ = '\0';
	if (!*word || (value && !*value))
		return errmsg__usage(enc->err, "PMU '%s': %s '%s%s'", enc->pmu->name,
				     *word ? "no value in" : "no name in", word, value ? "=" : "");
	/* An event's own file is made of terms only; a name there would be a loop. */
	if (enc->in_event)
		return put_term(enc, word, value);
	if (!value) {
		rc = put_event(enc, word);
		if (rc != -ENOENT)
			return rc;
	}
	if (value && !strcmp(word, "name")) {
		free(enc->name);
		enc->name = strdup(value);
		return enc->name ? 0 : -ENOMEM;
	}
	return put_term(enc, word, value);
}

static int put_terms(struct encoder *enc, const char *terms)
{
	char *copy, *rest, *word;
	int rc = 0;

	if (!*terms)
		return errmsg__usage(enc->err, "PMU '%s': there is no event between the slashes",
				     enc->pmu->name);
	copy = strdup(terms);
	if (!copy)
		return -ENOMEM;
	rest = copy;
	while (!rc && (word = strsep(&rest, ",")))
		rc = put_word(enc, word);
	free(copy);
	return rc;
}

int pmu__encode(const struct pmu *p, const char *sysfs_root, const char *terms,
		struct metric_event *e, char **name, struct errmsg *err)
{
	struct encoder enc = {.pmu = p, .sysfs_root = sysfs_root, .e = e, .err = err};
	int rc;

	*name = NULL;
	e->attr.type = p->type;
	rc = put_terms(&enc, terms);
	if (rc)
		free(enc.name);
	else
		*name = enc.name;
	return rc;
}
