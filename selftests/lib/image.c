// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>

#include "image.h"

enum kind {
	PLAIN,
	CALL,
	BRANCH,	  /* to a place, on a condition */
	JUMP,	  /* to a place */
	REGISTER, /* to what is in a register */
	RETURN,
};

struct insn {
	size_t at, size; /* bytes of the image */
	enum kind kind;
	long to; /* BRANCH, JUMP: where, as @at is */
};

#if defined(__aarch64__)

#define ENTRY_REGISTER true

static uint32_t word_of(const uint8_t *code)
{
	uint32_t word;

	memcpy(&word, code, sizeof(word));
	return word;
}

/* A signed field of @bits bits from bit @low on, which counts instructions. */
static long distance(uint32_t word, int low, int bits)
{
	return 4L * ((int32_t)(word << (32 - bits - low)) >> (32 - bits));
}

/* Arm Architecture Reference Manual (DDI 0487), C4.1.86, branches and system instructions. */
static bool decode(const uint8_t *code, size_t left, struct insn *i)
{
	uint32_t word;

	if (left < 4)
		return false;
	word = word_of(code);
	i->size = 4;
	if ((word & 0xfc000000) == 0x94000000 || /* bl */
	    (word & 0xfffffc1f) == 0xd63f0000)	 /* blr */
		i->kind = CALL;
	else if ((word & 0xfffffc1f) == 0xd65f0000) /* ret */
		i->kind = RETURN;
	else if ((word & 0xfffffc1f) == 0xd61f0000) /* br */
		i->kind = REGISTER;
	else if ((word & 0xfc000000) == 0x14000000) /* b */
		i->kind = JUMP;
	else if ((word & 0xff000000) == 0x54000000 || /* b.cond */
		 (word & 0x7e000000) == 0x34000000 || /* cbz, cbnz */
		 (word & 0x7e000000) == 0x36000000)   /* tbz, tbnz */
		i->kind = BRANCH;
	if (i->kind == JUMP)
		i->to = (long)i->at + distance(word, 0, 26);
	else if (i->kind == BRANCH)
		i->to = (long)i->at +
			distance(word, 5, (word & 0x7e000000) == 0x36000000 ? 14 : 19);
	return true;
}

/* movn, movz, movk of 64 bits (the same manual, C4.1.93) to x1, the second argument. */
static bool loads_address(const uint8_t *code)
{
	return (word_of(code) & 0x9f80001f) == 0x92800001;
}

/* How far behind a program's begin a tail call enters: what is added to the register that @jump
 * jumps to, last. 0: nothing is. */
static size_t entry_of(const uint8_t *code, const struct insn *insn, size_t jump)
{
	uint32_t reg = word_of(code + insn[jump].at) >> 5 & 31;

	while (jump--) {
		uint32_t word = word_of(code + insn[jump].at);

		if ((word & 0xffc00000) == 0x91000000 && (word & 31) == reg &&
		    (word >> 5 & 31) == reg)
			return word >> 10 & 0xfff;
	}
	return 0;
}

#elif defined(__x86_64__)

/* A tail call by a constant index jumps to where it enters, which here is in the same program. */
#define ENTRY_REGISTER false

static bool loads_address(const uint8_t *code)
{
	(void)code;
	return false; /* always one instruction */
}

static size_t entry_of(const uint8_t *code, const struct insn *insn, size_t jump)
{
	(void)code;
	return insn[jump].to > 0 ? (size_t)insn[jump].to : 0;
}

static bool in(unsigned int op, const char *ranges)
{
	const unsigned char *r = (const unsigned char *)ranges;

	for (; r[0] || r[1]; r += 2)
		if (op >= r[0] && op <= r[1])
			return true;
	return false;
}

/*
 * How long an instruction is (Intel 64 and IA-32 Architectures Software Developer's Manual, volume
 * 2, 2.1, 2.2 and appendix A): of those that the kernel's JIT emits and their likes, no floating
 * point, nothing that 64 bit mode does not have.
 */
