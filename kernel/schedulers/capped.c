// SPDX-License-Identifier: GPL-2.0
/* capped: no subflow ever carries more than a share of the bytes.
 *
 * Promise: with n live subflows, in every interval of the transfer that is at least net.mptcp_capped.window_ms long,
 * each of them carries at most 1/n + e of the bytes that all carry (for e = 0: to within 1/1000 of a window's bytes,
 * or n segments where that is more). "Carried" counts what is put on the path, retransmissions included, so that
 * somebody who watches one path sees no more than the share of it.
 *
 * Rule: each subflow has a credit, which grows with every byte that anybody carries, times the cap, and falls with
 * every byte that it carries itself; it never exceeds a burst. A subflow is sent on only while its credit lasts. So in
 * every interval, of any length, a subflow carries at most cap * (all bytes) + burst. The burst is 1/1000 of the bytes
 * of a window, at least n segments; for e > 0 the cap is lowered by as much, so that burst and cap together stay
 * within 1/n + e over a window.
 *
 * It cannot block itself: with a burst of n segments some subflow can always afford one, whatever was granted before
 * (docs/decisions/0011-schedulers.md has the argument, tests/kernel/ plays it). Retransmissions are not granted; when
 * they have left nobody with the credit for a segment, all are forgiven as much as the richest lacks. That is the one
 * way in which an interval can exceed the cap, by the bytes that were retransmitted in it.
 *
 * Behind a bottleneck: what is sent in a second does not leave the path's queue in that second. While the queue of a
 * slow path fills, the slow path passes on less than it was given, and the others' share there would exceed the cap. So
 * a second credit is kept in the same way over the bytes that have passed the queues, by estimate from the round-trip
 * time, and a subflow must be good for both. When no subflow is, the second one does not count: it is an estimate, and
 * only the first one is the promise.
 *
 * Goodput: what the cap allows of the paths' rates R is the largest T with sum of min(R_i, cap * T) = T; for two paths
 * min(R_1 + R_2, min(R) / (1 - cap)). Reached when the slow path never idles. Hence the order: of the subflows with
 * room and credit the one with the most credit, which is the one that holds the others back.
 *
 * A subflow is sent on only when its window has room, never ahead of it, so that what is counted is what is on the
 * path within the same round trip.
 *
 * Policy for one live subflow (n = 1, the cap is 1): net.mptcp_capped.hold_alone = 0 sends on it; 1 holds the data
 * until a second one lives, but for the first CAPPED_START bytes, without which no second one comes up. A subflow that
 * has left two retransmission timeouts unanswered is dead until it answers; until then the cap holds with it counted.
 *
 * Settings, one set per network namespace, read at each decision:
 *   net.mptcp_capped.e_permille   e in 1/1000 (0)
 *   net.mptcp_capped.window_ms    the interval of the promise (1000)
 *   net.mptcp_capped.hold_alone   see above (0)
 */
#include <plait/sched.h>

#include "plait_choice.h"
#include "plait_settings.h"

/* An initial window of full segments. */
#define CAPPED_START	(10 * 1460)
/* In 1/10000: the part of a window's bytes that is the burst. */
#define CAPPED_BURST	10U
/* Segments granted at once; the credits change with each. */
#define CAPPED_SEGMENTS	2U

enum { CAPPED_E, CAPPED_WINDOW, CAPPED_HOLD };

static const struct plait_setting capped_settings[] = {
	[CAPPED_E]	= { "e_permille", 0, 0, 1000 },
	[CAPPED_WINDOW]	= { "window_ms", 1000, 10, 3600 * 1000 },
	[CAPPED_HOLD]	= { "hold_alone", 0, 0, 1 },
};

PLAIT_SETTINGS(capped, capped_settings);

struct capped_state {
	u64 bytes;		/* carried by all in the current window so far */
	u64 last_bytes;		/* in the window before; 0: none yet */
	u32 window_start;	/* tcp_jiffies32 */
	u32 set;		/* the subflows that credits are kept for, 0: none yet */
};

struct capped_credit {
	s64 sent;		/* for bytes put on the path: the promise */
	s64 passed;		/* for bytes that have left its queues: an estimate */
	u64 sent_seen;		/* what these stood at when last looked at */
	u64 passed_seen;
};

/* Ends the current window when it is over, and returns the bytes by which a subflow may run ahead. */
static u32 capped_burst(struct capped_state *state, u32 window, u32 least)
{
	u32 elapsed = tcp_jiffies32 - state->window_start;
	u64 burst;

	if (elapsed >= window) {
		state->last_bytes = elapsed < 2 * window ? state->bytes : 0;
		state->bytes = 0;
		state->window_start = tcp_jiffies32;
	}
	burst = div_u64(state->last_bytes * CAPPED_BURST, 10000);
	return clamp_t(u64, burst, least, INT_MAX / 2);
}

static u32 capped_mss(const struct plait_option *option, int n)
{
	u32 mss = 1;
	int i;

	for (i = 0; i < n; i++)
		mss = max(mss, option[i].mss);
	return mss;
}

static struct capped_credit *capped_credit(const struct plait_option *option)
{
	return plait_subflow(option->subflow, struct capped_credit);
}

