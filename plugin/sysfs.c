// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs.h"

#define TEXT_MAX (1U << 20)

int sysfs__text(char **out, const char *path_fmt, ...)
{
	size_t len = 0, size = 0;
	char *path = NULL, *text = NULL, *more;
	int fd = -1, err = 0;
	ssize_t got;
	va_list ap;

	*out = NULL;
	va_start(ap, path_fmt);
	if (vasprintf(&path, path_fmt, ap) < 0)
		path = NULL;
	va_end(ap);
	if (!path)
		return -ENOMEM;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		goto cleanup;
	}
	for (;;) {
		if (len + 1 >= size) {
			/* one page first: what nearly every file in /sys fits in */
			size = size ? size * 2 : 4096;
			if (size > TEXT_MAX) {
				err = -EFBIG;
				goto cleanup;
			}
			more = realloc(text, size);
			if (!more) {
				err = -ENOMEM;
				goto cleanup;
			}
			text = more;
		}
		got = read(fd, text + len, size - len - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err = -errno;
			goto cleanup;
		}
		if (!got)
			break;
		len += (size_t)got;
	}
	text[len] = '\0';
	if (strlen(text) != len) {
		err = -EINVAL;
		goto cleanup;
	}
	while (len && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
	*out = text;
	text = NULL;

cleanup:
	if (fd >= 0)
		close(fd);
	free(text);
	free(path);
	return err;
}

int sysfs__exists(const char *path_fmt, ...)
{
	char *path = NULL;
	va_list ap;
	int yes;

	va_start(ap, path_fmt);
	if (vasprintf(&path, path_fmt, ap) < 0)
		path = NULL;
	va_end(ap);
	yes = path && access(path, F_OK) == 0;
	free(path);
	return yes;
}
