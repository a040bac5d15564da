/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_SYSFS_H
#define BPFCOST_SYSFS_H

/* Small text files, as in /sys and /proc. */

#define SYSFS_ROOT "/sys"

/* Reads the file whose path the format gives. *out is the text without the white space at its end,
 * allocated: free() it. Returns 0, the negative errno of the call that failed, -EINVAL when the
 * file has a NUL byte in it, -EFBIG above 1 MiB. */
int sysfs__text(char **out, const char *path_fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether there is anything by that path. */
int sysfs__exists(const char *path_fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
