// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>

#include "image.h"

#if defined(__aarch64__)
#define DECODED true
#else
#define DECODED false
#endif

enum kind { PLAIN, CALL, BRANCH, RETURN };

/* Arm Architecture Reference Manual (DDI 0487), C4.1.86, branches and system instructions. */
static enum kind kind_of(uint32_t insn)
{
	if ((insn & 0xfc000000) == 0x94000000 || /* bl */
	    (insn & 0xfffffc1f) == 0xd63f0000)	 /* blr */
		return CALL;
	if ((insn & 0xfffffc1f) == 0xd65f0000) /* ret */
		return RETURN;
	if ((insn & 0xfc000000) == 0x14000000 || /* b */
	    (insn & 0xff000000) == 0x54000000 || /* b.cond */
	    (insn & 0x7e000000) == 0x34000000 || /* cbz, cbnz */
	    (insn & 0x7e000000) == 0x36000000 || /* tbz, tbnz */
	    (insn & 0xfffffc1f) == 0xd61f0000)	 /* br */
		return BRANCH;
	return PLAIN;
}

static unsigned int to_return(const uint32_t *insn, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		switch (kind_of(insn[i])) {
		case RETURN:
			return (unsigned int)i + 1;
		case BRANCH:
			return 0;
		default:
			break;
		}
	}
	return 0;
}

int image__read(struct image *image, int prog_fd)
{
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info), lens[IMAGE_MAX_FUNCS] = {}, n_funcs;
	uint32_t *code = NULL;
	size_t at = 0;
	int rc = 0;

	memset(image, 0, sizeof(*image));
	if (bpf_obj_get_info_by_fd(prog_fd, &info, &size))
		return -errno;
	image->bytes = info.jited_prog_len;
	n_funcs = info.nr_jited_func_lens;
	if (!image->bytes)
		return -ENOENT;
	if (n_funcs > IMAGE_MAX_FUNCS)
		return -E2BIG;
	code = calloc(1, image->bytes);
	if (!code)
		return -ENOMEM;
	memset(&info, 0, sizeof(info));
	info.jited_prog_insns = (uintptr_t)code;
	info.jited_prog_len = image->bytes;
	info.jited_func_lens = (uintptr_t)lens;
	info.nr_jited_func_lens = n_funcs;
	size = sizeof(info);
	if (bpf_obj_get_info_by_fd(prog_fd, &info, &size)) {
		rc = -errno;
		goto cleanup;
	}
	/* Where addresses are secret (kptr_restrict), so is the code. */
	if (!info.jited_prog_insns || info.jited_prog_len != image->bytes) {
		rc = -ENOENT;
		goto cleanup;
	}
	/* Kernels tell of the functions only where there are several. */
	if (!n_funcs) {
		n_funcs = 1;
		lens[0] = image->bytes;
	}
	image->n_funcs = n_funcs;
	image->decoded = DECODED;
	if (!DECODED)
		goto cleanup;
	for (size_t i = 0; i < image->bytes / sizeof(*code); i++) {
		image->calls += kind_of(code[i]) == CALL;
		image->branches += kind_of(code[i]) == BRANCH;
	}
	for (__u32 f = 0; f < n_funcs; f++) {
		if (at + lens[f] > image->bytes) {
			rc = -EPROTO;
			goto cleanup;
		}
		image->to_return[f] = to_return(code + at / sizeof(*code), lens[f] / sizeof(*code));
		at += lens[f];
	}
cleanup:
	free(code);
	return rc;
}
