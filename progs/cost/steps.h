/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_COST_STEPS_H
#define BPFCOST_COST_STEPS_H

/*
 * Programs with known costs. A family is programs that differ in nothing but how often they do one
 * step: FAMILY_N does it N times. All of it is written out in BPF instructions, for a compiler
 * would fold the steps into one. Verifiers remove what they can prove to be dead, so that steps
 * read values that they cannot know.
 *
 * N, the number of steps, is even: JITs align what comes behind a program, and the images of N, 2N
 * and 3N steps then differ in steps only.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define CTX_tc	    struct __sk_buff
#define CTX_xdp	    struct xdp_md
#define CTX_raw_tp  struct bpf_raw_tracepoint_args
#define CTX_syscall struct cost_syscall

/* What a program of type syscall is handed over. */
struct cost_syscall {
	__u64 user; /* an address */
};

/* FAMILY_N of @code, which finds the context in r1. What follows are its operands: helpers and maps
 * by name. (A naked function would be shorter, but clang gives its parameter no name, and kernels
 * refuse type information without.) */
#define PROGRAM(type, family, n, code, ...)                                                     \
	SEC(#type) int family##_##n(CTX_##type *ctx)                                            \
	{                                                                                       \
		register void *r1 asm("r1") = ctx;                                              \
                                                                                                \
		asm volatile(code                                                               \
			     : "+r"(r1)                                                         \
			     : __VA_ARGS__                                                      \
			     : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "memory"); \
		return 0;                                                                       \
	}

#define STEPS_PROGRAM(type, family, n, before, step, after, ...)                           \
	PROGRAM(type, family, n, before "\n\t.rept " #n "\n\t" step "\n\t.endr\n\t" after, \
		##__VA_ARGS__)

/* A family: @before, then the steps, then @after. */
#define STEPS(type, family, n1, n2, n3, before, step, after, ...)           \
	STEPS_PROGRAM(type, family, n1, before, step, after, ##__VA_ARGS__) \
	STEPS_PROGRAM(type, family, n2, before, step, after, ##__VA_ARGS__) \
	STEPS_PROGRAM(type, family, n3, before, step, after, ##__VA_ARGS__)

#define HELPER(name) [name] "i"(BPF_FUNC_##name)
#define ADDR(map)    [map] "i"(&map)

/* Functions that are called from assembly only. */
#define FUNCTION_STATIC static __attribute__((naked, noinline, used))
#define FUNCTION_GLOBAL __attribute__((naked, noinline))

#endif
