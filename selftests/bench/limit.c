// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * limit PATH
 *
 * Attaches an empty entry and an empty exit program to the pinned program, until SIGINT: the limit
 * of the method, which no profiler of this kind can undercut.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* `return 0` in BPF */
static const struct bpf_insn return_0[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	{.code = BPF_JMP | BPF_EXIT},
};

/* The fd of the link, or a negative errno. */
static int attach(int target, enum bpf_attach_type type)
{
	struct bpf_func_info func = {};
	struct bpf_prog_info info = {
		.nr_func_info = 1,
		.func_info_rec_size = sizeof(func),
		.func_info = (unsigned long)&func,
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type,
		    .attach_prog_fd = target);
	__u32 len = sizeof(info);
	int fd, link;

	if (bpf_obj_get_info_by_fd(target, &info, &len))
		return -errno;
	opts.attach_btf_id = func.type_id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "limit", "GPL", return_0, 2, &opts);
	if (fd < 0)
		return -errno;
	link = bpf_raw_tracepoint_open(NULL, fd);
	if (link < 0)
		link = -errno;
	close(fd);
	return link;
}

int main(int argc, char **argv)
{
	int fd, link;

	if (argc != 2) {
		fputs("usage: limit PATH\n", stderr);
		return 2;
	}
	fd = bpf_obj_get(argv[1]);
	if (fd < 0) {
		fprintf(stderr, "limit: cannot open %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	link = attach(fd, BPF_TRACE_FEXIT);
	if (link >= 0)
		link = attach(fd, BPF_TRACE_FENTRY);
	if (link < 0) {
		fprintf(stderr, "limit: cannot attach to %s: %s\n", argv[1], strerror(-link));
		return 1;
	}
	for (;;)
		pause();
}
