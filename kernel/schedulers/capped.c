// SPDX-License-Identifier: GPL-2.0
/* capped: no subflow ever carries more than a share of the bytes.
 *
 * Promise: with n live subflows, in every interval of the transfer that is at least net.mptcp_capped.window_ms long,
 * each of them carries at most 1/n + e of the bytes that all carry (for e = 0: to within 1/250 of a window's bytes,
 * or n segments where that is more). "Carried" counts what is put on the path, retransmissions included, so that
 * somebody who watches one path sees no more than the share of it.
 *
 * Rule: each subflow has a credit, which grows with every byte that anybody carries, times the cap, and falls with
 * every byte that it carries itself; it never exceeds a burst. A subflow is sent on only while its credit lasts. So in
 * every interval, of any length, a subflow carries at most cap * (all bytes) + burst. The burst is 1/250 of the bytes
 * of a window, at least n segments; for e > 0 the cap is lowered by as much, so that burst and cap together stay
 * within 1/n + e over a window.
 *
 * It cannot block itself: with a burst of n segments some subflow can always afford one, whatever was granted before
 * (docs/decisions/0011-schedulers.md has the argument, tests/kernel/ plays it). Retransmissions are not granted; when
 * they have left nobody with the credit for a segment, all are forgiven as much as the richest lacks. That is the one
 * way in which an interval can exceed the cap, by the bytes that were retransmitted in it.
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
#define CAPPED_BURST	40U

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
	s64 credit;
	u64 seen;		/* bytes carried when last looked at */
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

/* Brings all credits up to date; anew when subflows have come or gone. */
static void capped_account(struct capped_state *state, const struct plait_cap *cap,
			   const struct plait_option *option, int n)
{
	u32 set = plait_set_id(option, n);
	s64 highest = 0, lack;
	struct capped_credit *own;
	u64 all = 0;
	int i;

	for (i = 0; i < n; i++) {
		own = plait_subflow(option[i].subflow, struct capped_credit);
		if (set != state->set) {
			own->credit = cap->most;
			own->seen = option[i].carried;
		}
		all += option[i].carried - own->seen;
	}
	for (i = 0; i < n; i++) {
		own = plait_subflow(option[i].subflow, struct capped_credit);
		own->credit = plait_cap_credit(cap, own->credit, all, option[i].carried - own->seen);
		own->seen = option[i].carried;
		highest = i ? max(highest, own->credit) : own->credit;
	}
	lack = plait_cap_lack(cap, highest, capped_mss(option, n));
	for (i = 0; lack && i < n; i++) {
		own = plait_subflow(option[i].subflow, struct capped_credit);
		own->credit = min(own->credit + lack, cap->most);
	}
	state->bytes += all;
	state->set = set;
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
	struct plait_option option[PLAIT_OPTIONS], *next = NULL;
	int i, n = plait_only_alive(option, plait_options(msk, option));
	u32 e = capped_get(net, CAPPED_E) * 10, burst, segments, granted = 0;
	s64 credit, most = 0;
	struct plait_cap cap;

	if (!n)
		return NULL;
	if (n == 1) {
		state->set = 0;
		return capped_alone(msk, option);
	}
	burst = capped_burst(state, msecs_to_jiffies(capped_get(net, CAPPED_WINDOW)), n * capped_mss(option, n));
	cap = plait_cap(n, e - min(e / 2, CAPPED_BURST), burst);
	capped_account(state, &cap, option, n);

	for (i = 0; i < n; i++) {
		credit = plait_subflow(option[i].subflow, struct capped_credit)->credit;
		segments = min(option[i].room, plait_cap_grant(&cap, credit) / option[i].mss);
		if (segments && (!next || credit > most)) {
			next = &option[i];
			most = credit;
			granted = segments;
		}
	}
	return next ? plait_send(msk, next, min(granted, 2U)) : NULL;
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
