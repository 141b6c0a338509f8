/* SPDX-License-Identifier: GPL-2.0 */
/* Writing an MPTCP packet scheduler: a function that picks a subflow, and one line that makes it a scheduler.
 *
 *	#include <plait/sched.h>
 *
 *	static struct mptcp_subflow_context *mine_pick(struct mptcp_sock *msk)
 *	{
 *		struct plait_option option[PLAIT_OPTIONS];
 *		int i, n = plait_options(msk, option);
 *
 *		for (i = 0; i < n; i++)
 *			if (option[i].room)
 *				return plait_send(msk, &option[i], option[i].room);
 *		return NULL;
 *	}
 *	PLAIT_SCHEDULER(mine, mine_pick, 0);
 *	MODULE_LICENSE("GPL");
 *
 * When it is called: whenever there is data to send and something has changed (the program wrote, an ACK came in,
 * the retransmission timer fired), again and again until it returns NULL. It runs under the connection's lock and not
 * under those of the subflows: what it reads of them may be one ACK old. It may neither sleep nor wait. NULL means
 * "not now"; the next ACK asks again, and the connection's timer does so every 200 ms at the latest, so that waiting
 * for a subflow that died ends by itself.
 *
 * What is done for it: backup subflows are offered only when no other is usable; stale and closing ones never;
 * a subflow has room only while its congestion window and its send buffer have; reinjection follows the kernel's own
 * rule (an idle subflow, after the connection's timeout); decisions hold for what was granted, in whole segments.
 *
 * State: plait_connection(msk, type) and plait_subflow(subflow, type) give 64 and 32 bytes, zero at first.
 */
#ifndef PLAIT_SCHED_H
#define PLAIT_SCHED_H

#include <linux/module.h>
#include <net/tcp.h>

#include <plait/compat.h>

/* MPTCP has at most 8 subflows beside the initial one; closing ones may linger. */
#define PLAIT_OPTIONS	16

/* Segments that a subflow may hold beyond its window. With none, TCP finds nothing left to send when its window is
 * full, takes the program for the limit, and does not let the window grow.
 */
#define PLAIT_AHEAD	1

/* A subflow that may be sent on, as it is now. */
struct plait_option {
	struct mptcp_subflow_context *subflow;
	struct sock *ssk;
	u32 id;		/* of the subflow, constant, unique in its connection */
	u32 room;	/* segments that its window (and PLAIT_AHEAD) and its buffer admit now; 0: do not send on it */
	u32 cwnd;	/* segments */
	u32 inflight;	/* segments in flight, waiting for retransmission, or held back though full */
	u32 mss;	/* bytes of payload in a full segment */
	u32 srtt_us;	/* U32_MAX while unknown */
	u32 rttvar_us;
	u32 timeouts;	/* retransmission timeouts in a row that nothing has answered */
	u32 assigned;	/* bytes of the stream given to it since it exists; wraps */
	u64 carried;	/* bytes that it has sent or holds, retransmissions included */
	u64 passed;	/* of these, the bytes that have left the path's queues, by estimate */
};

#define plait_connection(msk, type) ({						\
	BUILD_BUG_ON(sizeof(type) > sizeof((msk)->sched_priv));			\
	(type *)(msk)->sched_priv; })
#define plait_subflow(subflow, type) ({						\
	BUILD_BUG_ON(sizeof(type) > sizeof((subflow)->sched_priv));		\
	(type *)(subflow)->sched_priv; })

static inline bool plait_is_backup(const struct mptcp_subflow_context *subflow)
{
	return subflow->backup || subflow->request_bkup;
}

/* Bytes that wait in the path's queues: of a window that takes r to come back, and would take the least r ever seen
 * without queues, the rest is queued (the reasoning of TCP Vegas).
 */
static inline u64 plait_queued(const struct tcp_sock *tp, const struct plait_option *option)
{
	u32 rtt_us = READ_ONCE(tp->rack.rtt_us), least_us = tcp_min_rtt(tp);

	if (rtt_us <= least_us)
		return 0;
	return div_u64((u64)option->inflight * option->mss * (rtt_us - least_us), rtt_us);
}

/* Fills in what the subflow's TCP knows; its lock is not held, so each value is read once. */
static inline void plait_read_option(struct plait_option *option, struct mptcp_subflow_context *subflow)
{
	struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
	const struct tcp_sock *tp = tcp_sk(ssk);
	u32 mss = subflow->sched_mss ? : max(READ_ONCE(tp->mss_cache), 1U);
	u32 unsent = READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_nxt);
	u32 lost = READ_ONCE(tp->lost_out), resent = READ_ONCE(tp->retrans_out);
	u32 srtt_us = READ_ONCE(tp->srtt_us) >> 3;

	option->subflow = subflow;
	option->ssk = ssk;
	option->id = subflow->subflow_id;
	option->mss = mss;
	option->cwnd = max(READ_ONCE(tp->snd_cwnd), 1U);
	/* A last segment that is not full waits for more data (Nagle) and takes no room. */
	option->inflight = tcp_packets_in_flight(tp) + (lost > resent ? lost - resent : 0) + unsent / mss;
	option->room = 0;
	if (option->cwnd + PLAIT_AHEAD > option->inflight && sk_stream_memory_free(ssk))
		option->room = option->cwnd + PLAIT_AHEAD - option->inflight;
	option->srtt_us = srtt_us ? : U32_MAX;
	option->rttvar_us = READ_ONCE(tp->mdev_us) >> 2;
	option->timeouts = READ_ONCE(inet_csk(ssk)->icsk_retransmits);
	option->assigned = subflow->rel_write_seq;
	option->carried = READ_ONCE(tp->bytes_sent) + unsent;
	option->passed = option->carried - min(option->carried, plait_queued(tp, option));
}

