// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What measuring adds to a run, by `bpfcost calibrate`, against what it may. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "lab.h"

/* Instructions a run. They were set for 7.2 on arm64; older kernels have to keep them as well. */
static const struct {
	const char *method;
	double most;
} limits[] = {
	{"ns", 600},
	{"instructions", 930},
	{"cycles instructions", 1450},
	{"cycles instructions, sample 64", 450},
};

static struct json_object *calibrate(void)
{
	const char *bpfcost = getenv("BPFCOST");
	struct json_object *doc = NULL;
	char command[4096], *text;
	size_t len;
	FILE *f;

	if (snprintf(command, sizeof(command), "'%s' -j calibrate",
		     bpfcost ? bpfcost : "../../bpfcost") >= (int)sizeof(command))
		return NULL;
	text = calloc(1, 65536);
	f = text ? popen(command, "r") : NULL;
	if (f) {
		len = fread(text, 1, 65535, f);
		text[len] = '\0';
		doc = pclose(f) ? NULL : json_tokener_parse(text);
	}
	free(text);
	return doc;
}

static double added(struct json_object *doc, const char *method)
{
	struct json_object *row, *value;
	size_t i;

	for (i = 0; i < json_object_array_length(doc); i++) {
		row = json_object_array_get_idx(doc, i);
		if (json_object_object_get_ex(row, "method", &value) &&
		    !strcmp(json_object_get_string(value), method) &&
		    json_object_object_get_ex(row, "added_instructions", &value))
			return json_object_get_double(value);
	}
	return NAN;
}

static bool test_added(void)
{
	struct json_object *doc = calibrate();
	bool ok = true;
	double cost;
	size_t i;

	CHECK(doc && json_object_is_type(doc, json_type_array));
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		cost = added(doc, limits[i].method);
		ktap_note("%s: %.2f instructions, at most %g", limits[i].method, cost,
			  limits[i].most);
		/* Not so for what is missing, either. */
		if (!(round(cost) <= limits[i].most))
			ok = false;
	}
cleanup:
	json_object_put(doc);
	return ok;
}

static const struct lab_test tests[] = {
	{"added instructions a run", lab_exact_pmu, test_added},
};

int main(void)
{
	return lab_main(tests, ARRAY_SIZE(tests));
}
