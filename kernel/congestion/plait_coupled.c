// SPDX-License-Identifier: GPL-2.0
/* The coupling that lia, olia, balia and wvegas share: see plait_coupled.h for the contract and the locking.
 *
 *   hash (net, connection, token, algorithm) --> group --> slot of subflow 0 <-> slot of subflow 1 <-> ..
 *                                                            ^ written by subflow 0 only, read by all
 *
 * Lifetime: a slot lives from init() to release() of its socket's congestion control, plus an RCU grace period; a
 * group from its first slot to its last, plus a grace period. The connection is a key here and is never
 * dereferenced: it may be gone while a subflow lingers. Its address may be reused by then, so the token (which
 * MPTCP keeps unique among living connections) is part of the key.
 *
 * A path takes part while it carries data: a snapshot omits a slot that has published nothing for PLAIT_SILENT of its
 * own retransmission timeouts (idle, or a backup). It would count with a rate that it does not send, and hold the
 * others back. A path that waits for an answer takes part: a lone lost segment is silent for up to two timeouts (a tail
 * loss probe, then the retransmission), each further timeout is twice as long as the last published one, and the others
 * must not grow as if they were alone meanwhile.
 */

#include <linux/hash.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/mptcp.h>

#include "protocol.h"
#include "plait_coupled.h"

#define PLAIT_HASH_BITS	8
#define PLAIT_SILENT	3	/* retransmission timeouts: more than two, and a round trip */

struct plait_group {
	struct hlist_node node;
	struct list_head slots;
	const struct net *net;
	const struct sock *connection;	/* a key, not a reference */
	const struct tcp_congestion_ops *ops;
	u32 token;
	u32 users;			/* slots; under plait_lock */
	struct rcu_head rcu;
};

static DEFINE_SPINLOCK(plait_lock);
static struct hlist_head plait_groups[1 << PLAIT_HASH_BITS];

static struct hlist_head *plait_bucket(u32 token)
{
	return &plait_groups[hash_32(token, PLAIT_HASH_BITS)];
}

/* Adds the slot to its connection's group, making the group if it is the first. False: no memory. */
static bool plait_group_join(struct sock *sk, struct plait_slot *slot)
{
	const struct mptcp_subflow_context *subflow = mptcp_subflow_ctx(sk);
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;
	struct hlist_head *bucket = plait_bucket(subflow->token);
	struct plait_group *group;

	spin_lock_bh(&plait_lock);
	hlist_for_each_entry(group, bucket, node)
		if (group->token == subflow->token && group->connection == subflow->conn &&
		    group->net == sock_net(sk) && group->ops == ops)
			goto found;

	group = kzalloc(sizeof(*group), GFP_ATOMIC);
	if (!group) {
		spin_unlock_bh(&plait_lock);
		return false;
	}
	INIT_LIST_HEAD(&group->slots);
	group->net = sock_net(sk);
	group->connection = subflow->conn;
	group->ops = ops;
	group->token = subflow->token;
	hlist_add_head(&group->node, bucket);
found:
	group->users++;
	slot->group = group;
	list_add_tail_rcu(&slot->node, &group->slots);
	spin_unlock_bh(&plait_lock);
	return true;
}

/* init() of every coupled congestion control; also when a program changes the algorithm of a living socket. */
void plait_coupled_init(struct sock *sk)
{
	struct plait_coupled *ca = inet_csk_ca(sk);
	struct plait_slot *slot;

	sock_owned_by_me(sk);
	ca->slot = NULL;
	slot = kzalloc(sizeof(*slot), GFP_ATOMIC);
	if (!slot)
		return;

	slot->loss_mark = tcp_sk(sk)->bytes_acked;
	if (sk_is_mptcp(sk) && mptcp_subflow_ctx(sk) && mptcp_subflow_ctx(sk)->conn &&
	    !plait_group_join(sk, slot)) {
		kfree(slot);
		return;
	}
	ca->slot = slot;
}
EXPORT_SYMBOL_GPL(plait_coupled_init);

void plait_coupled_release(struct sock *sk)
{
	struct plait_coupled *ca = inet_csk_ca(sk);
	struct plait_slot *slot = ca->slot;
	struct plait_group *group;

	if (!slot)
		return;
	ca->slot = NULL;
	group = slot->group;
	if (group) {
		spin_lock_bh(&plait_lock);
		list_del_rcu(&slot->node);
		if (!--group->users) {
			hlist_del(&group->node);
			kfree_rcu(group, rcu);
		}
		spin_unlock_bh(&plait_lock);
	}
	kfree_rcu(slot, rcu);
}
EXPORT_SYMBOL_GPL(plait_coupled_release);

