/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of the kernel that the programs read and call. CO-RE finds each field by name in the kernel that loads them.
 *
 * Offsets here mean nothing, so the objects do not depend on the kernel of the machine that builds them. Of each
 * structure only the fields in use are declared.
 */
#ifndef PLAIT_BPF_KERNEL_H
#define PLAIT_BPF_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
/* the names that libbpf's headers use */
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u8 __u8;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

#define true 1
#define false 0
#define NULL ((void *)0)
#define inline inline __attribute__((always_inline))	/* a program cannot return a structure */
#define EAGAIN 11
#define EINVAL 22
#define U32_MAX ((u32)~0U)
#define S64_MAX ((s64)(~0ULL >> 1))
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_F_NO_PREALLOC 1
#define BPF_NOEXIST 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	u16 skc_family;
};

struct sock {
	struct sock_common __sk_common;
};

struct inet_sock {
	struct sock sk;		/* a member by value: the object must have the type as a whole */
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	void *icsk_ulp_data;
	u32 icsk_rto;
	u8 icsk_retransmits;
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 snd_nxt;
	u32 write_seq;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 mss_cache;
	u32 srtt_us;
	u32 mdev_us;
	u32 max_packets_out;
	u64 tcp_mstamp;
	u64 bytes_acked;
	u8 is_cwnd_limited : 1;
	bool is_mptcp;
};

struct mptcp_sock {
	u64 write_seq;
	u64 snd_nxt;
	u64 snd_una;
	u64 wnd_end;
	int snd_burst;
	bool snd_data_fin_enable;
};

struct mptcp_subflow_context {
	u32 token;
	u32 rel_write_seq;
	u32 request_bkup : 1;
	u32 backup : 1;
	u8 stale_count;
	u32 subflow_id;
	struct sock *conn;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

#pragma clang attribute pop

/* libbpf matches the members by name with those of the kernel that loads the object. */
struct tcp_congestion_ops {
	u32 flags;
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
};

#define TCP_CONG_NON_RESTRICTED 1
#define ICSK_CA_PRIV_SIZE 104

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };

extern unsigned int tcp_reno_ssthresh(struct sock *sk) __ksym;
extern unsigned int tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, unsigned int ack, unsigned int acked) __ksym;
extern unsigned int tcp_slow_start(struct tcp_sock *tp, unsigned int acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, unsigned int w, unsigned int acked) __ksym;

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define clamp(value, low, high) min(max(value, low), high)
#define after(a, b) ((s32)((b) - (a)) < 0)

/* No instruction counts leading zeros. The function is global, so that the verifier examines its branches once, and
 * not in each state of each caller. Its steps are written out, because a loop takes three times the instructions.
 */
#define PLAIT_HALVE(half)			\
	if (x >> (half)) {			\
		x >>= (half);			\
		bits += (half);			\
	}

__attribute__((noinline)) int plait_fls64(u64 x)
{
	int bits = 0;

	PLAIT_HALVE(32)
	PLAIT_HALVE(16)
	PLAIT_HALVE(8)
	PLAIT_HALVE(4)
	PLAIT_HALVE(2)
	PLAIT_HALVE(1)
	return bits + (int)x;
}

static inline int fls64(u64 x)
{
	return plait_fls64(x);
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static inline void *inet_csk_ca(const struct sock *sk)
{
	return (void *)inet_csk(sk)->icsk_ca_priv;
}

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_cwnd = cwnd;
}

static inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	u32 state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);

	return state == TCP_CA_CWR || state == TCP_CA_Recovery;
}

#endif
