// SPDX-License-Identifier: GPL-2.0
/* patient: the path of the least round-trip time, and a slower one only when more than 256 KiB wait. For web pages. */
#include <plait/sched.h>

#define PATIENCE_BYTES	(256 * 1024)

static struct mptcp_subflow_context *patient_pick(struct mptcp_sock *msk)
{
	struct plait_option option[PLAIT_OPTIONS];
	int n = plait_options(msk, option);
	struct plait_option *nearest = plait_fastest(option, n, false);
	struct plait_option *free;

	if (!nearest)
		return NULL;
	if (nearest->room)
		return plait_send(msk, nearest, nearest->room);
	if (plait_pending(msk) <= PATIENCE_BYTES && !nearest->timeouts)
		return NULL;
	free = plait_fastest(option, n, true);
	return free ? plait_send(msk, free, free->room) : NULL;
}

PLAIT_SCHEDULER(patient, patient_pick, 0);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler: waits for the nearest path while little waits");
