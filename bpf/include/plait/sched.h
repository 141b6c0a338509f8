/* SPDX-License-Identifier: GPL-2.0 */
/* The interface of kernel/include/plait/sched.h for BPF programs, which compile the modules' own sources.
 *
 * It needs a kernel with the struct_ops mptcp_sched_ops. What the laboratory kernel has and such a kernel has not:
 *
 *   a decision ends with the data fragment in which its burst ends (up to 64 KiB), and not with its segment;
 *   a segment has the size that TCP last computed, and not that of the last one;
 *   the peer's window is what TCP remembers of it.
 *
 * State lies in the connection's storage, and ends with the connection. Its lock serves the state too. That of a
 * subflow is in one of PLAIT_SLOTS places by its number; one that finds another's there starts anew.
 *
 * The verifier forgets a pointer that lies in an array. So an option names its subflow by its number, in the place of
 * the pointer; numbers begin with 1. And it follows each value of a variable by itself. It does not know what lies in
 * the state: with the number of options there, all options are one to it.
 */
#ifndef PLAIT_BPF_SCHED_H
#define PLAIT_BPF_SCHED_H

#include <linux/module.h>

#include "kernel.h"

#define PLAIT_OPTIONS	9	/* MPTCP has at most 8 beside the first; more do not fit on the stack of a program */
#define PLAIT_SLOTS	16
#define PLAIT_AHEAD	1	/* as in the module */

#define READ_ONCE(value) (value)
#define INT_MAX ((int)(~0U >> 1))
#define DIV_ROUND_UP(dividend, divisor) (((dividend) + (divisor) - 1) / (divisor))
#define DIV_ROUND_UP_ULL(dividend, divisor) DIV_ROUND_UP((u64)(dividend), divisor)

/* libbpf matches the members by name with those of the kernel that loads the object. */
struct mptcp_sched_ops {
	int (*get_send)(struct mptcp_sock *msk);
	int (*get_retrans)(struct mptcp_sock *msk);
	char name[16];
};

struct bpf_iter_mptcp_subflow {
	u64 opaque[2];
};

extern int bpf_iter_mptcp_subflow_new(struct bpf_iter_mptcp_subflow *it, struct sock *sk) __ksym;
extern struct mptcp_subflow_context *bpf_iter_mptcp_subflow_next(struct bpf_iter_mptcp_subflow *it) __ksym;
extern void bpf_iter_mptcp_subflow_destroy(struct bpf_iter_mptcp_subflow *it) __ksym;
extern struct sock *bpf_mptcp_subflow_tcp_sock(const struct mptcp_subflow_context *subflow) __ksym;
extern bool bpf_sk_stream_memory_free(const struct sock *sk) __ksym;
extern bool mptcp_subflow_active(struct mptcp_subflow_context *subflow) __ksym;
extern void mptcp_subflow_set_scheduled(struct mptcp_subflow_context *subflow, bool scheduled) __ksym;
extern void mptcp_set_timeout(struct sock *sk) __ksym;
/* It may sleep. Kernels that have it leave to the scheduler what the others do before they ask one what to resend on. */
extern void mptcp_pm_subflow_chk_stale(const struct mptcp_sock *msk, struct sock *ssk) __ksym __weak;

#define mptcp_for_each_subflow(msk, subflow)									\
	for (struct bpf_iter_mptcp_subflow _it __attribute__((cleanup(bpf_iter_mptcp_subflow_destroy))),	\
		*_new __attribute__((unused)) = (bpf_iter_mptcp_subflow_new(&_it, (struct sock *)(msk)),	\
						 (void)bpf_iter_mptcp_subflow_destroy, NULL);			\
	     ((subflow) = bpf_iter_mptcp_subflow_next(&_it));)

struct plait_option {
	union {
		struct mptcp_subflow_context *subflow;	/* its number; only NULL means what it says */
		u32 id;
	};
	u32 room;	/* these as in the module */
	u32 cwnd;
	u32 inflight;
	u32 mss;
	u32 srtt_us;
	u32 rttvar_us;
	u32 timeouts;
	u32 assigned;
};

