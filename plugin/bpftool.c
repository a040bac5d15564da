// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpftool.h"

static bool is_other_program(const char *path)
{
	struct stat own, other;

	if (access(path, X_OK) || stat(path, &other) || !S_ISREG(other.st_mode))
		return false;
	/* `ln -s bpfcost bpftool` must not end in bpfcost running itself for ever. */
	return stat("/proc/self/exe", &own) || own.st_dev != other.st_dev ||
	       own.st_ino != other.st_ino;
}

/* The path in @buf, or false. */
static bool find(char *buf, size_t size)
{
	/* An ordinary user has no sbin in the PATH, but may run bpftool there. */
	static const char sbin[] = ":/usr/local/sbin:/usr/sbin:/sbin";
	const char *env = getenv("BPFTOOL"), *path = getenv("PATH"), *dir, *end;
	char *dirs;
	bool found = false;
	size_t len;

	if (env && *env) {
		snprintf(buf, size, "%s", env);
		return true;
	}
	if (!path)
		path = "";
	len = strlen(path) + sizeof(sbin);
	dirs = malloc(len);
	if (!dirs)
		return false;
	snprintf(dirs, len, "%s%s", path, sbin);
	for (dir = dirs; !found && *dir; dir = *end ? end + 1 : end) {
		end = strchrnul(dir, ':');
		if (end == dir)
			continue;
		snprintf(buf, size, "%.*s/bpftool", (int)(end - dir), dir);
		found = is_other_program(buf);
	}
	free(dirs);
	return found;
}

bool bpftool__has(void)
{
	char path[PATH_MAX];

	return find(path, sizeof(path)) && is_other_program(path);
}

int bpftool__exec(const struct ctx *ctx, int argc, char **argv)
{
	char path[PATH_MAX], buf[128], **args;
	int err;

	if (!find(path, sizeof(path))) {
		errmsg__fail(ctx->err, -ENOENT,
			     "this is a command of bpftool, which is not installed; on Debian: "
			     "apt install bpftool (elsewhere the package may be linux-tools)");
		return ctx->err->status;
	}
	args = calloc(argc + 1, sizeof(*args));
	if (!args) {
		errmsg__fail(ctx->err, -ENOMEM, "out of memory");
		return ctx->err->status;
	}
	memcpy(args, argv, argc * sizeof(*args));
	args[0] = "bpftool";
	fflush(NULL);
	execv(path, args);
	err = errno;
	free(args);
	errmsg__fail(ctx->err, -err,
		     "cannot run '%s': %s; it is what BPFTOOL names, or the first "
		     "bpftool in PATH",
		     path, errmsg__errno(err, buf, sizeof(buf)));
	return ctx->err->status;
}
