// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
int main(void)
{
	puts("bpfcost " BPFCOST_VERSION);
	return 0;
}
