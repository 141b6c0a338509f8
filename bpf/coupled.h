/* SPDX-License-Identifier: GPL-2.0 */
/* The interface of kernel/congestion/plait_coupled.h for BPF programs, which compile the modules' own sources.
 *
 *   map (connection, token, index) --> slot: written by one subflow only, read by its siblings
 *
 * A subflow takes the first free index below PLAIT_PATHS in init(), and deletes its slot in release(). Only the owner,
 * whose name is in the slot, changes or deletes it, under its socket lock, so nothing needs another lock. A reader may
 * meet a slot that its owner deletes meanwhile: it then sees values of that path, or of the path that reuses the
 * memory, for one ACK.
 *
 * Each slot has a bit for each index that has been in use beside it, so that an ACK looks up no other. A new subflow
 * adds its slot, then sets its bit in each slot that it finds, and theirs in its own. Of two that come at once, the later
 * one finds the earlier. Bits stay: one without a slot, or of memory that another path reuses, costs a look-up.
 *
 * The map is bounded, and a full map drops the slot that nobody has used for the longest time: not every kernel ends
 * each socket with release(). A subflow whose slot was dropped takes a new one at its next ACK; its index may be another
 * subflow's by then. A subflow without an index is a path on its own, as a plain TCP socket is. The connection's address
 * is a key and nothing else; its token keeps connections apart that have one address in turn.
 *
 * A silent path counts in jiffies, not in microseconds: a program cannot ask for the length of a jiffy.
 */
#ifndef PLAIT_BPF_COUPLED_H
#define PLAIT_BPF_COUPLED_H
#define PLAIT_COUPLED_H		/* instead of the modules' */

#include "kernel.h"
#include "num.h"
#include "plait_rules.h"

#undef PLAIT_PATHS
#define PLAIT_PATHS	9	/* MPTCP has at most 8 beside the first; more do not fit on the stack of a program */
#ifndef PLAIT_SLOTS
#define PLAIT_SLOTS	131072	/* subflows on this machine */
#endif
#define PLAIT_SILENT	3	/* retransmission timeouts, as in the module */
#define PLAIT_MOST_RTO	120000	/* jiffies: TCP_RTO_MAX at 1000 a second; a wrong entry without owner counts no longer */
#define PLAIT_ALONE	U32_MAX

struct plait_place {
	u64 connection;
	u32 token;
	u32 index;
};

struct plait_slot {
	/* published */
	u32 cwnd;		/* segments; ssthresh during fast recovery */
	u32 mss;		/* bytes */
	u32 srtt_us;		/* 0 until the first sample */
	u32 rto_jiffies;
	u64 seen_jiffies;	/* the last publication */
	u64 interloss;		/* bytes between losses (OLIA) */
	u32 siblings;		/* bits of the indices that may have a slot */
	u32 owner;		/* the subflow's name */

	/* the owner's own */
	s64 credit;		/* increase not yet a whole segment, Q32, within (-1, 1) */
	u64 loss_mark;		/* bytes_acked at the last loss */
	u64 last_interval;	/* bytes between the last two losses */
};

/* What icsk_ca_priv holds of a coupled congestion control, first. */
struct plait_coupled {
	struct plait_place place;	/* index PLAIT_ALONE: no slot */
	u32 name;			/* drawn: tells apart subflows that had one index in turn */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PLAIT_SLOTS);
	__type(key, struct plait_place);
	__type(value, struct plait_slot);
} plait_slots SEC(".maps");

static inline struct plait_slot *plait_slot(const struct sock *sk)
{
	const struct plait_coupled *ca = inet_csk_ca(sk);
	struct plait_place place = { ca->place.connection, ca->place.token, ca->place.index };
	struct plait_slot *slot = place.index == PLAIT_ALONE ? NULL : bpf_map_lookup_elem(&plait_slots, &place);

	return slot && slot->owner == ca->name ? slot : NULL;
}

/* Tells the new path in place and its siblings about each other. */
static inline void plait_meet(struct plait_place *place)
{
	struct plait_slot *own = bpf_map_lookup_elem(&plait_slots, place), *sibling;
	u32 i, index = place->index;

	for (i = 0; own && i < PLAIT_PATHS; i++) {
		place->index = i;
		sibling = bpf_map_lookup_elem(&plait_slots, place);
		if (!sibling)
			continue;
		__sync_fetch_and_or(&sibling->siblings, 1U << index);
		__sync_fetch_and_or(&own->siblings, 1U << i);
	}
}

