// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs to measure that are in an object file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "bench.h"
#include "caps.h"

/* Of a log: the end says what is wrong. Memory that the kernel does not write to is not used. */
#define LOG_SIZE       (8 << 20)
#define LOG_LAST_LINES 4
#define LOG_LINE_MAX   160

/* The last lines of the verifier's log as one, without its counts, which are always the last. */
static void last_lines(char *log, char *buf, size_t size)
{
	char *lines[LOG_LAST_LINES] = {}, *line, *save = NULL;
	size_t i, n = 0, len = 0;

	buf[0] = '\0';
	for (line = strtok_r(log, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		/* Comments in it are lines of the source. */
		if (!strncmp(line, "processed ", 10) || !strncmp(line, "verification time ", 18) ||
		    !strncmp(line, "stack depth ", 12))
			continue;
		lines[n++ % LOG_LAST_LINES] = line;
	}
	for (i = n > LOG_LAST_LINES ? n - LOG_LAST_LINES : 0; i < n && len < size; i++)
		len += snprintf(buf + len, size - len, "%s%.*s", len ? " | " : "", LOG_LINE_MAX,
				lines[i % LOG_LAST_LINES]);
}

static int load_error(struct bench *b, int rc, char **logs, const char *path, struct errmsg *err)
{
	static const cap_value_t needed[] = {CAP_BPF, CAP_PERFMON};
	char buf[128], text[(LOG_LAST_LINES + 1) * LOG_LINE_MAX];
	struct bpf_program *prog;
	size_t i = 0;

	errmsg__errno(rc, buf, sizeof(buf));
	if (rc == -EPERM && !caps__missing(needed, 2, text, sizeof(text)))
		return errmsg__fail(err, rc,
				    "cannot load '%s': %s; no capability is missing, so that this "
				    "host or container forbids one of its programs%s",
				    path, buf,
				    b->command ? "; without -- COMMAND only those are loaded that "
						 "the kernel can run by itself"
					       : "");
	if (rc == -EPERM)
		return errmsg__fail(err, rc,
				    "cannot load '%s': %s; it needs CAP_BPF, and CAP_PERFMON or "
				    "CAP_NET_ADMIN, for example: sudo",
				    path, buf);
	bpf_object__for_each_program(prog, b->object)
	{
		if (logs[i] && logs[i][0]) {
			last_lines(logs[i], text, sizeof(text));
			return errmsg__fail(
				err, rc,
				"cannot load '%s': the verifier refuses the program '%s': %s: %s",
				path, bpf_program__name(prog), buf, text);
		}
		i++;
	}
	return errmsg__fail(err, rc, "cannot load '%s': %s; -d shows what libbpf says", path, buf);
}

static int add_left_out(struct bench *b, struct bpf_program *prog, struct errmsg *err)
{
	struct prog none = {.fd = -1, .type = bpf_program__type(prog)};
	struct bench_prog *p;
	char type[32];
	int rc;

	none.name = strdup(bpf_program__name(prog));
	if (!none.name)
		return errmsg__fail(err, -ENOMEM, "out of memory");
	rc = bench__add(b, &none, err);
	if (rc)
		return rc;
	p = b->v[b->n - 1];
	if (p->prog.type == BPF_PROG_TYPE_UNSPEC)
		errmsg__fail(&p->why, -EINVAL,
			     "'%s': its section '%s' does not say what type of program it is",
			     p->prog.name, bpf_program__section_name(prog));
	else if (p->how == BENCH_LOADED)
		errmsg__fail(&p->why, -EOPNOTSUPP,
			     "'%s': a program of type %s is not loaded by itself; load and attach "
			     "it, and name it by its id, with -- COMMAND",
			     p->prog.name, prog__type_name(p->prog.type, type, sizeof(type)));
	else
		errmsg__fail(&p->why, -EOPNOTSUPP,
			     "'%s': the kernel cannot run programs of type %s by itself; measure "
			     "it while a command makes it run: -- COMMAND",
			     p->prog.name, prog__type_name(p->prog.type, type, sizeof(type)));
	return 0;
}

static int add_loaded(struct bench *b, struct bpf_program *prog, struct errmsg *err)
{
	struct prog p = {.fd = -1};
	int fd, rc;

	fd = dup(bpf_program__fd(prog));
	if (fd < 0)
		return errmsg__fail(err, -errno, "cannot duplicate an fd: %s", strerror(errno));
	rc = prog__open_fd(&p, fd, err) ?: bench__add(b, &p, err);
	if (!rc)
		b->v[b->n - 1]->object_prog = prog;
	return rc;
}

static bool is_wanted(const struct bench *b, const struct bpf_program *prog)
{
	enum bench_how how = bench__how(bpf_program__type(prog));

	return how <= BENCH_ONCE || (how == BENCH_COMMAND && b->command);
}

/* Sets up what is loaded: nothing is pinned, or taken from what somebody else has pinned. */
static int prepare(struct bench *b, char **logs, size_t *n_wanted, struct errmsg *err)
{
	struct bpf_program *prog;
	struct bpf_map *map;
	size_t i = 0;
	int rc = 0;

	bpf_object__for_each_map(map, b->object)
	{
		if (bpf_map__pin_path(map))
			rc = rc ?: bpf_map__set_pin_path(map, NULL);
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			rc = rc ?: bpf_map__set_autocreate(map, false);
	}
	bpf_object__for_each_program(prog, b->object)
	{
		if (!bpf_program__autoload(prog)) { /* SEC("?...") */
			i++;
			continue;
		}
		if (!is_wanted(b, prog)) {
			rc = rc ?: bpf_program__set_autoload(prog, false) ?:
				   add_left_out(b, prog, err);
			i++;
			continue;
		}
		logs[i] = calloc(1, LOG_SIZE);
		if (!logs[i])
			return errmsg__fail(err, -ENOMEM, "out of memory");
		rc = rc ?: bpf_program__set_log_buf(prog, logs[i++], LOG_SIZE);
		++*n_wanted;
	}
	return rc ? errmsg__fail(err, rc, "cannot prepare the object: %s", strerror(-rc)) : 0;
}

int bench__open_object(struct bench *b, const char *path, struct errmsg *err)
{
	struct bpf_program *prog;
	char **logs = NULL, buf[128];
	size_t n = 0, n_wanted = 0, i;
	const char *slash;
	int rc;

	if (access(path, R_OK)) {
		rc = errno;
		return errmsg__usage(err, "cannot read '%s': %s", path,
				     errmsg__errno(rc, buf, sizeof(buf)));
	}
	b->object = bpf_object__open_file(path, NULL);
	if (!b->object) {
		rc = -errno;
		return errmsg__usage(err, "'%s' is no object file with BPF programs: %s", path,
				     errmsg__errno(rc, buf, sizeof(buf)));
	}
	slash = strrchr(path, '/');
	b->object_name = strdup(slash ? slash + 1 : path);
	bpf_object__for_each_program(prog, b->object) n++;
	if (!n)
		return errmsg__usage(err, "there are no BPF programs in '%s'", path);
	logs = calloc(n, sizeof(*logs));
	if (!b->object_name || !logs) {
		rc = errmsg__fail(err, -ENOMEM, "out of memory");
		goto cleanup;
	}
	rc = prepare(b, logs, &n_wanted, err);
	if (rc || !n_wanted)
		goto cleanup;
	rc = bpf_object__load(b->object);
	if (rc) {
		load_error(b, rc, logs, path, err);
		goto cleanup;
	}
	bpf_object__for_each_program(prog, b->object) if (!rc && bpf_program__fd(prog) >= 0)
		rc = add_loaded(b, prog, err);
cleanup:
	/* libbpf has the buffers, too, and writes to none after the load. */
	for (i = 0; logs && i < n; i++)
		free(logs[i]);
	free(logs);
	return rc;
}
