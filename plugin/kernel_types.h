/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_KERNEL_TYPES_H
#define BPFCOST_KERNEL_TYPES_H

/*
 * The kernel's types that the profiler's programs are relocated against, as BTF of their own: a
 * few hundred bytes. The whole of the kernel's BTF is read once, and not by libbpf for each target,
 * which took some 40 ms each.
 */
struct kernel_types {
	int fd; /* -1: none */
	char path[32];
};

/*
 * Where libbpf shall look for the types (struct bpf_object_open_opts, btf_custom_path), or NULL
 * when they cannot be had: libbpf then looks for itself, and says what is wrong.
 */
const char *kernel_types__open(struct kernel_types *t);
void kernel_types__close(struct kernel_types *t);

#endif
