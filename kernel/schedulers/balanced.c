// SPDX-License-Identifier: GPL-2.0
/* balanced: equal bytes on every live subflow.
 *
 * Rule: the subflow that has been given the fewest bytes is next; one with a full window is waited for. The rate is
 * therefore N times that of the slowest path, by design. A subflow may be ahead of the last one by BALANCED_LEAD plus
 * 1/128 of what that one has had, so that a short pause of one path (a loss, a late ACK) does not stop the others.
 *
 * Counting starts anew when subflows come, go, die (two retransmission timeouts unanswered) or come back: what happened
 * before is not made up for. With one subflow alive there is nothing to balance, and it is used alone.
 */
#include <plait/sched.h>

#define BALANCED_LEAD	(64 * 1024)

struct balanced_state {
	u32 set;	/* which subflows are being balanced, 0: none yet */
};

struct balanced_count {
	u64 bytes;	/* given since counting started */
	u32 seen;	/* its assigned bytes when last looked at */
};

static u64 *balanced_count(const struct plait_option *option, bool restart)
{
	struct balanced_count *count = plait_subflow(option->subflow, struct balanced_count);

	count->bytes = restart ? 0 : count->bytes + (option->assigned - count->seen);
	count->seen = option->assigned;
	return &count->bytes;
}

static struct mptcp_subflow_context *balanced_pick(struct mptcp_sock *msk)
{
	struct balanced_state *state = plait_connection(msk, struct balanced_state);
	struct plait_option option[PLAIT_OPTIONS], *next = NULL;
	int i, n = plait_only_alive(option, plait_options(msk, option));
	u32 set = plait_set_id(option, n);
	u64 least = U64_MAX, fewest = U64_MAX, limit, bytes;

	for (i = 0; i < n; i++) {
		bytes = *balanced_count(&option[i], set != state->set);
		least = min(least, bytes);
		if (option[i].room && bytes < fewest) {
			fewest = bytes;
			next = &option[i];
		}
	}
	state->set = set;
	if (!next)
		return NULL;
	limit = least + BALANCED_LEAD + least / 128;
	if (n > 1 && fewest >= limit)
		return NULL;
	return plait_send(msk, next, n > 1 ? 1 : next->room);
}

PLAIT_SCHEDULER(balanced, balanced_pick, 0);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler: equal bytes on every subflow");