/* Takes the first free index of the connection in ca, with a new slot; none is free: PLAIT_ALONE. */
static inline void plait_enter(struct sock *sk)
{
	struct plait_coupled *ca = inet_csk_ca(sk);
	struct plait_slot slot = { .loss_mark = tcp_sk(sk)->bytes_acked, .owner = ca->name };
	struct plait_place place = { ca->place.connection, ca->place.token, 0 };
	u32 i;

	ca->place.index = PLAIT_ALONE;
	for (i = 0; i < PLAIT_PATHS; i++) {
		place.index = i;
		if (!bpf_map_update_elem(&plait_slots, &place, &slot, BPF_NOEXIST)) {
			ca->place.index = i;
			plait_meet(&place);
			return;
		}
	}
}

static inline void plait_coupled_init(struct sock *sk)
{
	struct plait_coupled *ca = inet_csk_ca(sk);

	ca->place.index = PLAIT_ALONE;
	ca->name = bpf_get_prandom_u32();
	if (tcp_sk(sk)->is_mptcp) {
		const struct mptcp_subflow_context *subflow = inet_csk(sk)->icsk_ulp_data;

		ca->place.connection = (u64)BPF_CORE_READ(subflow, conn);
		ca->place.token = BPF_CORE_READ(subflow, token);
		if (ca->place.connection)
			plait_enter(sk);
	}
}

static inline void plait_coupled_release(struct sock *sk)
{
	struct plait_coupled *ca = inet_csk_ca(sk);
	struct plait_place place = { ca->place.connection, ca->place.token, ca->place.index };

	if (plait_slot(sk))
		bpf_map_delete_elem(&plait_slots, &place);
	ca->place.index = PLAIT_ALONE;
}

/* The window that stands for the path: RFC 6356 section 3 takes ssthresh while fast recovery distorts cwnd. */
static inline u32 plait_effective_cwnd(const struct sock *sk)
{
	u32 cwnd = tcp_in_cwnd_reduction(sk) ? tcp_sk(sk)->snd_ssthresh : tcp_sk(sk)->snd_cwnd;

	return max(cwnd, 1U);
}

