// SPDX-License-Identifier: GPL-2.0
/* roundrobin: every subflow in turn, an equal number of bytes in each turn.
 *
 * Rule: the turn goes round the subflows in the order in which they joined. In its turn a subflow is given
 * ROUNDROBIN_QUANTUM bytes, less what it was given too much the last time (segments are indivisible). One whose
 * congestion window is full is passed over, and what it missed is not made up for: a saturated connection fills all
 * its windows, so that the shares follow the paths' rates. (balanced waits for the slower ones instead.)
 *
 * Reference: Paasch, Ferlin, Alay, Bonaventure, "Experimental evaluation of Multipath TCP schedulers", CSWS 2014.
 */
#include <plait/sched.h>

/* About two full Ethernet segments: as few as a receiver acknowledges at once. */
#define ROUNDROBIN_QUANTUM	2800

struct roundrobin_turn {
	u32 id;		/* subflow whose turn it is */
	u32 end;	/* its turn lasts until it has been assigned so many bytes (wraps) */
};

struct roundrobin_excess {
	u32 bytes;	/* beyond the quantum in the last turn */
};

static struct mptcp_subflow_context *roundrobin_pick(struct mptcp_sock *msk)
{
	struct roundrobin_turn *turn = plait_connection(msk, struct roundrobin_turn);
	struct plait_option option[PLAIT_OPTIONS], *next;
	int i, n = plait_options(msk, option), now = -1;
	struct roundrobin_excess *excess;
	s32 left;

	for (i = 0; i < n; i++)
		if (option[i].id == turn->id)
			now = i;
	if (now >= 0) {
		left = turn->end - option[now].assigned;
		if (left > 0 && option[now].room)
			return plait_send(msk, &option[now],
					  min_t(u32, option[now].room, DIV_ROUND_UP(left, option[now].mss)));
		excess = plait_subflow(option[now].subflow, struct roundrobin_excess);
		excess->bytes = left < 0 ? min(-left, ROUNDROBIN_QUANTUM - 1) : 0;
	}
	for (i = 1; i <= n; i++) {
		next = &option[(now + i) % n];
		if (!next->room)
			continue;
		excess = plait_subflow(next->subflow, struct roundrobin_excess);
		turn->id = next->id;
		turn->end = next->assigned + ROUNDROBIN_QUANTUM - excess->bytes;
		left = ROUNDROBIN_QUANTUM - excess->bytes;
		excess->bytes = 0;
		return plait_send(msk, next, min_t(u32, next->room, DIV_ROUND_UP(left, next->mss)));
	}
	return NULL;
}

PLAIT_SCHEDULER(roundrobin, roundrobin_pick, 0);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler: subflows in turn, by bytes");
