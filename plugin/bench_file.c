// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "bench.h"
#include "bench_file.h"
#include "bench_view.h"
#include "statistics.h"
#include "text.h"

/* Some thousand programs with some thousand measurements each. */
#define MAX_SIZE (1LL << 30)

static int read_all(const char *path, char **text, size_t *size, struct errmsg *err)
{
	char buf[128], *data = NULL;
	int fd, rc = 0;
	struct stat st;
	ssize_t got;

	*size = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		rc = errmsg__usage(err, "cannot open '%s': %s", path,
				   errmsg__errno(errno, buf, sizeof(buf)));
		goto cleanup;
	}
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_SIZE) {
		rc = errmsg__usage(err, "'%s' is no file of 'bpfcost -j prog bench'", path);
		goto cleanup;
	}
	data = malloc(st.st_size + 1);
	if (!data) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	while (*size < (size_t)st.st_size) {
		got = read(fd, data + *size, st.st_size - *size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			rc = errmsg__usage(err, "cannot read '%s': %s", path,
					   errmsg__errno(errno, buf, sizeof(buf)));
		if (got <= 0)
			break;
		*size += got;
	}
	if (!rc) {
		data[*size] = '\0';
		*text = data;
		data = NULL;
	}
cleanup:
	free(data);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int parse_text(struct bench_file *f, const char *text, size_t size, struct errmsg *err)
{
	struct json_tokener *tok = json_tokener_new();
	enum json_tokener_error e;
	size_t end;
	int rc = 0;

	if (!tok)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	json_tokener_set_flags(tok, JSON_TOKENER_VALIDATE_UTF8);
	f->doc = json_tokener_parse_ex(tok, text, size);
	e = json_tokener_get_error(tok);
	end = json_tokener_get_parse_end(tok);
	if (!size || e == json_tokener_continue)
		rc = errmsg__usage(err, "'%s' is cut off: it ends within its JSON", f->path);
	else if (e != json_tokener_success)
		rc = errmsg__usage(err, "'%s' is no JSON, from its byte %zu on: %s", f->path, end,
				   json_tokener_error_desc(e));
	else if (end + strspn(text + end, " \t\r\n") != size)
		rc = errmsg__usage(err, "'%s' has more than one JSON document", f->path);
	json_tokener_free(tok);
	return rc;
}

static int foreign(const struct bench_file *f, const char *what, struct errmsg *err)
{
	return errmsg__usage(err, "'%s' was not written by 'bpfcost -j prog bench': %s", f->path,
			     what);
}

static struct json_object *get(struct json_object *obj, const char *key, enum json_type type)
{
	struct json_object *value;

	if (!json_object_object_get_ex(obj, key, &value) || !json_object_is_type(value, type))
		return NULL;
	return value;
}

static const char *get_string(struct json_object *obj, const char *key)
{
	struct json_object *value = get(obj, key, json_type_string);

	return value ? json_object_get_string(value) : NULL;
}

/* A name, which is printed: without control characters. */
static const char *get_name(struct json_object *obj, const char *key)
{
	const char *text = get_string(obj, key), *c;

	for (c = text; c && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return NULL;
	return text;
}

/* A number that is there and is one: whole numbers are of another type. */
static bool get_number(struct json_object *obj, const char *key, double *v)
{
	struct json_object *value;

	if (!json_object_object_get_ex(obj, key, &value) ||
	    (!json_object_is_type(value, json_type_double) &&
	     !json_object_is_type(value, json_type_int)))
		return false;
	*v = json_object_get_double(value);
	return true;
}

static bool get_bool(struct json_object *obj, const char *key)
{
	struct json_object *value = get(obj, key, json_type_boolean);

	return value && json_object_get_boolean(value);
}

static int read_facts(struct bench_file *f, struct errmsg *err)
{
	static const struct {
		const char *key, *label;
		bool machine;
	} facts[BENCH_FILE_FACTS] = {
		{"kernel", "kernel", true},
		{"arch", "architecture", true},
		{"cpu", "CPU", true},
		{"online_cpus", "online CPUs", true},
		{"bpf_jit_enable", "bpf_jit_enable", true},
		{"version", "version of bpfcost", false},
		{"statistics", "statistics on before", false},
	};
	struct json_object *machine = get(f->doc, "machine", json_type_object), *value;
	size_t i;

	if (!machine)
		return foreign(f, "it has no 'machine'", err);
	for (i = 0; i < BENCH_FILE_FACTS; i++) {
		const char *text = "unknown";
		char buf[512];

		if (json_object_object_get_ex(facts[i].machine ? machine : f->doc, facts[i].key,
					      &value) &&
		    value)
			text = json_object_get_string(value);
		f->fact[i].key = facts[i].label;
		f->fact[i].value = strdup(text__printable(text, buf, sizeof(buf)));
		if (!f->fact[i].value)
			return errmsg__fail(err, -ENOMEM, "out of memory");
	}
	return 0;
}

/* More than any run takes, in any unit; below it, no sum or difference is without end. */
#define MAX_VALUE 1e18

static bool is_value(double v)
{
	return isfinite(v) && v >= 0 && v <= MAX_VALUE;
}

/* No run takes no time: a median of 0 is a clock or a counter that did not count. */
static bool is_never_zero(const struct bench_file_metric *m)
{
	return !strcmp(m->unit, "ns") || !strcmp(m->name, "cycles") ||
	       !strcmp(m->name, "instructions");
}

static int read_metric(struct bench_file *f, const struct bench_file_prog *p,
		       struct bench_file_metric *m, struct json_object *obj, struct errmsg *err)
{
	struct json_object *array = get(obj, "measurements", json_type_array), *r;
	size_t i;

	m->name = get_name(obj, "metric");
	m->unit = get_name(obj, "unit");
	if (!m->name || !m->unit || !array || !json_object_array_length(array))
		return foreign(f, "a metric has no name, unit or measurements", err);
	m->estimate = get_bool(obj, "estimate");
	m->shared = get_bool(obj, "shared");
	m->has_floor = get_number(obj, "floor", &m->floor);
	if (m->has_floor &&
	    (!get_number(obj, "floor_p10", &m->low) || !get_number(obj, "floor_p90", &m->high)))
		return foreign(f, "a floor has no spread", err);
	m->n = json_object_array_length(array);
	m->sorted = calloc(m->n, sizeof(*m->sorted));
	if (!m->sorted)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	for (i = 0; i < m->n; i++) {
		r = json_object_array_get_idx(array, i);
		if (!json_object_is_type(r, json_type_object) ||
		    !get_number(r, "value", &m->sorted[i]))
			return errmsg__usage(err,
					     "'%s': measurement %zu of the metric '%s' of '%s' is "
					     "no number",
					     f->path, i + 1, m->name, p->name);
		if (!is_value(m->sorted[i]))
			return errmsg__usage(err,
					     "'%s': measurement %zu of the metric '%s' of '%s' is "
					     "%g",
					     f->path, i + 1, m->name, p->name, m->sorted[i]);
	}
	if (!is_value(m->floor) || !is_value(m->low) || !is_value(m->high))
		return errmsg__usage(err,
				     "'%s': the floor of '%s' of '%s' is no number that it can "
				     "be",
				     f->path, m->name, p->name);
	statistics__sort(m->sorted, m->n);
	m->median = statistics__median(m->sorted, m->n);
	if (m->median <= 0 && is_never_zero(m))
		return errmsg__usage(err,
				     "'%s': the median of the metric '%s' of '%s' is 0: it was not "
				     "counted",
				     f->path, m->name, p->name);
	return 0;
}

static int read_prog(struct bench_file *f, struct bench_file_prog *p, struct json_object *obj,
		     struct errmsg *err)
{
	struct json_object *array, *value;
	size_t i, n;
	int rc = 0;

	if (!json_object_is_type(obj, json_type_object))
		return foreign(f, "a program is no object", err);
	p->name = get_name(obj, "name");
	if (!p->name)
		return foreign(f, "a program has no name", err);
	p->object = json_object_object_get_ex(f->doc, "object", NULL) ? get_name(f->doc, "object")
								      : "";
	if (!p->object)
		return foreign(f, "the object's name is none", err);
	for (i = 0; &f->prog[i] != p; i++)
		p->nth += !strcmp(f->prog[i].name, p->name);
	p->error = get_string(obj, "error");
	p->reliable = !json_object_object_get_ex(obj, "reliable", &value) ||
		      get_bool(obj, "reliable");
	if (p->error)
		return 0;
	array = get(obj, "metrics", json_type_array);
	if (!array)
		return foreign(f, "a program has no metrics", err);
	n = json_object_array_length(array);
	p->metric = calloc(n ? n : 1, sizeof(*p->metric));
	if (!p->metric)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	for (i = 0; i < n && !rc; i++)
		rc = read_metric(f, p, &p->metric[p->n_metrics++],
				 json_object_array_get_idx(array, i), err);
	return rc;
}

static int read_doc(struct bench_file *f, struct errmsg *err)
{
	struct json_object *progs;
	const char *text;
	char buf[400];
	size_t i, n;
	int rc;

	if (!json_object_is_type(f->doc, json_type_object))
		return foreign(f, "it is no JSON object", err);
	text = get_string(f->doc, "error");
	if (text)
		return errmsg__usage(err, "'%s' holds an error instead of measurements: %s",
				     f->path, text__printable(text, buf, sizeof(buf)));
	text = get_string(f->doc, "format");
	if (!text)
		return foreign(f, "it has no 'format'", err);
	if (strcmp(text, BENCH_FORMAT))
		return errmsg__usage(err,
				     "'%s' has the format '%.40s', and this bpfcost reads "
				     "'" BENCH_FORMAT "'",
				     f->path, text__printable(text, buf, sizeof(buf)));
	rc = read_facts(f, err);
	if (rc)
		return rc;
	progs = get(f->doc, "programs", json_type_array);
	if (!progs)
		return foreign(f, "it has no 'programs'", err);
	n = json_object_array_length(progs);
	f->prog = calloc(n ? n : 1, sizeof(*f->prog));
	if (!f->prog)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	for (i = 0; i < n && !rc; i++)
		rc = read_prog(f, &f->prog[f->n_progs++], json_object_array_get_idx(progs, i), err);
	return rc;
}

int bench_file__read(struct bench_file *f, const char *path, struct errmsg *err)
{
	char *text = NULL;
	size_t size;
	int rc;

	memset(f, 0, sizeof(*f));
	f->path = path;
	rc = read_all(path, &text, &size, err) ?: parse_text(f, text, size, err) ?:
	     read_doc(f, err);
	free(text);
	if (rc)
		bench_file__close(f);
	return rc;
}

static int is_json(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > 5 && !strcmp(entry->d_name + n - 5, ".json");
}

int bench_file__list(const char *dir, char ***paths, size_t *n, struct errmsg *err)
{
	struct dirent **entry = NULL;
	char buf[128], **v;
	int found, i, rc = 0;

	found = scandir(dir, &entry, is_json, versionsort);
	if (found < 0)
		return errmsg__usage(err, "cannot read the directory '%s': %s", dir,
				     errmsg__errno(errno, buf, sizeof(buf)));
	*n = 0;
	v = calloc(found ? found : 1, sizeof(*v));
	if (!v)
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
	else if (!found)
		rc = errmsg__usage(err, "there are no files *.json in '%s'", dir);
	for (i = 0; i < found && !rc; i++) {
		if (asprintf(&v[i], "%s/%s", dir, entry[i]->d_name) < 0)
			rc = errmsg__fail(err, -ENOMEM, "out of memory");
		else
			++*n;
	}
	for (i = 0; i < found; i++)
		free(entry[i]);
	free(entry);
	if (rc) {
		bench_file__free_list(v, *n);
		return rc;
	}
	*paths = v;
	return 0;
}

void bench_file__free_list(char **paths, size_t n)
{
	while (n)
		free(paths[--n]);
	free(paths);
}

/* A floor is that of the machine and the method, the same for all: the mean, and the widest
 * spread. @weight: files so far. */
static int join_metric(struct bench_file_metric *m, const struct bench_file_metric *more,
		       size_t weight)
{
	double *v = realloc(m->sorted, (m->n + more->n) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	memcpy(v + m->n, more->sorted, more->n * sizeof(*v));
	m->sorted = v;
	m->n += more->n;
	statistics__sort(m->sorted, m->n);
	m->median = statistics__median(m->sorted, m->n);
	m->floor = (m->floor * weight + more->floor) / (weight + 1);
	m->low = fmin(m->low, more->low);
	m->high = fmax(m->high, more->high);
	m->estimate |= more->estimate;
	m->shared |= more->shared;
	return 0;
}

/* What must be the same in all files of one side. */
static int check_same(const struct bench_file *f, const struct bench_file *more, struct errmsg *err)
{
	size_t i, k;

	for (i = 0; i < BENCH_FILE_FACTS; i++)
		if (strcmp(f->fact[i].value, more->fact[i].value))
			return errmsg__usage(err,
					     "'%s' does not go with the files before it: %s is "
					     "'%s', not '%s'",
					     more->path, f->fact[i].key, more->fact[i].value,
					     f->fact[i].value);
	for (i = 0; i < f->n_progs; i++) {
		const struct bench_file_prog *p = &f->prog[i];
		const struct bench_file_prog *q =
			bench_file__find(more, p->object, p->name, p->nth);

		if (f->n_progs != more->n_progs || !q || !q->error != !p->error ||
		    q->n_metrics != p->n_metrics)
			return errmsg__usage(err,
					     "'%s' does not go with the files before it: other "
					     "programs or metrics",
					     more->path);
		for (k = 0; k < p->n_metrics; k++) {
			const struct bench_file_metric *m =
				bench_file__metric(q, p->metric[k].name);

			if (!m || strcmp(m->unit, p->metric[k].unit) ||
			    m->has_floor != p->metric[k].has_floor)
				return errmsg__usage(err,
						     "'%s' does not go with the files before it: "
						     "the metric '%s' of '%s'",
						     more->path, p->metric[k].name, p->name);
		}
	}
	return 0;
}

static int join(struct bench_file *f, const struct bench_file *more, size_t weight,
		struct errmsg *err)
{
	size_t i, k;
	int rc;

	rc = check_same(f, more, err);
	if (rc)
		return rc;
	for (i = 0; i < f->n_progs; i++) {
		struct bench_file_prog *p = &f->prog[i];
		const struct bench_file_prog *q =
			bench_file__find(more, p->object, p->name, p->nth);

		p->reliable &= q->reliable;
		for (k = 0; k < p->n_metrics; k++)
			if (join_metric(&p->metric[k], bench_file__metric(q, p->metric[k].name),
					weight))
				return errmsg__fail(err, -ENOMEM, "out of memory");
	}
	return 0;
}

int bench_file__read_side(struct bench_file *f, const char *path, struct errmsg *err)
{
	struct bench_file more;
	char **paths;
	struct stat st;
	size_t n, i;
	int rc;

	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return bench_file__read(f, path, err);
	rc = bench_file__list(path, &paths, &n, err);
	if (rc)
		return rc;
	rc = bench_file__read(f, paths[0], err);
	for (i = 1; i < n && !rc; i++) {
		rc = bench_file__read(&more, paths[i], err);
		if (rc)
			break;
		rc = join(f, &more, i, err);
		bench_file__close(&more);
	}
	if (rc)
		bench_file__close(f);
	f->path = path;
	bench_file__free_list(paths, n);
	return rc;
}

const struct bench_file_prog *bench_file__find(const struct bench_file *f, const char *object,
					       const char *name, size_t nth)
{
	size_t i;

	for (i = 0; i < f->n_progs; i++)
		if (f->prog[i].nth == nth && !strcmp(f->prog[i].name, name) &&
		    (!object || !strcmp(f->prog[i].object, object)))
			return &f->prog[i];
	return NULL;
}

const struct bench_file_metric *bench_file__metric(const struct bench_file_prog *p,
						   const char *name)
{
	size_t i;

	for (i = 0; i < p->n_metrics; i++)
		if (!strcmp(p->metric[i].name, name))
			return &p->metric[i];
	return NULL;
}

void bench_file__close(struct bench_file *f)
{
	size_t i, k;

	if (!f)
		return;
	for (i = 0; i < f->n_progs; i++) {
		for (k = 0; k < f->prog[i].n_metrics; k++)
			free(f->prog[i].metric[k].sorted);
		free(f->prog[i].metric);
	}
	free(f->prog);
	for (i = 0; i < BENCH_FILE_FACTS; i++)
		free(f->fact[i].value);
	json_object_put(f->doc);
	memset(f, 0, sizeof(*f));
}