static inline struct plait_slot *plait_published(struct sock *sk)
{
	struct plait_slot *slot = plait_slot(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 since_loss;

	if (!slot)
		return NULL;
	since_loss = tp->bytes_acked - slot->loss_mark;
	slot->cwnd = plait_effective_cwnd(sk);
	slot->mss = max(tp->mss_cache, 1U);
	slot->srtt_us = tp->srtt_us >> 3;
	slot->rto_jiffies = inet_csk(sk)->icsk_rto;
	slot->interloss = max(slot->last_interval, since_loss);
	slot->seen_jiffies = bpf_jiffies64();
	return slot;
}

/* Tells the siblings about this path, on every ACK. One whose slot the map has dropped takes another one. The ACK of
 * the SYN comes before init(), when there is no connection yet.
 */
static inline void plait_coupled_publish(struct sock *sk)
{
	const struct plait_coupled *ca = inet_csk_ca(sk);

	if (!plait_published(sk) && ca->place.connection && ca->place.index != PLAIT_ALONE)
		plait_enter(sk);
}

static inline bool plait_slot_read(const struct plait_slot *slot, struct plait_path *path)
{
	path->cwnd = slot->cwnd;
	path->mss = slot->mss;
	path->srtt_us = slot->srtt_us;
	path->interloss = slot->interloss;
	return path->cwnd && path->mss && path->srtt_us;
}

struct plait_reading {
	struct plait_path *paths;
	struct plait_place place;
	u64 now;
	u32 siblings;
	u32 n;
};

static long plait_read_sibling(u32 index, struct plait_reading *reading)
{
	const struct plait_slot *slot;
	u32 n = reading->n;
	s64 rto;

	if (!(reading->siblings >> index & 1))
		return 0;
	reading->place.index = index;
	slot = bpf_map_lookup_elem(&plait_slots, &reading->place);
	if (!slot)
		return 0;
	rto = min(slot->rto_jiffies, (u32)PLAIT_MOST_RTO);
	if ((s64)(reading->now - slot->seen_jiffies) > PLAIT_SILENT * rto)
		return 0;
	if (n < PLAIT_PATHS && plait_slot_read(slot, &reading->paths[n]))
		reading->n = n + 1;
	return 0;
}

/* Fills paths with this path (index 0) and its carrying siblings; returns how many, 0 when this path itself is not
 * known yet. A path on its own is 0 here and 1 in the module; both are fewer than 2.
 */
static __attribute__((noinline)) u32 plait_coupled_snapshot(struct sock *sk, struct plait_path paths[PLAIT_PATHS])
{
	const struct plait_slot *slot = plait_published(sk);
	struct plait_reading reading = { .paths = paths, .now = bpf_jiffies64(), .n = 1 };

	if (!slot || !plait_slot_read(slot, &paths[0]))
		return 0;
	reading.place = ((const struct plait_coupled *)inet_csk_ca(sk))->place;
	reading.siblings = slot->siblings & ~(1U << reading.place.index);
	bpf_loop(PLAIT_PATHS, plait_read_sibling, &reading, 0);
	return min(reading.n, (u32)PLAIT_PATHS);
}

/* Adds increase (Q32 segments per acknowledged segment) for each of acked segments to cwnd. */
static inline void plait_coupled_grow(struct sock *sk, s64 increase, u32 acked)
{
	struct plait_slot *slot = plait_slot(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	s64 credit, whole, cwnd;

	if (!slot)
		return;
	credit = slot->credit + increase * acked;
	whole = (credit < 0 ? -credit : credit) >> 32;
	if (credit < 0)
		whole = -whole;
	slot->credit = credit - whole * (1LL << 32);
	cwnd = tp->snd_cwnd + whole;
	tp->snd_cwnd = clamp(cwnd, 1, (s64)tp->snd_cwnd_clamp);
}

static inline void plait_coupled_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	plait_coupled_publish(sk);
}

static inline void plait_coupled_set_state(struct sock *sk, u8 state)
{
	plait_coupled_publish(sk);
}

/* Slow start, and when there is any room to grow at all: the segments left for congestion avoidance, else 0. */
static inline u32 plait_coupled_slow_start(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	plait_published(sk);
	if (!tcp_is_cwnd_limited(sk))
		return 0;
	return tcp_in_slow_start(tp) ? tcp_slow_start(tp, acked) : acked;
}

#ifndef PLAIT_CONGESTION_CONTROL	/* a test compiles the programs as modules */

/* The registration of a module, which its source has as well. */
struct plait_module_ops {
	struct tcp_congestion_ops;
	void *owner;
};

/* The entry points of an algorithm, and its registration. */
#define PLAIT_CONGESTION_CONTROL(algorithm, of_ssthresh, of_set_state, of_pkts_acked)				\
	SEC("struct_ops") void BPF_PROG(algorithm##_on_init, struct sock *sk)					\
	{													\
		algorithm##_init(sk);										\
	}													\
	SEC("struct_ops") void BPF_PROG(algorithm##_on_release, struct sock *sk)				\
	{													\
		plait_coupled_release(sk);									\
	}													\
	SEC("struct_ops") u32 BPF_PROG(algorithm##_on_loss, struct sock *sk)					\
	{													\
		return of_ssthresh(sk);										\
	}													\
	SEC("struct_ops") void BPF_PROG(algorithm##_on_ack, struct sock *sk, u32 ack, u32 acked)		\
	{													\
		algorithm##_cong_avoid(sk, ack, acked);								\
	}													\
	SEC("struct_ops") u32 BPF_PROG(algorithm##_on_undo, struct sock *sk)					\
	{													\
		return tcp_reno_undo_cwnd(sk);									\
	}													\
	SEC("struct_ops") void BPF_PROG(algorithm##_on_state, struct sock *sk, u8 state)			\
	{													\
		of_set_state(sk, state);									\
	}													\
	SEC("struct_ops")											\
	void BPF_PROG(algorithm##_on_sample, struct sock *sk, const struct ack_sample *sample)			\
	{													\
		of_pkts_acked(sk, sample);									\
	}													\
	SEC(".struct_ops") struct tcp_congestion_ops plait_##algorithm = {					\
		.init		= (void *)algorithm##_on_init,							\
		.release	= (void *)algorithm##_on_release,						\
		.ssthresh	= (void *)algorithm##_on_loss,							\
		.cong_avoid	= (void *)algorithm##_on_ack,							\
		.undo_cwnd	= (void *)algorithm##_on_undo,							\
		.set_state	= (void *)algorithm##_on_state,							\
		.pkts_acked	= (void *)algorithm##_on_sample,						\
		.flags		= TCP_CONG_NON_RESTRICTED,							\
		.name		= #algorithm,									\
	};													\
	char _license[] SEC("license") = "GPL"

#endif
#endif