static bool decode(const uint8_t *code, size_t left, struct insn *i)
{
	/* Pairs of first and last opcodes, 0 and 0 at the end: 0x00 is put apart. */
	static const char modrm1[] =
		"\x01\x03\x08\x0b\x10\x13\x18\x1b\x20\x23\x28\x2b\x30\x33\x38\x3b"
		"\x63\x63\x69\x69\x6b\x6b\x80\x8f\xc0\xc1\xc6\xc7\xd0\xd3\xf6\xf7"
		"\xfe\xff\0";
	static const char byte1[] =
		"\x04\x04\x0c\x0c\x14\x14\x1c\x1c\x24\x24\x2c\x2c\x34\x34\x3c\x3c"
		"\x6a\x6b\x70\x80\x83\x83\xa8\xa8\xb0\xb7\xc0\xc1\xc6\xc6\xcd\xcd"
		"\xe0\xe3\xeb\xeb\0";
	static const char word1[] =
		"\x05\x05\x0d\x0d\x15\x15\x1d\x1d\x25\x25\x2d\x2d\x35\x35\x3d\x3d"
		"\x68\x69\x81\x81\xa9\xa9\xb8\xbf\xc7\xc7\xe8\xe9\0";
	static const char bare1[] =
		"\x50\x5f\x90\x9f\xa4\xa7\xaa\xaf\xc3\xc3\xc9\xc9\xcc\xcc\xf4\xf5"
		"\xf8\xfd\0";
	static const char bare2[] = "\x05\x05\x0b\x0b\x30\x34\xa2\xa2\xc8\xcf\0";
	bool modrm, wide = false, half = false, two = false;
	size_t n = 0, imm = 0;
	unsigned int op, reg = 8;

	for (; n < left && (strchr("\x66\xf2\xf3\xf0\x2e\x36\x3e\x26\x64\x65", code[n]) && code[n]);
	     n++)
		half |= code[n] == 0x66;
	if (n < left && (code[n] & 0xf0) == 0x40)
		wide = code[n++] & 8;
	if (n + 2 > left && !(n < left && in(code[n], bare1)))
		return false;
	op = code[n++];
	if (op == 0x0f) {
		two = true;
		op = code[n++];
		if (op >= 0x80 && op <= 0x8f) {
			imm = 4;
			modrm = false;
			i->kind = BRANCH;
		} else if (op == 0x38 || op == 0x3a) {
			imm = op == 0x3a;
			n++;
			modrm = true;
		} else {
			modrm = !in(op, bare2);
			imm = op == 0xba || op == 0xa4 || op == 0xac;
		}
	} else if (op == 0xc4 || op == 0xc5) {
		/* VEX: bmi2's shifts are in map 2, and rotations, with a byte, in map 3. */
		imm = op == 0xc4 && (code[n] & 31) == 3;
		n += op == 0xc4 ? 3 : 2;
		modrm = true;
	} else {
		modrm = !op || in(op, modrm1);
		if (!modrm && !in(op, byte1) && !in(op, word1) && !in(op, bare1) && op != 0xc2)
			return false;
		imm = in(op, byte1) ? 1 : op == 0xc2 ? 2 : in(op, word1) ? 4 : 0;
		if (wide && op >= 0xb8 && op <= 0xbf)
			imm = 8;
		else if (half && imm == 4 && op != 0xe8 && op != 0xe9)
			imm = 2;
	}
	if (modrm) {
		unsigned int mod, rm;

		if (n >= left)
			return false;
		mod = code[n] >> 6;
		reg = code[n] >> 3 & 7;
		rm = code[n++] & 7;
		if (mod != 3 && rm == 4 && n < left && !mod && (code[n] & 7) == 5)
			imm += 4;
		if (mod != 3 && rm == 4)
			n++;
		imm += mod == 1 ? 1 : mod == 2 || (!mod && rm == 5) ? 4 : 0;
		/* test has a constant, its neighbours have none. */
		if (!two && reg < 2 && (op == 0xf6 || op == 0xf7))
			imm += op == 0xf6 ? 1 : half ? 2 : 4;
	}
	n += imm;
	if (n > left)
		return false;
	i->size = n;
	if (!two && (op == 0xe8 || (op == 0xff && reg == 2)))
		i->kind = CALL;
	else if (!two && op == 0xff && reg == 4)
		i->kind = REGISTER;
	else if (!two && (op == 0xe9 || op == 0xeb))
		i->kind = JUMP;
	else if (!two && ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3)))
		i->kind = BRANCH;
	else if (!two && op == 0xc3)
		i->kind = RETURN;
	if (i->kind == JUMP || i->kind == BRANCH) {
		int32_t rel = (int8_t)code[n - 1];

		if (imm == 4)
			memcpy(&rel, code + n - 4, sizeof(rel));
		i->to = (long)(i->at + n) + rel;
	}
	return true;
}

#else
#error "which instructions does this architecture have?"
#endif

