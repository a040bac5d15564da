/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_MACHINE_H
#define BPFCOST_MACHINE_H

/* What a measurement depends on, and a comparison must know: the same machine, with the same
 * kernel, or another one. */
struct machine {
	char kernel[65];  /* uname -r */
	char arch[65];	  /* uname -m */
	char cpu[128];	  /* the model, as /proc/cpuinfo says it; "" if it does not */
	int jit;	  /* net.core.bpf_jit_enable; -1: not known */
	char online[256]; /* the CPUs that are online, as a list: "0-3" */
	unsigned n_online;
};

/* What cannot be read stays empty. */
void machine__read(struct machine *m, const char *proc_root, const char *sysfs_root);

#endif
