// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static _Noreturn void give_up(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static void make_directories(char *path)
{
	char *p;

	for (p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			give_up(path);
		*p = '/';
	}
}

void unit_write(const char *root, const char *path, const char *text)
{
	char file[8192];
	FILE *f;

	if (snprintf(file, sizeof(file), "%s/%s", root, path) >= (int)sizeof(file)) {
		errno = ENAMETOOLONG;
		give_up(path);
	}
	make_directories(file);
	f = fopen(file, "w");
	if (!f || fprintf(f, "%s\n", text) < 0 || fclose(f))
		give_up(file);
}

void unit_tree(const char *name, char *root, size_t size)
{
	char program[4096], file[8192], line[4096], *slash, *text;
	const char *tmp = getenv("TMPDIR");
	ssize_t len;
	FILE *f;

	len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (len < 0)
		give_up("/proc/self/exe");
	program[len] = '\0';
	slash = strrchr(program, '/');
	if (slash)
		*slash = '\0';
	snprintf(file, sizeof(file), "%s/fixtures/%s.tree", program, name);
	f = fopen(file, "r");
	if (!f)
		give_up(file);
	snprintf(root, size, "%s/unit-%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", name);
	if (!mkdtemp(root))
		give_up(root);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line || *line == '#')
			continue;
		text = strchr(line, ' ');
		if (text)
			*text++ = '\0';
		unit_write(root, line, text ? text : "");
	}
	fclose(f);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void unit_tree_remove(const char *root)
{
	if (nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS))
		printf("# cannot remove %s: %s\n", root, strerror(errno));
}
