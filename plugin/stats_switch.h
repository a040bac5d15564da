/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_STATS_SWITCH_H
#define BPFCOST_STATS_SWITCH_H

#include "errmsg.h"

/* Holds the kernel's run time statistics on (BPF_ENABLE_STATS, 5.8) until the fd is closed, however
 * the process ends. Returns the fd, or a negative errno with a message. */
int stats_switch__hold(struct errmsg *err);

#endif
