// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

int sample__init(struct sample *s, size_t n_cpus, size_t n_metrics)
{
	memset(s, 0, sizeof(*s));
	s->cpu = calloc(n_cpus, sizeof(*s->cpu));
	s->metric = calloc(n_cpus * n_metrics, sizeof(*s->metric));
	if (!s->cpu || !s->metric) {
		sample__free(s);
		return -ENOMEM;
	}
	s->n_cpus = n_cpus;
	s->n_metrics = n_metrics;
	return 0;
}

void sample__free(struct sample *s)
{
	if (!s)
		return;
	free(s->cpu);
	free(s->metric);
	free(s->histogram);
	free(s->tasks);
	memset(s, 0, sizeof(*s));
}
