// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "caps.h"

static bool effective(cap_value_t cap)
{
	cap_flag_value_t value = CAP_CLEAR;
	cap_t caps = cap_get_proc();

	if (!caps)
		return false;
	if (cap_get_flag(caps, cap, CAP_EFFECTIVE, &value))
		value = CAP_CLEAR;
	cap_free(caps);
	return value == CAP_SET;
}

bool caps__have(cap_value_t cap)
{
	return effective(cap) || effective(CAP_SYS_ADMIN);
}

size_t caps__missing(const cap_value_t *caps, size_t n, char *buf, size_t size)
{
	size_t i, missing = 0, len = 0;

	buf[0] = '\0';
	for (i = 0; i < n; i++) {
		char *name, *c;

		if (caps__have(caps[i]))
			continue;
		name = cap_to_name(caps[i]);
		for (c = name; c && *c; c++)
			*c = toupper((unsigned char)*c);
		len += snprintf(buf + len, len < size ? size - len : 0, "%s%s", missing ? ", " : "",
				name ? name : "a capability");
		if (len >= size)
			len = size - 1;
		missing++;
		cap_free(name);
	}
	return missing;
}

int caps__keep_only(const cap_value_t *keep, size_t n)
{
	const struct rlimit all = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
	cap_t old, new;
	int rc = 0;
	size_t i;

	/* Before 5.11 what BPF allocates counts as locked memory. libbpf raises the limit when it
	 * first loads something, which can be too late: that takes CAP_SYS_RESOURCE. On other
	 * kernels it makes no difference whether it can be raised. */
	setrlimit(RLIMIT_MEMLOCK, &all);
	old = cap_get_proc();
	new = cap_init();
	if (!old || !new) {
		rc = -ENOMEM;
		goto cleanup;
	}
	for (i = 0; i < n; i++) {
		cap_flag_value_t value;

		if (cap_get_flag(old, keep[i], CAP_PERMITTED, &value) || value != CAP_SET)
			continue;
		if (cap_set_flag(new, CAP_PERMITTED, 1, &keep[i], CAP_SET) ||
		    cap_set_flag(new, CAP_EFFECTIVE, 1, &keep[i], CAP_SET)) {
			rc = -errno;
			goto cleanup;
		}
	}
	if (cap_set_proc(new))
		rc = -errno;
cleanup:
	cap_free(old);
	cap_free(new);
	return rc;
}
