// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpftool.h"

/* `ln -s bpfcost bpftool` must not end in bpfcost running itself for ever. */
static bool is_self(const char *path)
{
	struct stat own, other;

	return !stat("/proc/self/exe", &own) && !stat(path, &other) && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

static bool is_program(const char *path)
{
	struct stat st;

	return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Looks for @name in the PATH, past ourselves (then *@self is set). The path in @buf, or false. */
static bool search(const char *name, char *buf, size_t size, bool *self)
{
	/* An ordinary user has no sbin in the PATH, but may run bpftool there. */
	static const char sbin[] = ":/usr/local/sbin:/usr/sbin:/sbin";
	const char *path = getenv("PATH"), *dir, *end;
	char *dirs;
	bool found = false;
	size_t len;

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
		snprintf(buf, size, "%.*s/%s", (int)(end - dir), dir, name);
		found = is_program(buf);
		if (found && is_self(buf)) {
			found = false;
			*self = true;
		}
	}
	free(dirs);
	return found;
}

static bool find(char *buf, size_t size)
{
	const char *env = getenv("BPFTOOL");
	bool self = false;

	if (env && *env) {
		if (!strchr(env, '/') && search(env, buf, size, &self))
			return true;
		snprintf(buf, size, "%s", env);
		/* `make BPFTOOL=bpfcost` passes on to us what is meant for others. */
		if (!self && !is_self(buf))
			return true;
	}
	return search("bpftool", buf, size, &self);
}

bool bpftool__has(void)
{
	char path[PATH_MAX];

	return find(path, sizeof(path)) && is_program(path);
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