struct plait_state {
	u64 connection[4];
	volatile u32 options;
	struct {
		u64 state;
		u32 id;
	} subflow[PLAIT_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct plait_state);
} plait_states SEC(".maps");

static inline struct plait_state *plait_state(struct mptcp_sock *msk)
{
	return bpf_sk_storage_get(&plait_states, msk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static inline u64 *plait_slot(struct plait_state *state, u32 id)
{
	u32 slot = id % PLAIT_SLOTS;

	if (state->subflow[slot].id != id) {
		state->subflow[slot].id = id;
		state->subflow[slot].state = 0;
	}
	return &state->subflow[slot].state;
}

/* For a scheduler's choice, which ends with "not now" if there is no memory for a state. */
#define plait_connection(msk, type) ({							\
	BUILD_BUG_ON(sizeof(type) > sizeof(((struct plait_state *)0)->connection));	\
	struct plait_state *_state = plait_state(msk);					\
	if (!_state)									\
		return NULL;								\
	(type *)_state->connection; })
#define plait_subflow(subflow, type) ({							\
	BUILD_BUG_ON(sizeof(type) > sizeof(u64));					\
	struct plait_state *_state = plait_state(msk);					\
	if (!_state)									\
		return NULL;								\
	(type *)plait_slot(_state, (u64)(subflow)); })

static inline bool plait_is_backup(const struct mptcp_subflow_context *subflow)
{
	return BPF_CORE_READ_BITFIELD(subflow, backup) || BPF_CORE_READ_BITFIELD(subflow, request_bkup);
}

static inline struct tcp_sock *plait_tcp_sock(const struct mptcp_subflow_context *subflow)
{
	struct sock *ssk = bpf_mptcp_subflow_tcp_sock(subflow);

	return ssk ? bpf_skc_to_tcp_sock(ssk) : NULL;
}

static inline void plait_read_option(struct plait_option *option, const struct mptcp_subflow_context *subflow,
				     const struct tcp_sock *tp)
{
	u32 lost = tp->lost_out, resent = tp->retrans_out, in_flight, cwnd = max(tp->snd_cwnd, 1U);
	u32 mss = max(tp->mss_cache, 1U), srtt_us = tp->srtt_us >> 3;

	in_flight = tp->packets_out - (tp->sacked_out + lost) + resent + (lost > resent ? lost - resent : 0);
	in_flight += (tp->write_seq - tp->snd_nxt) / mss;
	option->subflow = (void *)(u64)subflow->subflow_id;
	option->mss = mss;
	option->cwnd = cwnd;
	option->inflight = in_flight;
	option->room = 0;
	if (cwnd + PLAIT_AHEAD > in_flight && bpf_sk_stream_memory_free((const struct sock *)tp))
		option->room = cwnd + PLAIT_AHEAD - in_flight;
	option->srtt_us = srtt_us ? srtt_us : U32_MAX;
	option->rttvar_us = tp->mdev_us >> 2;
	option->timeouts = tp->inet_conn.icsk_retransmits;
	option->assigned = subflow->rel_write_seq;
}

static inline int plait_options(struct mptcp_sock *msk, struct plait_option option[PLAIT_OPTIONS])
{
	struct mptcp_subflow_context *subflow;
	struct plait_state *state = plait_state(msk);
	const struct tcp_sock *tp;
	bool backup = true;
	u32 n;

	if (!state)
		return 0;
	state->options = 0;
	mptcp_for_each_subflow(msk, subflow)
		if (mptcp_subflow_active(subflow) && !plait_is_backup(subflow))
			backup = false;
	mptcp_for_each_subflow(msk, subflow) {
		n = state->options;
		if (!mptcp_subflow_active(subflow) || plait_is_backup(subflow) != backup || n >= PLAIT_OPTIONS)
			continue;
		tp = plait_tcp_sock(subflow);
		if (!tp)
			continue;
		plait_read_option(&option[n], subflow, tp);
		state->options = n + 1;
	}
	n = state->options;
	return min(n, (u32)PLAIT_OPTIONS);
}

