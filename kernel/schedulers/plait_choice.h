/* SPDX-License-Identifier: GPL-2.0 */
/* The arithmetic of the schedulers as pure functions. Compiles in the kernel and in a host program (the tests). */
#ifndef PLAIT_CHOICE_H
#define PLAIT_CHOICE_H

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef uint32_t u32;
typedef int64_t s64;
#define U32_MAX ((u32)~0U)
static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}
#endif

/* ECF, algorithm 1: whether to leave the slow subflow idle while k segments wait for the fast one. See ecf.c.
 * cwnd and k below 2^24, times below 2^27 us: exact.
 */
static inline bool plait_ecf_waits(u64 k, u32 cwnd_f, u32 rtt_f, u32 cwnd_s, u32 rtt_s, u32 delta, bool *waiting)
{
	/* (1 + k / cwnd_f) * r_f < (1 + waiting / 4) * (r_s + delta) */
	if (4 * (cwnd_f + k) * rtt_f >= (4 + *waiting) * ((u64)rtt_s + delta) * cwnd_f) {
		*waiting = false;
		return false;
	}
	/* k / cwnd_s * r_s >= 2 * r_f + delta */
	if (k * rtt_s < (2 * (u64)rtt_f + delta) * cwnd_s)
		return false;
	*waiting = true;
	return true;
}

/* BLEST, section III: whether a segment on the slow subflow would take window that the fast one needs. See blest.c.
 * rtts is kept in Q10, at most 2^22 (a ratio of 4096); X is exact to 2^-8 relative and saturates below 2^63.
 */
static inline bool plait_blest_skips(u64 window, u32 mss_f, u32 cwnd_f, u32 rtt_f, u32 mss_s, u32 inflight_s,
				     u32 rtt_s, u32 lambda_permille)
{
	u64 rtts = div_u64((u64)rtt_s << 10, rtt_f);
	u64 occupied = (u64)mss_s * ((u64)inflight_s + 1);
	u64 segments;

	if (rtts > 4096 << 10)
		rtts = 4096 << 10;
	segments = (((u64)cwnd_f << 10) + (rtts > 1024 ? (rtts - 1024) / 2 : 0)) * rtts >> 20;
	if (occupied >= window)
		return true;
	return segments * mss_f / 1000 * lambda_permille > window - occupied;
}

/* Shares of a connection's bytes, for capped (see capped.c).
 *
 * With n subflows the cap is numerator / denominator. A subflow's credit, in bytes * denominator, is what it may carry
 * beyond its share: it grows by the cap's part of all bytes carried and falls by what the subflow itself carried.
 */
struct plait_cap {
	u64 numerator;
	u64 denominator;
	s64 most;	/* largest credit, bytes * denominator */
};

/* 1/n + e, e in 1/10000; at most 1. burst: bytes by which a subflow may run ahead of its share. */
static inline struct plait_cap plait_cap(u32 n, u32 e, u32 burst)
{
	struct plait_cap cap;

	cap.denominator = 10000ULL * n;
	cap.numerator = 10000 + (u64)n * e;
	if (cap.numerator > cap.denominator)
		cap.numerator = cap.denominator;
	cap.most = burst * cap.denominator;
	return cap;
}

static inline s64 plait_cap_credit(const struct plait_cap *cap, s64 credit, u64 all_bytes, u64 own_bytes)
{
	credit += all_bytes * cap->numerator;
	credit -= own_bytes * cap->denominator;
	return credit < cap->most ? credit : cap->most;
}

/* What all credits lack for the highest of them to afford so many bytes; 0 when it can. */
static inline s64 plait_cap_lack(const struct plait_cap *cap, s64 highest, u32 bytes)
{
	s64 needed = bytes * (cap->denominator - cap->numerator);

	return highest < needed ? needed - highest : 0;
}

/* Bytes that a subflow of this credit may carry now: of s bytes it spends s and gains s * cap. */
static inline u32 plait_cap_grant(const struct plait_cap *cap, s64 credit)
{
	u32 cost = cap->denominator - cap->numerator;
	u64 bytes;

	if (!cost)
		return U32_MAX;
	if (credit <= 0)
		return 0;
	bytes = div_u64(credit, cost);
	return bytes < U32_MAX ? bytes : U32_MAX;
}

#endif
