// SPDX-License-Identifier: GPL-2.0
/* blest: blocking estimation.
 *
 * Model: bytes sent on a slow subflow s occupy the connection's send window for one of its round-trip times; the fast
 * subflow f could send X bytes in that time. When the window has no room for both, s would block f.
 *
 *   X = mss_f * (cwnd_f + (rtts - 1) / 2) * rtts,  rtts = r_s / r_f
 *   skip s, if  X * lambda > window - mss_s * (inflight_s + 1)
 *
 * lambda corrects the estimate: once per round-trip time of s it grows by BLEST_STEP when the window has blocked the
 * connection since, and falls by as much when it has not; from 1, within [BLEST_LEAST, BLEST_MOST]. The paper gives no
 * bounds; these keep a long blocked or idle spell from deciding all that comes after it.
 *
 * A subflow whose retransmission timeout nobody has answered is not waited for.
 *
 * Reference: Ferlin, Alay, Mehani, Boreli, "BLEST: blocking estimation-based MPTCP scheduler for heterogeneous
 * networks", IFIP Networking 2016, section III.
 */
#include <plait/sched.h>

#include "plait_choice.h"

/* permille */
#define BLEST_STEP	10
#define BLEST_LEAST	500
#define BLEST_MOST	2000

struct blest_state {
	u64 round_us;		/* when lambda was last corrected */
	u32 lambda;		/* permille; 0 before the first decision */
	bool blocked;		/* the window has been full since */
};

static void blest_correct(struct blest_state *blest, u32 srtt_us)
{
	u64 now_us = mptcp_stamp();

	if (!blest->lambda) {
		blest->lambda = 1000;
		blest->round_us = now_us;
	}
	if (now_us - blest->round_us < srtt_us)
		return;
	if (blest->blocked)
		blest->lambda = min(blest->lambda + BLEST_STEP, BLEST_MOST);
	else
		blest->lambda = max(blest->lambda - BLEST_STEP, BLEST_LEAST);
	blest->blocked = false;
	blest->round_us = now_us;
}

static struct mptcp_subflow_context *blest_send(struct mptcp_sock *msk, struct blest_state *blest,
						const struct plait_option *option, u32 segments)
{
	if (plait_window(msk) < (u64)segments * option->mss)
		blest->blocked = true;
	return plait_send(msk, option, segments);
}

static struct mptcp_subflow_context *blest_pick(struct mptcp_sock *msk)
{
	struct blest_state *blest = plait_connection(msk, struct blest_state);
	struct plait_option option[PLAIT_OPTIONS], *fast, *slow;
	int n = plait_options(msk, option);
	u64 window = READ_ONCE(msk->wnd_end) - READ_ONCE(msk->snd_una);

	slow = plait_fastest(option, n, true);
	fast = plait_fastest(option, n, false);
	if (!slow)
		return NULL;
	blest_correct(blest, slow->srtt_us);
	if (slow->srtt_us == fast->srtt_us || fast->timeouts)
		return blest_send(msk, blest, slow, slow->room);
	if (plait_blest_skips(window, fast->mss, fast->cwnd, fast->srtt_us, slow->mss, slow->inflight,
			      slow->srtt_us, blest->lambda))
		return NULL;
	/* One segment at a time: each takes its part of the window. */
	return blest_send(msk, blest, slow, 1);
}

PLAIT_SCHEDULER(blest, blest_pick, 0);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler: blocking estimation");
