// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a step of each family of programs in progs/cost costs: as tests, as a table, as JSON, or
 * beside what another kernel was measured to take. Documentation/known-costs.rst says how to read
 * it.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <json-c/json.h>

#include "known.h"

#define MAX_FAMILIES 64

enum mode { TEST, TABLE, JSON, BESIDE, LIST };

struct measured {
	struct known known;
	const struct known_family *family[MAX_FAMILIES];
	struct known_result result[MAX_FAMILIES];
	size_t n;
};

static void usage(FILE *out)
{
	fprintf(out, "usage: cost [OPTION] [FAMILY...]\n"
		     "\n"
		     "Measures what a step of the programs with known costs takes: of all "
		     "families, or of\n"
		     "those that are named. Without an option, each family is a test.\n"
		     "\n"
		     "  --list           the families, and what a step of each is\n"
		     "  --table          a table of steps\n"
		     "  --json           all that was measured\n"
		     "  --beside[=FILE]  steps beside those of the nearest kernel in FILE "
		     "(cost-table.json\n"
		     "                   beside this program), and what changed\n"
		     "  --help\n"
		     "\n"
		     "Exit status: 0 all is as it should be; 1 a rule does not hold, or --beside: "
		     "a step\n"
		     "became dearer or is gone; 2 wrong usage or bad input; 4 nothing could be "
		     "measured.\n");
}

/* ---- tests ---- */

static int test(struct measured *all)
{
	struct ktap k;

	if (geteuid()) {
		printf("KTAP version 1\n1..0 # SKIP not root\n");
		return KTAP_EXIT_SKIP;
	}
	ktap_begin(&k, (unsigned int)all->n);
	if (!all->known.profiles)
		ktap_note("without the profiler: %s", all->known.engine.err.text);
	if (!all->known.exact)
		ktap_note("time is not exact here");
	for (size_t i = 0; i < all->n; i++) {
		struct known_result *r = &all->result[i];
		const char *name = all->family[i]->name;
		struct errmsg err = {};

		if (known__measure(&all->known, all->family[i], r, &err)) {
			ktap_note("%s", err.text);
			ktap_ok(&k, false, name);
		} else if (r->skip[0]) {
			ktap_result(&k, KTAP_SKIP, name, r->skip);
		} else {
			unsigned int bad = known__check(&all->known, r, ktap_note);

			for (int m = 0; m < KNOWN_METHODS; m++)
				if (r->has[m])
					ktap_note("%s: %s: a step costs %.10g", name,
						  known_method_name[m], known__step(r, m));
			ktap_ok(&k, !bad, name);
		}
	}
	return ktap_end(&k);
}

/* ---- results that are no tests ---- */

static void complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("cost: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

/* Measures all; returns how many families are not as they have to be, or a negative errno. */
static int measure_all(struct measured *all)
{
	int broken = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct errmsg err = {};
		unsigned int bad;
		int rc;

		rc = known__measure(&all->known, all->family[i], &all->result[i], &err);
		if (rc) {
			complain("%s: %s", all->family[i]->name, err.text);
			return rc;
		}
		if (all->result[i].skip[0])
			continue;
		bad = known__check(&all->known, &all->result[i], complain);
		if (bad)
			complain("%s: %u things are not as they have to be", all->family[i]->name,
				 bad);
		broken += bad > 0;
	}
	return broken;
}

static void put_number(FILE *out, bool known, double value)
{
	if (known)
		fprintf(out, " %12.10g", round(value * 100) / 100);
	else
		fprintf(out, " %12s", "-");
}

static void table(const struct measured *all, FILE *out)
{
	fprintf(out, "%-22s %5s", "FAMILY", "N");
	for (int m = 0; m < KNOWN_METHODS; m++)
		fprintf(out, " %12s", known_method_name[m]);
	fprintf(out, " %12s %12s %12s %12s\n", "rule", "bytes", "insns", "calls");
	for (size_t i = 0; i < all->n; i++) {
		const struct known_result *r = &all->result[i];
		double expected = 0;
		bool known;

		fprintf(out, "%-22s", all->family[i]->name);
		if (r->skip[0]) {
			fprintf(out, " %s\n", r->skip);
			continue;
		}
		fprintf(out, " %5u", r->n);
		for (int m = 0; m < KNOWN_METHODS; m++)
			put_number(out, r->has[m], known__result(&all->known, r, m));
		known = known__expected(r, &expected);
		put_number(out, known, expected - known__address(r));
		put_number(out, r->has_image, known__image_bytes(r));
		put_number(out, r->has_image && r->image[0].decoded, known__image_insns(r));
		put_number(out, r->has_image && r->image[0].decoded, known__image_calls(r));
		fputc('\n', out);
	}
}

static const char *arch_name(const char *machine)
{
	return !strcmp(machine, "x86_64")    ? "amd64"
	       : !strcmp(machine, "aarch64") ? "arm64"
					     : machine;
}

static void add_number(struct json_object *o, const char *key, bool known, double value)
{
	char text[64];

	if (!known)
		return;
	/* Not 0.27000000000000002. */
	snprintf(text, sizeof(text), "%.10g", round(value * 100) / 100);
	json_object_object_add(o, key, json_object_new_double_s(strtod(text, NULL), text));
}

