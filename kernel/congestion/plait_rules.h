/* SPDX-License-Identifier: GPL-2.0 */
/* The rules of coupled congestion control as pure functions: from the state of all paths to a change of one window.
 *
 * A path p has a window w_p (bytes: cwnd_p segments of mss_p), a smoothed round-trip time r_p, and, for OLIA,
 * l_p, the bytes acknowledged between losses. x_p = w_p / r_p is its rate. paths[0] is the path whose window
 * changes; the others are its siblings. cwnd, mss and srtt_us of every path are at least 1.
 *
 * An increase is what one acknowledged segment adds to cwnd, in units of 2^-32 segment ("Q32"). The formulas of
 * the documents give bytes per acknowledged byte times MSS; with w in bytes and the result in segments of the
 * path itself both are the same number.
 *
 * Errors: all arithmetic is plait_num, each operation at most 2^-30 low. With n <= PLAIT_PATHS paths the longest
 * chain here (a sum of n rates, squared, under three more operations) stays within a relative error of 2^-24, and
 * the conversion to Q32 truncates 2^-32 of a segment. tests/kernel/ holds every rule to that bound against floating
 * point over random states.
 */
#ifndef PLAIT_RULES_H
#define PLAIT_RULES_H

#include "plait_num.h"

/* MPTCP has at most 8 subflows beside the initial one; closing ones may linger. */
#define PLAIT_PATHS 16

struct plait_path {
	u32 cwnd;
	u32 mss;
	u32 srtt_us;
	u64 interloss;
};

static inline struct plait_num plait_window(const struct plait_path *p)
{
	return plait_num((u64)p->cwnd * p->mss, 0);
}

/* x_p = w_p / r_p, bytes per microsecond. */
static inline struct plait_num plait_rate(const struct plait_path *p)
{
	return plait_div(plait_window(p), plait_num(p->srtt_us, 0));
}

static inline struct plait_num plait_rate_sum(const struct plait_path *paths, int n)
{
	struct plait_num sum = plait_rate(&paths[0]);
	int i;

	for (i = 1; i < n; i++)
		sum = plait_add(sum, plait_rate(&paths[i]));
	return sum;
}

/* 1 / cwnd: what Reno adds per acknowledged segment. */
static inline struct plait_num plait_reno_increase(const struct plait_path *p)
{
	return plait_div(plait_num(1, 0), plait_num(p->cwnd, 0));
}

/* value * mss_0 / (sum x)^2: the factor that LIA, OLIA and BALIA share. */
static inline struct plait_num plait_over_sum(struct plait_num value, const struct plait_path *paths, int n)
{
	struct plait_num sum = plait_rate_sum(paths, n);

	return plait_div(plait_mul(value, plait_num(paths[0].mss, 0)), plait_mul(sum, sum));
}

/* RFC 6356, section 3 (1) and (2): min(alpha / w_total, 1 / w_i),
 * alpha = w_total * max(w_p / r_p^2) / (sum w_p / r_p)^2; w_total cancels.
 */
static inline u64 plait_lia_increase(const struct plait_path *paths, int n)
{
	struct plait_num best = { 0, 0 };
	int i;

	for (i = 0; i < n; i++)
		best = plait_max(best, plait_div(plait_rate(&paths[i]), plait_num(paths[i].srtt_us, 0)));
	return plait_fixed(plait_min(plait_over_sum(best, paths, n), plait_reno_increase(&paths[0])), 32);
}

/* l_p / r_p^2: the square of the rate that Reno would reach on the path, up to a constant (see olia.c). */
static inline struct plait_num plait_olia_quality(const struct plait_path *p)
{
	struct plait_num rtt = plait_num(p->srtt_us, 0);

	return plait_div(plait_div(plait_num(p->interloss, 0), rtt), rtt);
}

/* The sign and the denominator of OLIA's alpha for paths[0]: +1/d when it is collected, -1/d when it is one of the
 * largest windows while others are collected, 0 otherwise. Returns the signed denominator, or 0 for alpha = 0.
 */
