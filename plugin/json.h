/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_JSON_H
#define BPFCOST_JSON_H

#include <stdbool.h>

#include <json-c/json.h>

#include "ctx.h"

/* What the views need on top of json-c: one way to see that an object could not be made. */

/* A whole number as such, whatever arithmetic it comes from (counts are exact up to 2^53); others
 * with three digits behind the point. NULL without memory. */
struct json_object *json__number(double v);

/* Adds @value, which may be NULL (it could not be made), and takes it over, also when that fails.
 * 0 or -ENOMEM. */
/* A string of any bytes, made UTF-8 (text__utf8()), not cut. NULL without memory. */
struct json_object *json__text(const char *text);
int json__put(struct json_object *obj, const char *key, struct json_object *value);
int json__append(struct json_object *array, struct json_object *value);

/* Prints a document and a newline to ctx->out, pretty if asked for and not to be @one_line. */
int json__print(const struct ctx *ctx, struct json_object *doc, bool one_line);

#endif
