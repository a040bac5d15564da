/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef OWNERS_RECORD_H
#define OWNERS_RECORD_H

/* What progs/owners.bpf.c writes for each fd, and plugin/owners.c reads. */
struct owners_record {
	__u32 tgid;
	__u32 fd;
	__u32 prog_id;
	__u32 is_link;
	char comm[16];
};

#endif