static struct json_object *json_family(const struct known *k, const struct known_result *r)
{
	struct json_object *o = json_object_new_object(), *step, *image, *rule;
	double expected = 0;
	bool known;

	json_object_object_add(o, "family", json_object_new_string(r->family->name));
	json_object_object_add(o, "what", json_object_new_string(r->family->step));
	if (r->skip[0]) {
		json_object_object_add(o, "skip", json_object_new_string(r->skip));
		return o;
	}
	json_object_object_add(o, "n", json_object_new_int64(r->n));
	step = json_object_new_object();
	for (int m = 0; m < KNOWN_METHODS; m++)
		add_number(step, known_method_name[m], r->has[m], known__result(k, r, m));
	json_object_object_add(o, "step", step);
	known = known__expected(r, &expected);
	rule = json_object_new_object();
	json_object_object_add(rule, "kind",
			       json_object_new_string(known_rule_name[r->family->rule]));
	add_number(rule, "step", known, expected - known__address(r));
	json_object_object_add(o, "rule", rule);
	if (r->has_image) {
		image = json_object_new_object();
		add_number(image, "bytes", true, known__image_bytes(r));
		add_number(image, "insns", r->image[0].decoded, known__image_insns(r));
		add_number(image, "calls", r->image[0].decoded, known__image_calls(r));
		json_object_object_add(o, "image", image);
	}
	return o;
}

static int json(const struct measured *all, FILE *out)
{
	struct json_object *o = json_object_new_object(), *families = json_object_new_array();
	struct utsname u;
	int rc;

	rc = uname(&u) ? -errno : 0;
	json_object_object_add(o, "release", json_object_new_string(rc ? "" : u.release));
	json_object_object_add(o, "arch", json_object_new_string(rc ? "" : arch_name(u.machine)));
	json_object_object_add(o, "exact", json_object_new_boolean(all->known.exact));
	for (size_t i = 0; i < all->n; i++)
		json_object_array_add(families, json_family(&all->known, &all->result[i]));
	json_object_object_add(o, "families", families);
	if (!rc &&
	    fprintf(out, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN)) < 0)
		rc = -EIO;
	json_object_put(o);
	return rc;
}

/* ---- beside another kernel ---- */

/* "6.12" and "6.12.9-cloud": major * 1000 + minor; -1: neither. */
static int version_of(const char *text)
{
	unsigned int major, minor;

	return text && sscanf(text, "%u.%u", &major, &minor) == 2 && minor < 1000
		       ? (int)(major * 1000 + minor)
		       : -1;
}

static const char *string_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) &&
			       json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : NULL;
}

static struct json_object *array_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) &&
			       json_object_is_type(value, json_type_array)
		       ? value
		       : NULL;
}

/* The newest kernel of this architecture that is not newer than this one, else the oldest. */
static struct json_object *nearest(struct json_object *file, const struct utsname *u)
{
	struct json_object *kernels = array_of(file, "kernels"), *best = NULL;
	int mine = version_of(u->release), best_version = -1;

	for (size_t i = 0; kernels && i < json_object_array_length(kernels); i++) {
		struct json_object *k = json_object_array_get_idx(kernels, i);
		const char *arch = string_of(k, "arch");
		int version = version_of(string_of(k, "kernel"));
		bool better;

		if (!arch || strcmp(arch, arch_name(u->machine)) || version < 0 ||
		    !array_of(k, "families"))
			continue;
		if (best_version < 0)
			better = true;
		else if (version <= mine)
			better = best_version > mine || version > best_version;
		else
			better = best_version > mine && version < best_version;
		if (better) {
			best = k;
			best_version = version;
		}
	}
	return best;
}

/* The step of a family there. 1: known; 0: it was refused there; -ENOENT: no such family. */
static int step_there(struct json_object *kernel, const char *family, double *step)
{
	struct json_object *families = array_of(kernel, "families");

	for (size_t i = 0; i < json_object_array_length(families); i++) {
		struct json_object *f = json_object_array_get_idx(families, i), *steps, *value;
		const char *name = string_of(f, "family");

		if (!name || strcmp(name, family))
			continue;
		if (!json_object_object_get_ex(f, "step", &steps) ||
		    !json_object_object_get_ex(steps, known_method_name[KNOWN_RUN_TIME], &value))
			return 0;
		*step = json_object_get_double(value);
		return 1;
	}
	return -ENOENT;
}

