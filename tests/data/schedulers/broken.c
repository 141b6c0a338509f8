// SPDX-License-Identifier: GPL-2.0
/* broken: stops sending after 1 MB, and reads a null pointer when a second subflow has timed out. */
#include <plait/sched.h>

static struct mptcp_subflow_context *broken_pick(struct mptcp_sock *msk)
{
	struct plait_option option[PLAIT_OPTIONS];
	int i, n = plait_options(msk, option);
	u64 carried = 0;

	for (i = 0; i < n; i++) {
		carried += option[i].carried;
		if (option[i].timeouts > 1)
			return READ_ONCE(*(struct mptcp_subflow_context **)NULL);
	}
	if (carried > 1000000)
		return NULL;
	for (i = 0; i < n; i++)
		if (option[i].room)
			return plait_send(msk, &option[i], option[i].room);
	return NULL;
}

PLAIT_SCHEDULER(broken, broken_pick, 0);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler with two defects");
