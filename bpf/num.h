/* SPDX-License-Identifier: GPL-2.0 */
/* The arithmetic of kernel/congestion/plait_num.h, with each operation as a global function.
 *
 * The verifier examines a global function once, and the caller knows nothing of the result. Inlined, the branches of
 * each operation multiply the states of the caller, and the rule of OLIA exceeds the limit of 1 000 000 instructions.
 * A number passes as one word, because a program can neither take nor return a structure.
 */
#ifndef PLAIT_BPF_NUM_H
#define PLAIT_BPF_NUM_H

#include "kernel.h"

#define plait_num(m, e) plait_inline_num(m, e)
#define plait_mul plait_inline_mul
#define plait_div plait_inline_div
#define plait_cmp plait_inline_cmp
#define plait_max plait_inline_max
#define plait_min plait_inline_min
#define plait_add plait_inline_add
#define plait_fixed plait_inline_fixed
#include "../kernel/congestion/plait_num.h"
#undef plait_num
#undef plait_mul
#undef plait_div
#undef plait_cmp
#undef plait_max
#undef plait_min
#undef plait_add
#undef plait_fixed

static inline u64 plait_word(struct plait_num a)
{
	return (u64)(u32)a.e << 32 | a.m;
}

static inline struct plait_num plait_of_word(u64 word)
{
	return (struct plait_num){ .m = word, .e = (s32)(word >> 32) };
}

#define PLAIT_GLOBAL(type, name, inside, ...) \
	__attribute__((noinline)) type name(__VA_ARGS__) { return inside; }

PLAIT_GLOBAL(u64, plait_word_num, plait_word(plait_inline_num(m, e)), u64 m, s32 e)
PLAIT_GLOBAL(u64, plait_word_mul, plait_word(plait_inline_mul(plait_of_word(a), plait_of_word(b))), u64 a, u64 b)
PLAIT_GLOBAL(u64, plait_word_div, plait_word(plait_inline_div(plait_of_word(a), plait_of_word(b))), u64 a, u64 b)
PLAIT_GLOBAL(u64, plait_word_add, plait_word(plait_inline_add(plait_of_word(a), plait_of_word(b))), u64 a, u64 b)
PLAIT_GLOBAL(int, plait_word_cmp, plait_inline_cmp(plait_of_word(a), plait_of_word(b)), u64 a, u64 b)
PLAIT_GLOBAL(u64, plait_word_fixed, plait_inline_fixed(plait_of_word(a), bits), u64 a, int bits)

static inline struct plait_num plait_num(u64 m, s32 e)
{
	return plait_of_word(plait_word_num(m, e));
}

static inline struct plait_num plait_mul(struct plait_num a, struct plait_num b)
{
	return plait_of_word(plait_word_mul(plait_word(a), plait_word(b)));
}

static inline struct plait_num plait_div(struct plait_num a, struct plait_num b)
{
	return plait_of_word(plait_word_div(plait_word(a), plait_word(b)));
}

static inline struct plait_num plait_add(struct plait_num a, struct plait_num b)
{
	return plait_of_word(plait_word_add(plait_word(a), plait_word(b)));
}

static inline struct plait_num plait_max(struct plait_num a, struct plait_num b)
{
	return plait_word_cmp(plait_word(a), plait_word(b)) < 0 ? b : a;
}

static inline struct plait_num plait_min(struct plait_num a, struct plait_num b)
{
	return plait_word_cmp(plait_word(a), plait_word(b)) < 0 ? a : b;
}

static inline u64 plait_fixed(struct plait_num a, int bits)
{
	return plait_word_fixed(plait_word(a), bits);
}

/* 0 if a equals b, else 1: all that the rules ask. The low bit needs no branch, so a sum of such results is one state
 * for the verifier, and not a state for each value.
 */
static inline u32 plait_cmp(struct plait_num a, struct plait_num b)
{
	return plait_word_cmp(plait_word(a), plait_word(b)) & 1;
}

#endif
