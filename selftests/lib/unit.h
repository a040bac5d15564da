/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SELFTESTS_UNIT_H
#define SELFTESTS_UNIT_H

#include <stddef.h>

/*
 * Trees of files that stand for /sys. fixtures/NAME.tree, beside the program that runs, describes
 * one: a line a file, its path, a blank, and what is in it; '#' starts a comment.
 */

/* Makes the tree in a temporary directory, whose path goes to @root. Ends the program when that
 * does not work: nothing can be tested then. */
void unit_tree(const char *name, char *root, size_t size);

/* Writes @text and a newline to the file @root/@path; makes its directories. Ends the program when
 * that does not work. */
void unit_write(const char *root, const char *path, const char *text);

void unit_tree_remove(const char *root);

#endif