static inline s32 plait_olia_alpha(const struct plait_path *paths, int n)
{
	struct plait_num best = { 0, 0 }, largest = { 0, 0 };
	int i, collected = 0, maximal = 0;
	bool self_best, self_largest;

	for (i = 0; i < n; i++) {
		best = plait_max(best, plait_olia_quality(&paths[i]));
		largest = plait_max(largest, plait_window(&paths[i]));
	}
	for (i = 0; i < n; i++) {
		bool is_largest = !plait_cmp(plait_window(&paths[i]), largest);

		maximal += is_largest;
		collected += !is_largest && !plait_cmp(plait_olia_quality(&paths[i]), best);
	}
	self_largest = !plait_cmp(plait_window(&paths[0]), largest);
	self_best = !plait_cmp(plait_olia_quality(&paths[0]), best);
	if (!collected)
		return 0;
	if (self_largest)
		return -n * maximal;
	return self_best ? n * collected : 0;
}

/* draft-khalili-mptcp-congestion-control-05, section 3: (w_r / r_r^2) / (sum w_p / r_p)^2 + alpha_r / w_r.
 * May be negative.
 */
static inline s64 plait_olia_increase(const struct plait_path *paths, int n)
{
	struct plait_num own = plait_div(plait_rate(&paths[0]), plait_num(paths[0].srtt_us, 0));
	s64 coupled = plait_fixed(plait_over_sum(own, paths, n), 32);
	s32 d = plait_olia_alpha(paths, n);
	s64 shift;

	if (!d)
		return coupled;
	shift = plait_fixed(plait_div(plait_reno_increase(&paths[0]), plait_num(d < 0 ? -d : d, 0)), 32);
	return d < 0 ? coupled - shift : coupled + shift;
}

/* alpha_r = max x_p / x_r, at least 1. */
static inline struct plait_num plait_balia_alpha(const struct plait_path *paths, int n)
{
	struct plait_num best = plait_rate(&paths[0]);
	int i;

	for (i = 1; i < n; i++)
		best = plait_max(best, plait_rate(&paths[i]));
	return plait_div(best, plait_rate(&paths[0]));
}

/* draft-walid-mptcp-congestion-control-04, section 3:
 * x_r / (r_r * (sum x_p)^2) * (1 + alpha_r) / 2 * (4 + alpha_r) / 5.
 */
static inline u64 plait_balia_increase(const struct plait_path *paths, int n)
{
	struct plait_num alpha = plait_balia_alpha(paths, n);
	struct plait_num own = plait_div(plait_rate(&paths[0]), plait_num(paths[0].srtt_us, 0));
	struct plait_num factor = plait_mul(plait_add(plait_num(1, 0), alpha), plait_add(plait_num(4, 0), alpha));

	factor = plait_div(factor, plait_num(10, 0));
	return plait_fixed(plait_mul(plait_over_sum(own, paths, n), factor), 32);
}

/* The window after a loss, in segments: w_r - w_r / 2 * min(alpha_r, 1.5), rounded down as Reno rounds. */
static inline u32 plait_balia_reduced(const struct plait_path *paths, int n)
{
	struct plait_num alpha = plait_min(plait_balia_alpha(paths, n), plait_num(3, -1));
	u64 kept = (2ULL << 31) - plait_fixed(alpha, 31);	/* 2 - alpha, in Q31 */

	return (paths[0].cwnd * kept) >> 32;
}

/* Segments that wait in the path's queues, Q16: cwnd * (rtt - base) / rtt (draft-xu-mptcp-congestion-control-05,
 * section 3: diff = (cwnd / base - cwnd / rtt) * base). Relative error below 2^-28.
 */
static inline u64 plait_vegas_backlog(u32 cwnd, u32 rtt_us, u32 base_us)
{
	if (rtt_us <= base_us)
		return 0;
	return plait_fixed(plait_div(plait_mul(plait_num(cwnd, 0), plait_num(rtt_us - base_us, 0)),
				     plait_num(rtt_us, 0)), 16);
}

/* alpha_r = total * x_r / sum x_p, Q16, at least 2^-16 (same draft): what the path may keep queued. */
static inline u64 plait_wvegas_alpha(const struct plait_path *paths, int n, u32 total)
{
	struct plait_num weight = plait_div(plait_rate(&paths[0]), plait_rate_sum(paths, n));
	u64 alpha = plait_fixed(plait_mul(weight, plait_num(total, 0)), 16);

	return alpha ? alpha : 1;
}

/* cwnd * base / (2 * rtt), segments: the window that drains the queues (same draft). */
static inline u32 plait_wvegas_drained(u32 cwnd, u32 rtt_us, u32 base_us)
{
	return plait_fixed(plait_div(plait_mul(plait_num(cwnd, 0), plait_num(base_us, 0)),
				     plait_num(rtt_us, 1)), 0);
}

#endif
