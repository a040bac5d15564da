/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_IMAGE_H
#define SELFTESTS_IMAGE_H

/*
 * The machine code that a JIT made of a program, as BPF_OBJ_GET_INFO_BY_FD gives it: what a program
 * costs can be read off code that has no branches, or known ones.
 */
#include <stdbool.h>
#include <stddef.h>

#define IMAGE_MAX_FUNCS 16

struct image {
	size_t bytes;	       /* of all functions */
	bool decoded;	       /* all instructions were told apart: what is below is known */
	size_t insns;	       /* of all functions */
	unsigned int calls;    /* helpers, kfuncs, subprograms */
	unsigned int branches; /* all others but returns, conditional or not */
	/* Jumps out of a function: to a return thunk of the kernel's (x86), of which no image says
	 * how long it is. */
	unsigned int thunks;
	size_t n_funcs; /* the program's own function, and its subprograms */
	/* Instructions from a function's first to its first ret, both included; 0 if there is a branch
	 * between them. Calls are counted as the one instruction that they are. */
	unsigned int to_return[IMAGE_MAX_FUNCS];
	/* The program's only loop: instructions from where the only branch that goes back leads to
	 * that branch, both included, and the calls among them. 0 without, or if there are more. */
	unsigned int loop;
	unsigned int loop_calls;
	/* A program that ends with a tail call: instructions from where a tail call enters it to
	 * the jump of its own, both included, if of the branches between them only the last one is
	 * taken that does not lead past the jump; 0 if there is no such call. Then those of them
	 * that load the map's address, which depend on the address. */
	unsigned int tail_call;
	unsigned int tail_address;
};

/* -ENOENT: the program was not compiled, or the kernel does not show the code; else a negative
 * errno. */
int image__read(struct image *image, int prog_fd);

#endif
