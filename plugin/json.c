// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "text.h"

struct json_object *json__number(double v)
{
	double whole = nearbyint(v);
	char buf[64];

	if (fabs(v - whole) < 1e-6 && fabs(whole) < 9e15)
		return json_object_new_int64((int64_t)whole);
	snprintf(buf, sizeof(buf), "%.3f", v);
	return json_object_new_double_s(v, buf);
}

struct json_object *json__text(const char *text)
{
	/* A byte that is no UTF-8 becomes three. */
	size_t size = 3 * strlen(text) + 1;
	struct json_object *obj = NULL;
	char *buf = malloc(size);

	if (buf)
		obj = json_object_new_string(text__utf8(text, buf, size));
	free(buf);
	return obj;
}

int json__put(struct json_object *obj, const char *key, struct json_object *value)
{
	if (value && !json_object_object_add(obj, key, value))
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

int json__append(struct json_object *array, struct json_object *value)
{
	if (value && !json_object_array_add(array, value))
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

int json__print(const struct ctx *ctx, struct json_object *doc, bool one_line)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text;

	flags |= ctx->pretty && !one_line ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
					  : JSON_C_TO_STRING_PLAIN;
	text = json_object_to_json_string_ext(doc, flags);
	if (!text)
		return -ENOMEM;
	fprintf(ctx->out, "%s\n", text);
	/* Whoever reads line by line shall not wait for a full buffer. */
	fflush(ctx->out);
	return 0;
}
