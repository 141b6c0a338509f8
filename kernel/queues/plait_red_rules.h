/* SPDX-License-Identifier: GPL-2.0 */
/* The arithmetic of random early detection as pure functions: average queue, its decay while idle, drop curve.
 *
 * Averages are packets in Q32 (2^-32 packet), probabilities are 0 .. 2^32 - 1 for 0 .. 1. With a weight of 2^-n:
 *
 *   average after an arrival    truncated to 2^-32 packet; at most 2^(n-32) packet low however long it runs
 *   average after an idle time  each of the at most 2 * 32 products truncates 2^-63 of itself, and a squaring doubles
 *                               what is there: at most idle * 2^-62 of the average, plus 2^-32 packet
 *   probability                 the average is cut to 2^-16 packet, the result to a whole step of 2^-32: below the exact
 *                               curve by at most its steepest slope times 2^-16 packet, plus 2^-32
 *   drop or not                 a probability p happens in (p + 1) of 2^32 draws: exact at 0 and 1, 2^-32 off between
 *
 * The file compiles in the kernel and in a host program (the tests); it allocates, locks and calls nothing.
 */
#ifndef PLAIT_RED_RULES_H
#define PLAIT_RED_RULES_H

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
static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return ((unsigned __int128)a * b) >> shift;
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	return (unsigned __int128)a * b / c;
}
#endif

#define PLAIT_RED_POINTS	8
#define PLAIT_RED_WEIGHT_MOST	16	/* a weight of 2^-16: an average over days */

/* A corner of the drop curve. Also what a point of TCA_PLAIT_RED_POINTS is, in the byte order of the machine. */
struct plait_red_point {
	u32 average;		/* packets, Q8 */
	u32 probability;	/* 0 .. U32_MAX for 0 .. 1 */
};

/* (1 - w) * average + w * queue, w = 2^-weight_log. */
static inline u64 plait_red_average(u64 average, u32 queue, u32 weight_log)
{
	s64 difference = ((u64)queue << 32) - average;

	return average + (difference >> weight_log);
}

/* (1 - w)^packets * average: what packets arrivals at an empty queue would have made of it. */
static inline u64 plait_red_idle(u64 average, u32 packets, u32 weight_log)
{
	u64 factor = (1ULL << 63) - (1ULL << (63 - weight_log)), power = 1ULL << 63;

	for (; packets; packets >>= 1) {
		if (packets & 1)
			power = mul_u64_u64_shr(power, factor, 63);
		factor = mul_u64_u64_shr(factor, factor, 63);
	}
	return mul_u64_u64_shr(average, power, 63);
}

/* The curve at average: 0 below the first of n points, linear between points. Beyond the last: everything is dropped,
 * *beyond is set, and the result is U32_MAX.
 */
static inline u32 plait_red_probability(const struct plait_red_point *point, int n, u64 average, bool *beyond)
{
	u64 x = average >> 16, from = 0, to = 0, low, high;
	int i;

	*beyond = false;
	for (i = 0; i < n; i++) {
		from = to;
		to = (u64)point[i].average << 8;
		if (x < to)
			break;
	}
	if (i == 0)
		return 0;
	if (i == n) {
		*beyond = x > to;
		return *beyond ? U32_MAX : point[n - 1].probability;
	}
	low = point[i - 1].probability;
	high = point[i].probability;
	if (high < low)
		return low - mul_u64_u64_div_u64(low - high, x - from, to - from);
	return low + mul_u64_u64_div_u64(high - low, x - from, to - from);
}

/* Whether an event of that probability happens, given a draw that is uniform over all 32 bits. */
static inline bool plait_red_happens(u32 probability, u32 draw)
{
	return probability && draw <= probability;
}

#endif
