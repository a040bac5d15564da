// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cpus.h"
#include "machine.h"
#include "text.h"

static FILE *open_proc(const char *root, const char *file)
{
	FILE *f = NULL;
	char *path;

	if (asprintf(&path, "%s/%s", root, file) >= 0) {
		f = fopen(path, "re");
		free(path);
	}
	return f;
}

/* The value of a line "key : value", or NULL. */
static const char *value_of(char *line, const char *key)
{
	size_t n = strlen(key);
	char *colon;

	if (strncmp(line, key, n) || (line[n] != '\t' && line[n] != ' ' && line[n] != ':'))
		return NULL;
	colon = strchr(line, ':');
	if (!colon)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return colon + 1 + strspn(colon + 1, " \t");
}

/* x86 has a name; arm64 has numbers: of who made it, of what it is, and of which step of it. */
static void read_cpu(struct machine *m, const char *proc_root)
{
	static const char *const parts[] = {"CPU implementer", "CPU variant", "CPU part",
					    "CPU revision"};
	char line[1024], text[sizeof(m->cpu)] = "";
	const char *value;
	size_t next = 0;
	FILE *f;

	f = open_proc(proc_root, "cpuinfo");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		value = value_of(line, "model name");
		if (value) {
			snprintf(text, sizeof(text), "%s", value);
			break;
		}
		value = next < 4 ? value_of(line, parts[next]) : NULL;
		if (value) {
			size_t len = strlen(text);

			snprintf(text + len, sizeof(text) - len, "%s%s", len ? "/" : "", value);
			next++;
		}
	}
	fclose(f);
	text__utf8(text, m->cpu, sizeof(m->cpu));
}

void machine__read(struct machine *m, const char *proc_root, const char *sysfs_root)
{
	struct cpus online = {};
	struct utsname uts;
	FILE *f;

	memset(m, 0, sizeof(*m));
	m->jit = -1;
	if (!uname(&uts)) {
		snprintf(m->kernel, sizeof(m->kernel), "%s", uts.release);
		snprintf(m->arch, sizeof(m->arch), "%s", uts.machine);
	}
	read_cpu(m, proc_root);
	f = open_proc(proc_root, "sys/net/core/bpf_jit_enable");
	if (f) {
		if (fscanf(f, "%d", &m->jit) != 1)
			m->jit = -1;
		fclose(f);
	}
	if (!cpus__read(&online, sysfs_root, "online")) {
		cpus__format(&online, m->online, sizeof(m->online));
		m->n_online = cpus__count(&online);
	}
	cpus__free(&online);
}
