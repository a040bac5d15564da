/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_INSN_H
#define SELFTESTS_INSN_H

/*
 * BPF instructions as initializers, for programs that tests write out by hand: no compiler for BPF
 * is needed, and what runs is known to the instruction. The names follow the assembler's.
 */

#include <linux/bpf.h>

#define INSN(c, d, s, o, i)                                                                        \
	((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})

#define R0  BPF_REG_0
#define R1  BPF_REG_1
#define R2  BPF_REG_2
#define R3  BPF_REG_3
#define R4  BPF_REG_4
#define R5  BPF_REG_5
#define R6  BPF_REG_6
#define R7  BPF_REG_7
#define R8  BPF_REG_8
#define R9  BPF_REG_9
#define R10 BPF_REG_10

/* dst = imm, dst = src, dst += imm, dst += src, all 64 bits wide */
#define I_MOV(d, i)  INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define I_MOVR(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define I_ADD(d, i)  INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define I_ADDR(d, s) INSN(BPF_ALU64 | BPF_ADD | BPF_X, d, s, 0, 0)

/* loads and stores; SIZE is BPF_B, BPF_H, BPF_W or BPF_DW */
#define I_LDX(size, d, s, o)	INSN(BPF_LDX | (size) | BPF_MEM, d, s, o, 0)
#define I_STX(size, d, s, o)	INSN(BPF_STX | (size) | BPF_MEM, d, s, o, 0)
#define I_ST(size, d, o, i)	INSN(BPF_ST | (size) | BPF_MEM, d, 0, o, i)
#define I_ATOMIC_ADD64(d, s, o) INSN(BPF_STX | BPF_DW | BPF_ATOMIC, d, s, o, BPF_ADD)

/* jumps; OFF counts instructions after the jump */
#define I_JA(o)		INSN(BPF_JMP | BPF_JA, 0, 0, o, 0)
#define I_JEQ(d, i, o)	INSN(BPF_JMP | BPF_JEQ | BPF_K, d, 0, o, i)
#define I_JNE(d, i, o)	INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, o, i)
#define I_JLT(d, i, o)	INSN(BPF_JMP | BPF_JLT | BPF_K, d, 0, o, i)
#define I_JNER(d, s, o) INSN(BPF_JMP | BPF_JNE | BPF_X, d, s, o, 0)
#define I_CALL(helper)	INSN(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define I_CALL_SUB(o)	INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, o)
/* by the function's number in the kernel's BTF */
#define I_CALL_KERNEL(id) INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, id)
#define I_EXIT()	INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* the loads that take two instructions: a constant, a map, the value of an array map of one entry,
 * the address of a subprogram */
#define I_LD64(d, v)                                                                               \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, 0, 0, (__s32)(__u64)(v)),                               \
		INSN(0, 0, 0, 0, (__s32)((__u64)(v) >> 32))
#define I_LD_MAP(d, fd)                                                                            \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)
#define I_LD_VALUE(d, fd, o)                                                                       \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_VALUE, 0, fd), INSN(0, 0, 0, 0, o)
#define I_LD_FUNC(d, o)                                                                            \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_FUNC, 0, o), INSN(0, 0, 0, 0, 0)

#define INSN_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
