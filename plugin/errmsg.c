// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errmsg.h"

static void set(struct errmsg *e, enum exit_status status, const char *fmt, va_list ap)
{
	if (!e || e->status != EXIT_DONE)
		return;
	e->status = status;
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
}

int errmsg__fail(struct errmsg *e, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set(e, EXIT_NOT_MEASURED, fmt, ap);
	va_end(ap);
	return rc < 0 ? rc : -EIO;
}

int errmsg__usage(struct errmsg *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set(e, EXIT_USAGE, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

const char *errmsg__errno(int err, char *buf, unsigned int size)
{
	const char *name = strerrorname_np(abs(err));

	/* The kernel's own ENOTSUPP (include/linux/errno.h) reaches user space from bpf(2). */
	if (abs(err) == 524) {
		snprintf(buf, size, "Not supported by this kernel (ENOTSUPP)");
		return buf;
	}
	snprintf(buf, size, "%s (%s)", strerror(abs(err)), name ? name : "unknown");
	return buf;
}