/* Fills option with the subflows that may be used, in the order in which they joined; returns how many. */
static inline int plait_options(struct mptcp_sock *msk, struct plait_option option[PLAIT_OPTIONS])
{
	struct mptcp_subflow_context *subflow;
	bool backup = true;
	int n = 0;

	msk_owned_by_me(msk);
	mptcp_for_each_subflow(msk, subflow)
		if (mptcp_subflow_active(subflow) && !plait_is_backup(subflow))
			backup = false;
	mptcp_for_each_subflow(msk, subflow)
		if (mptcp_subflow_active(subflow) && plait_is_backup(subflow) == backup && n < PLAIT_OPTIONS)
			plait_read_option(&option[n++], subflow);
	return n;
}

/* Leaves only the subflows that are alive: one that has not answered two retransmission timeouts in a row is dead
 * until it answers again, long before the kernel declares it stale. With none alive all are left, so that something
 * is tried. For schedulers that make a subflow wait for others.
 */
static inline int plait_only_alive(struct plait_option *option, int n)
{
	int i, alive = 0;

	for (i = 0; i < n; i++)
		if (option[i].timeouts < 2)
			option[alive++] = option[i];
	return alive ? : n;
}

/* A number that changes when subflows come or go, never 0. */
static inline u32 plait_set_id(const struct plait_option *option, int n)
{
	u32 id = 1;
	int i;

	for (i = 0; i < n; i++)
		id = id * 31 + option[i].id + 1;
	return id ? : 1;
}

/* Bytes that the peer's window still admits. */
static inline u64 plait_window(const struct mptcp_sock *msk)
{
	u64 end = READ_ONCE(msk->wnd_end);

	return after64(end, msk->snd_nxt) ? end - msk->snd_nxt : 0;
}

/* Bytes that the program has written and no subflow has been given. */
static inline u64 plait_pending(const struct mptcp_sock *msk)
{
	return msk->write_seq - msk->snd_nxt - READ_ONCE(msk->snd_data_fin_enable);
}

/* The decision: so many segments on this subflow, at least one (with the peer's window closed, that one is a probe). */
static inline struct mptcp_subflow_context *
plait_send(struct mptcp_sock *msk, const struct plait_option *option, u32 segments)
{
	u64 bytes = min_t(u64, (u64)segments * option->mss, plait_window(msk));

	msk->snd_burst = clamp_t(u64, bytes, option->mss, INT_MAX / 2);
	return option->subflow;
}

/* The option of the least round-trip time; with room only, or among all. NULL: none. */
static inline struct plait_option *plait_fastest(struct plait_option *option, int n, bool with_room)
{
	struct plait_option *best = NULL;
	int i;

	for (i = 0; i < n; i++)
		if ((option[i].room || !with_room) && (!best || option[i].srtt_us < best->srtt_us))
			best = &option[i];
	return best;
}

/* Lets the send buffer hold twice what is in flight, as TCP does for itself (RFC 5681, section 3.2: as much again while
 * a loss is repaired). The kernel sums the buffers of the subflows, which follow their windows; but the window of a
 * subflow that is made to wait stays small, and the buffer of the connection with it. For schedulers that make subflows
 * wait: where a small window says that a path is congested, more data in flight is only sent again on another path.
 */
static inline void plait_grow_send_buffer(struct mptcp_sock *msk)
{
	struct sock *sk = (struct sock *)msk;
	u64 most = (u64)READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[2]) * (msk->pm.subflows + 1);
	u64 wanted = min3(2 * (msk->snd_nxt - READ_ONCE(msk->snd_una)), most, (u64)INT_MAX);

	if (!(sk->sk_userlocks & SOCK_SNDBUF_LOCK) && wanted > READ_ONCE(sk->sk_sndbuf))
		WRITE_ONCE(sk->sk_sndbuf, (int)wanted);
}

static inline int plait_sched_send(struct mptcp_sock *msk,
				   struct mptcp_subflow_context *(*pick)(struct mptcp_sock *msk))
{
	struct mptcp_subflow_context *subflow;

	mptcp_set_timeout((struct sock *)msk);
	subflow = pick(msk);
	if (!subflow)
		return -EAGAIN;
	mptcp_subflow_set_scheduled(subflow, true);
	return 0;
}

static inline int plait_sched_reinject(struct mptcp_sock *msk)
{
	struct sock *ssk = mptcp_subflow_get_retrans(msk);

	if (!ssk)
		return -EINVAL;
	mptcp_subflow_set_scheduled(mptcp_subflow_ctx(ssk), true);
	return 0;
}

/* Defines id_sched, the operations of a scheduler named id (at most 15 characters); more is MPTCP_SCHED_COPIES or 0. */
#define PLAIT_SCHEDULER_OPS(id, pick, more)						\
PLAIT_SCHED_CALLBACKS(id, plait_sched_send(msk, pick), plait_sched_reinject(msk))	\
static struct mptcp_sched_ops id##_sched = {						\
	PLAIT_SCHED_FIELDS(id),								\
	.name	= #id,									\
	.flags	= MPTCP_SCHED_BOUNDED | (more),						\
	.owner	= THIS_MODULE,								\
}

/* The same, and registers it when the kernel starts or the module is loaded. */
#define PLAIT_SCHEDULER(id, pick, more)							\
PLAIT_SCHEDULER_OPS(id, pick, more);							\
static int __init id##_register(void)							\
{											\
	return mptcp_register_scheduler(&id##_sched);					\
}											\
static void __exit id##_unregister(void)						\
{											\
	mptcp_unregister_scheduler(&id##_sched);					\
	synchronize_rcu();								\
}											\
module_init(id##_register);								\
module_exit(id##_unregister)

#endif
