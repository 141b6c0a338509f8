/* SPDX-License-Identifier: GPL-2.0 */
/* Which TCP sockets are subflows of one connection, and what each of them last said about its path.
 *
 * A congestion control asks for a slot in its init(), publishes its window and round-trip time as ACKs arrive, and
 * takes snapshots of all slots of its connection. It needs to know neither MPTCP's structures nor its locks. A plain
 * TCP socket, and one for which no memory was found, is a connection of one path.
 *
 * Locking: init, release and every hook of a congestion control run with the subflow's own socket lock and no other
 * that could be taken here. The connection's lock and its list of subflows are out of reach (a subflow is locked
 * *after* its connection), hence this registry: groups in a hash, slots in an RCU list per group, both changed under
 * one spinlock that nests inside every socket lock and takes no other. Readers hold only rcu_read_lock; the owner of
 * a slot is its only writer.
 */
#ifndef PLAIT_COUPLED_H
#define PLAIT_COUPLED_H

#include <linux/rculist.h>
#include <net/tcp.h>

#include "plait_rules.h"

struct plait_group;

struct plait_slot {
	struct list_head node;		/* in plait_group.slots, RCU */
	struct plait_group *group;	/* NULL: a path on its own; constant */

	/* Published: written by the owner with WRITE_ONCE, read by siblings with READ_ONCE. */
	u32 cwnd;			/* segments; ssthresh during fast recovery */
	u32 mss;			/* bytes */
	u32 srtt_us;			/* 0 until the first sample */
	u32 rto_us;
	u64 seen_us;			/* tcp_mstamp of the last publication */
	u64 interloss;			/* bytes between losses (OLIA) */

	/* The owner's own, under its socket lock. */
	s64 credit;			/* increase not yet a whole segment, Q32, within (-1, 1) */
	u64 loss_mark;			/* tp->bytes_acked at the last loss */
	u64 last_interval;		/* bytes between the last two losses */

	struct rcu_head rcu;
};

/* What icsk_ca_priv holds of a coupled congestion control, first. */
struct plait_coupled {
	struct plait_slot *slot;	/* NULL: no memory; behaves as one path */
};

static inline struct plait_slot *plait_slot(const struct sock *sk)
{
	return ((const struct plait_coupled *)inet_csk_ca(sk))->slot;
}

void plait_coupled_init(struct sock *sk);
void plait_coupled_release(struct sock *sk);
void plait_coupled_publish(struct sock *sk);
int plait_coupled_snapshot(struct sock *sk, struct plait_path paths[PLAIT_PATHS]);
void plait_coupled_grow(struct sock *sk, s64 increase, u32 acked);

/* hooks that all coupled congestion controls share */
void plait_coupled_pkts_acked(struct sock *sk, const struct ack_sample *sample);
void plait_coupled_set_state(struct sock *sk, u8 state);
u32 plait_coupled_slow_start(struct sock *sk, u32 acked);

#endif