/* Full credit for all: subflows have come or gone, and what was before does not count. */
static void capped_restart(const struct plait_cap *cap, const struct plait_option *option, int n)
{
	struct capped_credit *own;
	int i;

	for (i = 0; i < n; i++) {
		own = capped_credit(&option[i]);
		own->sent = cap->most;
		own->passed = cap->most;
		own->sent_seen = option[i].carried;
		own->passed_seen = option[i].passed;
	}
}

/* Brings all credits up to date; returns the bytes that all subflows have carried since the last time. */
static u64 capped_account(const struct plait_cap *cap, struct plait_option *option, int n)
{
	u64 sent = 0, passed = 0, own_sent, own_passed;
	s64 highest = S64_MIN, lack;
	struct capped_credit *own;
	int i;

	for (i = 0; i < n; i++) {
		own = capped_credit(&option[i]);
		option[i].passed = max(option[i].passed, own->passed_seen);	/* the estimate wavers, bytes do not */
		sent += option[i].carried - own->sent_seen;
		passed += option[i].passed - own->passed_seen;
	}
	for (i = 0; i < n; i++) {
		own = capped_credit(&option[i]);
		own_sent = option[i].carried - own->sent_seen;
		own_passed = option[i].passed - own->passed_seen;
		own->sent = plait_cap_credit(cap, own->sent, sent, own_sent);
		own->passed = plait_cap_credit(cap, own->passed, passed, own_passed);
		own->sent_seen = option[i].carried;
		own->passed_seen = option[i].passed;
		highest = max(highest, own->sent);
	}
	lack = plait_cap_lack(cap, highest, capped_mss(option, n));
	for (i = 0; lack && i < n; i++) {
		own = capped_credit(&option[i]);
		own->sent = min(own->sent + lack, cap->most);
	}
	return sent;
}

/* Whole segments that the subflow's credit is good for; both makes it be good for the estimate as well. */
static u32 capped_grant(const struct plait_cap *cap, const struct plait_option *option, bool both)
{
	const struct capped_credit *own = capped_credit(option);

	if (both && own->passed < 0)
		return 0;
	return plait_cap_grant(cap, own->sent) / option->mss;
}

/* Of the subflows with room and credit, the one with the most credit. */
static struct mptcp_subflow_context *capped_choose(struct mptcp_sock *msk, const struct plait_cap *cap,
						   const struct plait_option *option, int n)
{
	const struct plait_option *next = NULL;
	bool both = false;
	u32 segments;
	int i;

	for (i = 0; i < n; i++)
		both |= capped_grant(cap, &option[i], true) > 0;
	for (i = 0; i < n; i++)
		if (option[i].room && capped_grant(cap, &option[i], both) &&
		    (!next || capped_credit(&option[i])->sent > capped_credit(next)->sent))
			next = &option[i];
	if (!next)
		return NULL;
	segments = min(next->room, capped_grant(cap, next, both));
	return plait_send(msk, next, min(segments, CAPPED_SEGMENTS));
}

/* One subflow: the stated policy. */
static struct mptcp_subflow_context *capped_alone(struct mptcp_sock *msk, const struct plait_option *option)
{
	if (!option->room)
		return NULL;
	if (capped_get(sock_net((struct sock *)msk), CAPPED_HOLD) && msk->bytes_sent >= CAPPED_START)
		return NULL;
	return plait_send(msk, option, option->room);
}

static struct mptcp_subflow_context *capped_pick(struct mptcp_sock *msk)
{
	struct capped_state *state = plait_connection(msk, struct capped_state);
	const struct net *net = sock_net((struct sock *)msk);
	struct plait_option option[PLAIT_OPTIONS];
	int n = plait_only_alive(option, plait_options(msk, option));
	u32 e = capped_get(net, CAPPED_E) * 10, burst, set;
	struct plait_cap cap;

	plait_grow_send_buffer(msk);
	if (n < 2) {
		state->set = 0;
		return n ? capped_alone(msk, option) : NULL;
	}
	burst = capped_burst(state, msecs_to_jiffies(capped_get(net, CAPPED_WINDOW)), n * capped_mss(option, n));
	cap = plait_cap(n, e - min(e / 2, CAPPED_BURST), burst);
	set = plait_set_id(option, n);
	if (set != state->set)
		capped_restart(&cap, option, n);
	state->set = set;
	state->bytes += capped_account(&cap, option, n);
	return capped_choose(msk, &cap, option, n);
}

PLAIT_SCHEDULER_OPS(capped, capped_pick, 0);

static int __init capped_register(void)
{
	int err = register_pernet_subsys(&capped_net_ops);

	if (err)
		return err;
	err = mptcp_register_scheduler(&capped_sched);
	if (err)
		unregister_pernet_subsys(&capped_net_ops);
	return err;
}

static void __exit capped_unregister(void)
{
	mptcp_unregister_scheduler(&capped_sched);
	synchronize_rcu();
	unregister_pernet_subsys(&capped_net_ops);
}

module_init(capped_register);
module_exit(capped_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler: a cap on every subflow's share");
