// SPDX-License-Identifier: GPL-2.0
/* minrtt: the classic lowest-RTT-first scheduler of Multipath TCP.
 *
 * Rule: of all subflows whose congestion window has room, the one of the least smoothed round-trip time, until its
 * window is full; then the next. Nothing is queued in a subflow ahead of its window, so data wait in the connection,
 * where they can still go either way. (The kernel's default weighs the bytes queued in a subflow against its pacing
 * rate, and queues in subflows.)
 *
 * Reference: Paasch, Ferlin, Alay, Bonaventure, "Experimental evaluation of Multipath TCP schedulers", CSWS 2014.
 */
#include <plait/sched.h>

static struct mptcp_subflow_context *minrtt_pick(struct mptcp_sock *msk)
{
	struct plait_option option[PLAIT_OPTIONS];
	int n = plait_options(msk, option);
	struct plait_option *fastest = plait_fastest(option, n, true);

	return fastest ? plait_send(msk, fastest, fastest->room) : NULL;
}

PLAIT_SCHEDULER(minrtt, minrtt_pick, 0);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler: lowest round-trip time first");
