// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "help.h"

const char *help__text(void)
{
	return "Usage: bpfcost [OPTIONS] OBJECT { COMMAND | help }\n"
	       "\n"
	       "       bpfcost prog profile PROG... [func FUNC] [duration SECONDS] [interval "
	       "SECONDS]\n"
	       "                            [sample N] [METRIC...] [-- COMMAND...]\n"
	       "       bpfcost metric list\n"
	       "\n"
	       "       PROG    := { id ID | tag TAG | name NAME | pinned FILE } | all\n"
	       "       METRIC  := { ns | cycles | instructions | l1d_loads | llc_misses | "
	       "itlb_misses |\n"
	       "                    dtlb_misses | ... } ; 'metric list' shows all\n"
	       "       OPTIONS := { -j | --json } [{ -p | --pretty }] | { -d | --debug } |\n"
	       "                  { -V | --version } | { -h | --help }\n"
	       "\n"
	       "       Everything else is handed over to bpftool.\n"
	       "\n";
}