/* Returns how many steps became dearer or are gone. */
static int compare(const struct measured *all, struct json_object *kernel, const struct utsname *u,
		   FILE *out)
{
	int worse = 0, changed = 0;

	fprintf(out, "# step in ns, of which each is an instruction\n");
	fprintf(out, "%-22s %12s %12s  here: %s\n", "FAMILY", string_of(kernel, "kernel"), "here",
		u->release);
	for (size_t i = 0; i < all->n; i++) {
		const struct known_result *r = &all->result[i];
		double here = 0, there = 0;
		int known = step_there(kernel, all->family[i]->name, &there);

		if (!r->skip[0])
			here = known__result(&all->known, r, KNOWN_RUN_TIME);
		fprintf(out, "%-22s", all->family[i]->name);
		put_number(out, known == 1, there);
		put_number(out, !r->skip[0], here);
		if (r->skip[0] && known == 1) {
			fprintf(out, "  * gone: %s", r->skip);
			worse++;
		} else if (!r->skip[0] && known != 1) {
			fprintf(out, "  * new");
			changed++;
		} else if (!r->skip[0] && fabs(here - there) > 0.005) {
			bool dearer = here > there;

			fprintf(out, "  * %+.10g, %s", round((here - there) * 100) / 100,
				dearer ? "dearer" : "cheaper");
			worse += dearer;
			changed += !dearer;
		}
		fputc('\n', out);
	}
	fprintf(out, "# %d of %zu steps became dearer or are gone, %d changed otherwise\n", worse,
		all->n, changed);
	return worse;
}

static int beside(struct measured *all, const char *path, FILE *out)
{
	char beside_me[4200];
	struct json_object *file, *kernel;
	int rc = KTAP_EXIT_PASS, broken;
	struct utsname u;

	if (!path) {
		snprintf(beside_me, sizeof(beside_me), "%s/../../selftests/cost/cost-table.json",
			 all->known.objects);
		path = beside_me;
	}
	if (!all->known.exact) {
		complain("steps can be compared only where time is exact: in scripts/lab --exact");
		return EXIT_USAGE;
	}
	file = json_object_from_file(path);
	if (!file) {
		complain("%s: %s", path, json_util_get_last_err() ?: "no JSON");
		return EXIT_USAGE;
	}
	kernel = uname(&u) ? NULL : nearest(file, &u);
	if (!kernel) {
		complain("%s: no steps for %s in it; it is what `make cost-table` writes", path,
			 arch_name(u.machine));
		rc = EXIT_USAGE;
		goto cleanup;
	}
	broken = measure_all(all);
	if (broken < 0 || compare(all, kernel, &u, out) || broken)
		rc = KTAP_EXIT_FAIL;
cleanup:
	json_object_put(file);
	return rc;
}

/* ---- */

static int choose(struct measured *all, char **names, int n)
{
	const struct known_family *f;

	for (f = known_families; f->name; f++) {
		bool wanted = !n;

		for (int i = 0; i < n; i++)
			wanted |= !strcmp(names[i], f->name);
		if (wanted && all->n < MAX_FAMILIES)
			all->family[all->n++] = f;
	}
	for (int i = 0; i < n; i++) {
		for (f = known_families; f->name && strcmp(names[i], f->name); f++)
			;
		if (f->name)
			continue;
		complain("%s: no such family; --list names them", names[i]);
		return EXIT_USAGE;
	}
	return 0;
}

/* Results go to the old stdout. All else that modules say in notes goes to stderr. */
static FILE *keep_stdout(void)
{
	int fd = dup(STDOUT_FILENO);
	FILE *out = fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? NULL : fdopen(fd, "w");

	if (!out)
		complain("stdout: %s", strerror(errno));
	return out;
}

static int results(struct measured *all, enum mode mode, const char *path)
{
	FILE *out = keep_stdout();
	int rc;

	if (!out)
		return KTAP_EXIT_FAIL;
	if (mode == BESIDE) {
		rc = beside(all, path, out);
	} else {
		rc = measure_all(all);
		if (rc >= 0 && mode == TABLE)
			table(all, out);
		else if (rc >= 0 && json(all, out))
			rc = -EIO;
		rc = rc ? KTAP_EXIT_FAIL : KTAP_EXIT_PASS;
	}
	if (fclose(out)) {
		complain("stdout: %s", strerror(errno));
		rc = KTAP_EXIT_FAIL;
	}
	return rc;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"list", no_argument, NULL, 'l'}, {"table", no_argument, NULL, 't'},
		{"json", no_argument, NULL, 'j'}, {"beside", optional_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'}, {},
	};
	const char *path = NULL;
	enum mode mode = TEST;
	struct measured *all;
	int c, rc;

	while ((c = getopt_long(argc, argv, "ltjb::h", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			mode = LIST;
			break;
		case 't':
			mode = TABLE;
			break;
		case 'j':
			mode = JSON;
			break;
		case 'b':
			mode = BESIDE;
			path = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	all = calloc(1, sizeof(*all));
	if (!all) {
		complain("out of memory");
		return KTAP_EXIT_FAIL;
	}
	rc = choose(all, argv + optind, argc - optind);
	if (rc)
		goto cleanup;
	if (mode == LIST) {
		for (size_t i = 0; i < all->n; i++)
			printf("%-22s %s\n", all->family[i]->name, all->family[i]->step);
		goto cleanup;
	}
	rc = known__open(&all->known);
	if (rc) {
		complain("cannot begin: %s", strerror(-rc));
		rc = KTAP_EXIT_FAIL;
	} else {
		rc = mode == TEST ? test(all) : results(all, mode, path);
	}
	known__close(&all->known);
cleanup:
	free(all);
	return rc;
}
