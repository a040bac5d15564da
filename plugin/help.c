// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "help.h"

/* selftests/usage/words.bats takes this apart, and holds the man page and the completion to it. */
const char *help__text(void)
{
	return "Usage: bpfcost [OPTIONS] OBJECT { COMMAND | help }\n"
	       "\n"
	       "       bpfcost prog profile PROG... [func FUNC] [duration SECONDS]\n"
	       "                            [interval SECONDS] [sample N] [histogram]\n"
	       "                            [by task] [METRIC...] [-- COMMAND...]\n"
	       "       bpfcost prog stats [PROG...] [duration SECONDS] [interval SECONDS]\n"
	       "                          [by owner] [-- COMMAND...]\n"
	       "       bpfcost prog bench { PROG... | OBJ } [data_in FILE] [ctx_in FILE]\n"
	       "                          [repeat N] [count N] [format go] [METRIC...]\n"
	       "                          [-- COMMAND...]\n"
	       "       bpfcost prog compare OLD NEW [threshold P] [force]\n"
	       "       bpfcost prog compare history DIR [force]\n"
	       "       bpfcost stats show\n"
	       "       bpfcost stats enable [duration SECONDS] [inherit] [-- COMMAND...]\n"
	       "       bpfcost metric list\n"
	       "       bpfcost calibrate\n"
	       "\n"
	       "       PROG    := { id ID | tag TAG | name NAME | pinned FILE } | all\n"
	       "       METRIC  := { ns | cycles | instructions | l1d_loads | llc_misses |\n"
	       "                    itlb_misses | dtlb_misses | ... };\n"
	       "                  'bpfcost metric list' shows all\n"
	       "       OPTIONS := { -j | --json } [{ -p | --pretty }] | { -d | --debug } |\n"
	       "                  { -V | --version } | { -h | --help }\n"
	       "\n"
	       "       Everything else is handed over to bpftool.\n"
	       "\n";
}
