// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include <bpf/bpf.h>

#include "stats_switch.h"

int stats_switch__hold(struct errmsg *err)
{
	char buf[128];
	int fd, rc;

	fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (fd >= 0)
		return fd;
	rc = -errno;
	errmsg__errno(rc, buf, sizeof(buf));
	if (rc == -EPERM)
		return errmsg__fail(err, rc,
				    "cannot switch the kernel's statistics on: %s; it needs "
				    "CAP_SYS_ADMIN, for example: sudo",
				    buf);
	if (rc == -EINVAL)
		return errmsg__fail(err, rc,
				    "cannot switch the kernel's statistics on: %s; kernels have "
				    "BPF_ENABLE_STATS since 5.8",
				    buf);
	return errmsg__fail(err, rc, "cannot switch the kernel's statistics on: %s", buf);
}