/* A function's instructions; those of which the rest is not known are none. */
struct code {
	const uint8_t *bytes;
	struct insn *insn;
	size_t n;
};

static bool decode_all(struct code *c, size_t size)
{
	size_t at = 0;

	for (c->n = 0; at < size; c->n++) {
		struct insn *i = &c->insn[c->n];

		*i = (struct insn){.at = at};
		if (!decode(c->bytes + at, size - at, i))
			return false;
		at += i->size;
	}
	return true;
}

/* The instruction that begins at this byte, or @c->n. */
static size_t find(const struct code *c, long at)
{
	size_t i;

	for (i = 0; i < c->n && (long)c->insn[i].at != at; i++)
		;
	return i;
}

static bool is_branch(const struct insn *i)
{
	return i->kind == BRANCH || i->kind == JUMP || i->kind == REGISTER;
}

static unsigned int to_return(const struct code *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->insn[i].kind == RETURN)
			return (unsigned int)i + 1;
		if (is_branch(&c->insn[i]))
			return 0;
	}
	return 0;
}

static void find_loop(struct image *image, const struct code *c)
{
	size_t found = 0, first = 0, last = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct insn *insn = &c->insn[i];
		size_t to;

		if ((insn->kind != BRANCH && insn->kind != JUMP) || insn->to > (long)insn->at)
			continue;
		to = find(c, insn->to);
		if (to == c->n)
			continue;
		first = to;
		last = i;
		found++;
	}
	if (found != 1)
		return;
	image->loop = (unsigned int)(last - first + 1);
	for (size_t i = first; i <= last; i++)
		image->loop_calls += c->insn[i].kind == CALL;
}

static bool leaves(const struct insn *i)
{
	return ENTRY_REGISTER ? i->kind == REGISTER : i->kind == JUMP && i->to < (long)i->at;
}

/*
 * Since the call happens, no branch past it is taken. Of the others, the last one is the program's,
 * and taken; one before it is the JIT's own, for tail calls from subprograms (x86 since 6.12), and
 * is not.
 */
static void find_tail_call(struct image *image, const struct code *c)
{
	size_t jump, at, steps = 0, address = 0, taken = 0;

	for (jump = 0; jump < c->n && !leaves(&c->insn[jump]); jump++)
		;
	if (jump == c->n)
		return;
	at = entry_of(c->bytes, c->insn, jump);
	at = at ? find(c, (long)at) : c->n;
	for (size_t i = at; i < jump; i++)
		if (c->insn[i].kind == BRANCH && c->insn[i].to <= (long)c->insn[jump].at)
			taken = i;
	for (; at < c->n && at != jump && steps < c->n; steps++) {
		const struct insn *i = &c->insn[at];

		address += loads_address(c->bytes + i->at);
		if (i->kind == JUMP || (taken && at == taken))
			at = find(c, i->to);
		else
			at++;
	}
	if (at != jump)
		return;
	image->tail_call = (unsigned int)steps + 1;
	image->tail_address = (unsigned int)address;
}

/* Function number @f. */
static void look_at(struct image *image, const struct code *c, size_t f)
{
	image->insns += c->n;
	for (size_t i = 0; i < c->n; i++) {
		image->calls += c->insn[i].kind == CALL;
		image->branches += is_branch(&c->insn[i]);
		image->thunks += c->insn[i].kind == JUMP && find(c, c->insn[i].to) == c->n;
	}
	image->to_return[f] = to_return(c);
	if (f)
		return;
	find_loop(image, c);
	find_tail_call(image, c);
}

int image__read(struct image *image, int prog_fd)
{
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info), lens[IMAGE_MAX_FUNCS] = {}, n_funcs;
	uint8_t *bytes = NULL;
	struct code c = {};
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
	bytes = calloc(1, image->bytes);
	c.insn = calloc(image->bytes, sizeof(*c.insn));
	if (!bytes || !c.insn) {
		rc = -ENOMEM;
		goto cleanup;
	}
	memset(&info, 0, sizeof(info));
	info.jited_prog_insns = (uintptr_t)bytes;
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
	image->decoded = true;
	for (__u32 f = 0; f < n_funcs; f++) {
		if (at + lens[f] > image->bytes) {
			rc = -EPROTO;
			goto cleanup;
		}
		c.bytes = bytes + at;
		image->decoded = image->decoded && decode_all(&c, lens[f]);
		if (image->decoded)
			look_at(image, &c, f);
		at += lens[f];
	}
cleanup:
	free(c.insn);
	free(bytes);
	return rc;
}
