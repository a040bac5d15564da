/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_COMPARE_VIEW_H
#define BPFCOST_COMPARE_VIEW_H

#include "compare.h"
#include "ctx.h"

void compare_view__plain(const struct ctx *ctx, const struct compare *c);
void history_view__plain(const struct ctx *ctx, const struct history *h);

/* Exactly one JSON document each. -ENOMEM. */
int compare_view__json(const struct ctx *ctx, const struct compare *c);
int history_view__json(const struct ctx *ctx, const struct history *h);

#endif
