/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_HELP_H
#define BPFCOST_HELP_H

/* What there is besides bpftool's commands. The man page and the completion are held to the words
 * in it by selftests/cli/words.bats. */
const char *help__text(void);

#endif
