// SPDX-License-Identifier: GPL-2.0
/* farthest: of the subflows with room, the one of the greatest round-trip time. It fills both paths in a long flow, and
 * is late with everything short.
 */
#include <plait/sched.h>

static struct mptcp_subflow_context *farthest_pick(struct mptcp_sock *msk)
{
	struct plait_option option[PLAIT_OPTIONS];
	struct plait_option *slowest = NULL;
	int i, n = plait_options(msk, option);

	for (i = 0; i < n; i++)
		if (option[i].room && (!slowest || option[i].srtt_us > slowest->srtt_us))
			slowest = &option[i];
	return slowest ? plait_send(msk, slowest, slowest->room) : NULL;
}

PLAIT_SCHEDULER(farthest, farthest_pick, 0);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler: highest round-trip time first");