/* As in the module. A header for both would change the identity of every laboratory kernel. */
static inline struct plait_option *plait_fastest(struct plait_option *option, int n, bool with_room)
{
	struct plait_option *best = NULL;
	int i;

	for (i = 0; i < n; i++)
		if ((option[i].room || !with_room) && (!best || option[i].srtt_us < best->srtt_us))
			best = &option[i];
	return best;
}

static inline u64 plait_window(const struct mptcp_sock *msk)
{
	u64 end = msk->wnd_end, next = msk->snd_nxt;

	return (s64)(end - next) > 0 ? end - next : 0;
}

static inline u64 plait_pending(const struct mptcp_sock *msk)
{
	return msk->write_seq - msk->snd_nxt - msk->snd_data_fin_enable;
}

static inline u64 mptcp_stamp(void)
{
	return bpf_ktime_get_ns() / 1000;
}

static inline struct mptcp_subflow_context *
plait_send(struct mptcp_sock *msk, const struct plait_option *option, u32 segments)
{
	u64 bytes = min((u64)segments * option->mss, plait_window(msk));

	msk->snd_burst = clamp(bytes, option->mss, INT_MAX / 2);
	return option->subflow;
}

static inline int plait_schedule(struct mptcp_sock *msk, u32 id)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow)
		if (subflow->subflow_id == id) {
			mptcp_subflow_set_scheduled(subflow, true);
			return 0;
		}
	return -EINVAL;
}

/* The kernel's own rule for data that it sends again: an idle subflow, or a backup when nothing makes progress. */
static inline u32 plait_idle(struct mptcp_sock *msk)
{
	u32 least_stale = U32_MAX, idle = 0, backup = 0;
	struct mptcp_subflow_context *subflow;
	const struct tcp_sock *tp;
	struct sock *ssk;

	mptcp_for_each_subflow(msk, subflow) {
		ssk = mptcp_subflow_active(subflow) ? bpf_mptcp_subflow_tcp_sock(subflow) : NULL;
		tp = ssk ? bpf_skc_to_tcp_sock(ssk) : NULL;
		if (!tp)
			continue;
		if (tp->packets_out || tp->write_seq != tp->snd_nxt) {
			if (mptcp_pm_subflow_chk_stale)
				mptcp_pm_subflow_chk_stale(msk, ssk);
			least_stale = min(least_stale, (u32)subflow->stale_count);
		} else if (!plait_is_backup(subflow))
			idle = idle ? idle : subflow->subflow_id;
		else
			backup = backup ? backup : subflow->subflow_id;
	}
	return idle || least_stale <= 1 ? idle : backup;
}

#define PLAIT_SCHEDULER(scheduler, pick, more)							\
	SEC("struct_ops") int BPF_PROG(scheduler##_on_send, struct mptcp_sock *msk)		\
	{											\
		struct mptcp_subflow_context *choice;						\
												\
		mptcp_set_timeout((struct sock *)msk);						\
		choice = pick(msk);								\
		return choice ? plait_schedule(msk, (u64)choice) : -EAGAIN;			\
	}											\
	SEC("struct_ops.s") int BPF_PROG(scheduler##_on_resend, struct mptcp_sock *msk)		\
	{											\
		u32 id = plait_idle(msk);							\
												\
		return id ? plait_schedule(msk, id) : -EINVAL;					\
	}											\
	SEC(".struct_ops") struct mptcp_sched_ops plait_##scheduler = {				\
		.get_send	= (void *)scheduler##_on_send,					\
		.get_retrans	= (void *)scheduler##_on_resend,				\
		.name		= #scheduler,							\
	};											\
	char _license[] SEC("license") = "GPL"

#endif
