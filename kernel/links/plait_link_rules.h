/* SPDX-License-Identifier: GPL-2.0 */
/* The arithmetic of a link as pure functions: the line, the token bucket, and the draws of delays and losses.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. A rate of r bit/s takes 8 * 10^9 * bytes / r ns for a packet. The division
 * leaves a remainder; the line and the bucket keep it, so that no nanosecond is lost between packets that follow each
 * other. What happens to a packet happens at the whole nanosecond below the exact instant.
 *
 * The file compiles in the kernel and in a host program (the tests); it allocates, locks and calls nothing.
 */
#ifndef PLAIT_LINK_RULES_H
#define PLAIT_LINK_RULES_H

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef uint32_t u32;
typedef int64_t s64;
typedef int16_t s16;
static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	return (unsigned __int128)a * b / c;
}

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rest)
{
	*rest = a % b;
	return a / b;
}
#endif

#define PLAIT_BYTE_NS		8000000000ULL	/* ns that a byte takes at 1 bit/s */
#define PLAIT_TABLE_SCALE	8192		/* a table's value that stands for the jitter itself */
#define PLAIT_SOJOURNS		305		/* bins of times in the queue */

/* An instant with the remainder of the division that led to it: ns + rest / rate. */
struct plait_instant {
	u64 ns;
	u64 rest;
};

/* Moves an instant by the time of `bytes` at `rate` (above 0), from `begin` at the earliest. */
static inline void plait_instant_add(struct plait_instant *at, u64 begin, u32 bytes, u64 rate)
{
	if (begin > at->ns) {
		at->ns = begin;
		at->rest = 0;
	}
	at->ns += div64_u64_rem(at->rest + bytes * PLAIT_BYTE_NS, rate, &at->rest);
}

/* A token bucket, by the instant at which it will be full: it holds burst - rate * (full - now), or burst after that. */
struct plait_bucket {
	u64 rate;	/* bit/s; 0: there is no bucket */
	u32 burst;	/* bytes */
	struct plait_instant full;
};

/* Takes the tokens of a packet, from `begin` at the earliest; returns when there were enough. A packet larger than the
 * bucket needs a full one, and leaves a debt.
 */
static inline u64 plait_bucket_take(struct plait_bucket *b, u64 begin, u32 bytes)
{
	u64 spare = bytes < b->burst ? mul_u64_u64_div_u64(b->burst - bytes, PLAIT_BYTE_NS, b->rate) : 0;
	u64 enough = b->full.ns + !!b->full.rest;

	enough = enough > spare ? enough - spare : 0;
	if (enough > begin)
		begin = enough;
	plait_instant_add(&b->full, begin, bytes, b->rate);
	return begin;
}

/* What the bucket holds at `now`, in whole bytes. Below 0: a packet has started that waits for these tokens. */
static inline s64 plait_bucket_holds(const struct plait_bucket *b, u64 now)
{
	if (now >= b->full.ns)
		return b->burst;
	return (s64)b->burst - (s64)mul_u64_u64_div_u64(b->full.ns - now, b->rate, PLAIT_BYTE_NS) - 1;
}

/* The tokens that a packet could take at `now`. */
static inline u32 plait_bucket_level(const struct plait_bucket *b, u64 now)
{
	s64 holds = plait_bucket_holds(b, now);

	return holds > 0 ? holds : 0;
}

/* Gives a bucket another rate and size at `now`. It keeps what it holds, also below 0, as far as there is room. A new
 * bucket is full.
 */
static inline void plait_bucket_change(struct plait_bucket *b, u64 now, u64 rate, u32 burst)
{
	s64 holds = b->rate ? plait_bucket_holds(b, now) : burst;

	b->rate = rate;
	b->burst = burst;
	b->full.ns = now;
	b->full.rest = 0;
	if (rate && holds < burst)
		b->full.ns += mul_u64_u64_div_u64(burst - holds, PLAIT_BYTE_NS, rate);
}

/* The bin of a time in the queue. Bins are 1 ns wide below 16 ns; above, eight of equal width follow each power of two.
 * The last bin has everything from 2^40 ns.
 */
static inline u32 plait_sojourn_bin(u64 ns)
{
	u32 power;

	if (ns < 8)
		return ns;
	power = 63 - __builtin_clzll(ns);
	if (power >= 40)
		return PLAIT_SOJOURNS - 1;
	return (power - 2) * 8 + (ns >> (power - 3)) % 8;
}

/* Whether an event of that probability (0 .. 2^32 - 1 for 0 .. 1) happens, given a draw uniform over 32 bits. */
static inline bool plait_link_happens(u32 probability, u32 draw)
{
	return probability && draw <= probability;
}

/* The delay of a packet: netem's distributions. Without a table it is uniform within the jitter around the delay; a
 * value t of the table makes it delay + jitter * t / 8192, rounded. Never below 0.
 */
static inline u64 plait_link_delay(u64 delay, u32 jitter, const s16 *table, u32 size, u32 draw)
{
	s64 at = delay, move;

	if (!jitter)
		return delay;
	if (size) {
		move = (s64)jitter * table[draw % size];
		move += move >= 0 ? PLAIT_TABLE_SCALE / 2 : -PLAIT_TABLE_SCALE / 2;
		at += move / PLAIT_TABLE_SCALE;
	} else {
		at += (s64)(draw % (2ULL * jitter)) - jitter;
	}
	return at > 0 ? at : 0;
}

/* The model of E. N. Gilbert and E. O. Elliott: a good and a bad state, each with its own probability of a loss. */
struct plait_ge {
	u32 to_bad;	/* P(good -> bad) after a packet */
	u32 to_good;
	u32 loss_bad;
	u32 loss_good;
};

/* Whether a packet is lost, by the state before the change of state; two draws. */
static inline bool plait_ge_loses(const struct plait_ge *ge, bool *bad, u32 change, u32 loss)
{
	bool was_bad = *bad;

	if (plait_link_happens(was_bad ? ge->to_good : ge->to_bad, change))
		*bad = !was_bad;
	return plait_link_happens(was_bad ? ge->loss_bad : ge->loss_good, loss);
}

#endif
