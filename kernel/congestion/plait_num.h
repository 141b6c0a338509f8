/* SPDX-License-Identifier: GPL-2.0 */
/* Positive numbers of 32 significant bits and any exponent, for formulas over windows and round-trip times.
 *
 * Windows span 1 to 2^30 segments and round-trip times 1 us to minutes, so the rates and squares that coupled
 * congestion control needs do not fit any one fixed-point scale. A number here is m * 2^e with 2^31 <= m < 2^32
 * (or m = 0 for zero). Every operation truncates, so each result is at most a factor (1 - 2^-30) below the
 * exact one; errors of a formula add up over its operations, and each formula states its own bound.
 *
 * The file compiles in the kernel and in a host program (the tests); it allocates, locks and calls nothing.
 */
#ifndef PLAIT_NUM_H
#define PLAIT_NUM_H

#ifdef __KERNEL__
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef uint32_t u32;
typedef int64_t s64;
typedef int32_t s32;
#define U32_MAX ((u32)~0U)
#define S64_MAX INT64_MAX
static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}
#endif

struct plait_num {
	u32 m;
	s32 e;
};

/* m * 2^e, normalised; the bits of m beyond the first 32 are cut off. */
static inline struct plait_num plait_num(u64 m, s32 e)
{
	struct plait_num r = { 0, 0 };
	int shift = fls64(m) - 32;

	if (!m)
		return r;
	r.m = shift > 0 ? m >> shift : m << -shift;
	r.e = e + shift;
	return r;
}

static inline struct plait_num plait_mul(struct plait_num a, struct plait_num b)
{
	return plait_num((u64)a.m * b.m, a.e + b.e);
}

/* a / b; b is never zero where this is called (windows, segment sizes and round-trip times are at least 1). */
static inline struct plait_num plait_div(struct plait_num a, struct plait_num b)
{
	return plait_num(div_u64((u64)a.m << 32, b.m), a.e - 32 - b.e);
}

/* Negative, zero or positive as a is below, at or above b: exact, because both are normalised. */
static inline int plait_cmp(struct plait_num a, struct plait_num b)
{
	if (!a.m || !b.m)
		return !!a.m - !!b.m;
	if (a.e != b.e)
		return a.e < b.e ? -1 : 1;
	return a.m < b.m ? -1 : a.m > b.m;
}

static inline struct plait_num plait_max(struct plait_num a, struct plait_num b)
{
	return plait_cmp(a, b) < 0 ? b : a;
}

static inline struct plait_num plait_min(struct plait_num a, struct plait_num b)
{
	return plait_cmp(a, b) < 0 ? a : b;
}

static inline struct plait_num plait_add(struct plait_num a, struct plait_num b)
{
	struct plait_num high = plait_max(a, b);
	struct plait_num low = plait_min(a, b);
	int shift = high.e - low.e;

	if (!low.m || shift > 62)
		return high;
	return plait_num(((u64)high.m << 31) + (((u64)low.m << 31) >> shift), high.e - 31);
}

/* floor(a * 2^bits), saturating at 2^63 - 1. */
static inline u64 plait_fixed(struct plait_num a, int bits)
{
	int shift = a.e + bits;

	if (!a.m || shift <= -32)
		return 0;
	if (shift > 31)
		return S64_MAX;
	return shift >= 0 ? (u64)a.m << shift : a.m >> -shift;
}

#endif
