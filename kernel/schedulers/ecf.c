// SPDX-License-Identifier: GPL-2.0
/* ecf: earliest completion first.
 *
 * Model: k segments wait. The fast subflow f (least round-trip time r) has a full window; s is the fastest that has
 * room. Waiting for f takes n * r_f, with n = 1 + k / cwnd_f rounds; sending on s takes r_s at least. When f would be
 * done sooner although s is idle, s is left idle.
 *
 *   wait, if  n * r_f < (1 + waiting * beta) * (r_s + delta)
 *         and k / cwnd_s * r_s >= 2 * r_f + delta
 *   with delta = max(sigma_f, sigma_s), beta = 1/4; waiting is 1 while the last decision was to wait (hysteresis).
 *
 * A subflow whose retransmission timeout nobody has answered is not waited for.
 *
 * Arithmetic: both sides are multiplied out; products stay below 2^60 for windows below 2^24 segments and
 * round-trip times below 2^27 us, and nothing is rounded.
 *
 * Reference: Lim, Nahum, Towsley, Gibbens, "ECF: an MPTCP path scheduler to manage heterogeneous paths", CoNEXT 2017,
 * algorithm 1.
 */
#include <plait/sched.h>

#include "plait_choice.h"

struct ecf_state {
	bool waiting;
};

static struct mptcp_subflow_context *ecf_pick(struct mptcp_sock *msk)
{
	struct ecf_state *ecf = plait_connection(msk, struct ecf_state);
	struct plait_option option[PLAIT_OPTIONS], *fast, *slow;
	int n = plait_options(msk, option);
	u64 waiting_segments;

	slow = plait_fastest(option, n, true);
	fast = plait_fastest(option, n, false);
	if (!slow)
		return NULL;
	if (slow->srtt_us == fast->srtt_us || fast->timeouts)
		return plait_send(msk, slow, slow->room);

	waiting_segments = DIV_ROUND_UP_ULL(plait_pending(msk), fast->mss);
	if (plait_ecf_waits(waiting_segments, fast->cwnd, fast->srtt_us, slow->cwnd, slow->srtt_us,
			    max(fast->rttvar_us, slow->rttvar_us), &ecf->waiting))
		return NULL;
	/* One segment at a time: k, and with it the answer, changes with each. */
	return plait_send(msk, slow, 1);
}

PLAIT_SCHEDULER(ecf, ecf_pick, 0);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler: earliest completion first");