/* The window that stands for the path: RFC 6356 section 3 takes ssthresh while fast recovery distorts cwnd. */
static u32 plait_effective_cwnd(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_in_cwnd_reduction(sk))
		return max(tp->snd_ssthresh, 1U);
	return max(tcp_snd_cwnd(tp), 1U);
}

/* Tells the siblings about this path. Called on every ACK; cheap, no lock. */
void plait_coupled_publish(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct plait_slot *slot = plait_slot(sk);

	sock_owned_by_me(sk);
	if (!slot)
		return;
	WRITE_ONCE(slot->cwnd, plait_effective_cwnd(sk));
	WRITE_ONCE(slot->mss, max(tp->mss_cache, 1U));
	WRITE_ONCE(slot->srtt_us, tp->srtt_us >> 3);
	WRITE_ONCE(slot->rto_us, jiffies_to_usecs(inet_csk(sk)->icsk_rto));
	WRITE_ONCE(slot->interloss, max(slot->last_interval, tp->bytes_acked - slot->loss_mark));
	WRITE_ONCE(slot->seen_us, tp->tcp_mstamp);
}
EXPORT_SYMBOL_GPL(plait_coupled_publish);

static bool plait_slot_read(const struct plait_slot *slot, struct plait_path *path)
{
	path->cwnd = READ_ONCE(slot->cwnd);
	path->mss = READ_ONCE(slot->mss);
	path->srtt_us = READ_ONCE(slot->srtt_us);
	path->interloss = READ_ONCE(slot->interloss);
	return path->cwnd && path->mss && path->srtt_us;
}

/* Fills paths with this path (index 0) and its carrying siblings; returns how many, 0 when this path itself is not
 * known yet. Siblings move on while they are read; each value is one that was true within the last ACKs.
 */
int plait_coupled_snapshot(struct sock *sk, struct plait_path paths[PLAIT_PATHS])
{
	const struct plait_slot *own = plait_slot(sk), *slot;
	u64 now = tcp_sk(sk)->tcp_mstamp;
	int n = 1;

	plait_coupled_publish(sk);
	if (!own || !plait_slot_read(own, &paths[0]))
		return 0;
	if (!own->group)
		return 1;

	rcu_read_lock();
	list_for_each_entry_rcu(slot, &own->group->slots, node) {
		s64 silent = now - READ_ONCE(slot->seen_us);

		if (slot == own || silent > PLAIT_SILENT * (s64)READ_ONCE(slot->rto_us))
			continue;
		if (plait_slot_read(slot, &paths[n]) && ++n == PLAIT_PATHS)
			break;
	}
	rcu_read_unlock();
	return n;
}
EXPORT_SYMBOL_GPL(plait_coupled_snapshot);

/* Adds increase (Q32 segments per acknowledged segment) for each of acked segments to cwnd; whole segments move
 * the window, the rest waits in the slot. The window never falls below one segment.
 */
void plait_coupled_grow(struct sock *sk, s64 increase, u32 acked)
{
	struct plait_slot *slot = plait_slot(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	s64 cwnd = tcp_snd_cwnd(tp), whole;

	sock_owned_by_me(sk);
	slot->credit += increase * acked;
	whole = abs(slot->credit) >> 32;
	if (slot->credit < 0)
		whole = -whole;
	slot->credit -= whole * (1LL << 32);
	tcp_snd_cwnd_set(tp, clamp_t(s64, cwnd + whole, 1, tp->snd_cwnd_clamp));
}
EXPORT_SYMBOL_GPL(plait_coupled_grow);

void plait_coupled_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	plait_coupled_publish(sk);
}
EXPORT_SYMBOL_GPL(plait_coupled_pkts_acked);

/* Fractions of a segment outlive a loss. Reno forgets them, half a segment for each loss; but coupled windows grow by a
 * quarter of a segment in a round trip or less, and would lose several round trips of growth each time.
 */
void plait_coupled_set_state(struct sock *sk, u8 state)
{
	plait_coupled_publish(sk);
}
EXPORT_SYMBOL_GPL(plait_coupled_set_state);

/* Slow start, and when there is any room to grow at all: the segments left for congestion avoidance, else 0. */
u32 plait_coupled_slow_start(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	plait_coupled_publish(sk);
	if (!tcp_is_cwnd_limited(sk))
		return 0;
	return tcp_in_slow_start(tp) ? tcp_slow_start(tp, acked) : acked;
}
EXPORT_SYMBOL_GPL(plait_coupled_slow_start);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Coupling of the subflows of an MPTCP connection for congestion control");
