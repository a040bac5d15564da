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

enum kind { PLAIN, CALL, BRANCH, JUMP, REGISTER, RETURN };

/* Arm Architecture Reference Manual (DDI 0487), C4.1.86, branches and system instructions. */
static enum kind kind_of(uint32_t insn)
{
	if ((insn & 0xfc000000) == 0x94000000 || /* bl */
	    (insn & 0xfffffc1f) == 0xd63f0000)	 /* blr */
		return CALL;
	if ((insn & 0xfffffc1f) == 0xd65f0000) /* ret */
		return RETURN;
	if ((insn & 0xfc000000) == 0x14000000) /* b */
		return JUMP;
	if ((insn & 0xfffffc1f) == 0xd61f0000) /* br */
		return REGISTER;
	if ((insn & 0xff000000) == 0x54000000 || /* b.cond */
	    (insn & 0x7e000000) == 0x34000000 || /* cbz, cbnz */
	    (insn & 0x7e000000) == 0x36000000)	 /* tbz, tbnz */
		return BRANCH;
	return PLAIN;
}

static bool is_branch(uint32_t insn)
{
	enum kind kind = kind_of(insn);

	return kind == BRANCH || kind == JUMP || kind == REGISTER;
}

/* Where a BRANCH or JUMP leads, in instructions from itself: a signed field of 26, 14 or 19 bits. */
static int distance(uint32_t insn)
{
	int bits = kind_of(insn) == JUMP ? 26 : (insn & 0x7e000000) == 0x36000000 ? 14 : 19;
	int low = bits == 26 ? 0 : 5;

	return (int32_t)(insn << (32 - bits - low)) >> (32 - bits);
}

static unsigned int to_return(const uint32_t *insn, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (kind_of(insn[i]) == RETURN)
			return (unsigned int)i + 1;
		if (is_branch(insn[i]))
			return 0;
	}
	return 0;
}

static void find_loop(struct image *image, const uint32_t *insn, size_t n)
{
	size_t found = 0, first = 0, last = 0;

	for (size_t i = 0; i < n; i++) {
		int d;

		if (kind_of(insn[i]) != BRANCH && kind_of(insn[i]) != JUMP)
			continue;
		d = distance(insn[i]);
		if (d >= 0 || (size_t)-d > i)
			continue;
		first = i - (size_t)-d;
		last = i;
		found++;
	}
	if (found != 1)
		return;
	image->loop = (unsigned int)(last - first + 1);
	for (size_t i = first; i <= last; i++)
		image->loop_calls += kind_of(insn[i]) == CALL;
}

/*
 * A tail call jumps to a register, to which it has added how far behind a program's begin it enters.
 * (add and mov of wide constants: the same manual, C4.1.93. The second argument, the map, is in x1.)
 */
static void find_tail_call(struct image *image, const uint32_t *insn, size_t n)
{
	size_t jump, at = 0, address = 0, steps = 0;
	bool taken = false;
	uint32_t reg;

	for (jump = 0; jump < n && kind_of(insn[jump]) != REGISTER; jump++)
		;
	if (jump == n)
		return;
	reg = insn[jump] >> 5 & 31;
	for (size_t i = jump; i-- && !at;) {
		if ((insn[i] & 0xffc00000) == 0x91000000 && (insn[i] & 31) == reg &&
		    (insn[i] >> 5 & 31) == reg)
			at = (insn[i] >> 10 & 0xfff) / sizeof(*insn);
	}
	while (at && at < n && at != jump) {
		enum kind kind = kind_of(insn[at]);

		/* movn, movz, movk */
		address += (insn[at] & 0x9f80001f) == 0x92800001;
		steps++;
		if (kind == JUMP || (kind == BRANCH && !taken)) {
			taken |= kind == BRANCH;
			at += (size_t)(ptrdiff_t)distance(insn[at]);
		} else {
			at++;
		}
		if (steps > n)
			return;
	}
	if (at != jump)
		return;
	image->tail_call = (unsigned int)steps + 1;
	image->tail_address = (unsigned int)address;
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
		image->branches += is_branch(code[i]);
	}
	find_loop(image, code, lens[0] / sizeof(*code));
	find_tail_call(image, code, lens[0] / sizeof(*code));
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
