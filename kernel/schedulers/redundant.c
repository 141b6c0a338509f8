// SPDX-License-Identifier: GPL-2.0
/* redundant: the whole stream on every subflow.
 *
 * Rule: each subflow with room in its congestion window sends the stream from its own position; what the peer has
 * acknowledged meanwhile, whichever subflow it came by, is skipped. The goodput is that of the best path, and the
 * delay of each byte that of the path on which it arrives first. The receiver drops the copies (MPTcpExtDupData).
 *
 * The core keeps each subflow's position and sends the copies (MPTCP_SCHED_COPIES, one of the patches beside this
 * file): marking several subflows alone would give each of them different bytes.
 *
 * Reference: Frommgen, Erbshaeusser, Buchmann, Zimmermann, Wehrle, "ReMP TCP: low latency Multipath TCP", ICC 2016.
 */
#include <plait/sched.h>

static struct mptcp_subflow_context *redundant_pick(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *one = NULL;
	struct plait_option option[PLAIT_OPTIONS];
	int i, n = plait_options(msk, option);
	u32 burst = INT_MAX / 2;

	for (i = 0; i < n; i++) {
		if (!option[i].room || !mptcp_subflow_copy_len(msk, option[i].subflow))
			continue;
		one = option[i].subflow;
		burst = min_t(u64, burst, (u64)option[i].room * option[i].mss);
		mptcp_subflow_set_scheduled(one, true);
	}
	if (one)
		msk->snd_burst = burst;
	return one;
}

PLAIT_SCHEDULER(redundant, redundant_pick, MPTCP_SCHED_COPIES);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler: the whole stream on every subflow");
