// SPDX-License-Identifier: GPL-2.0
/* cap: each path carries about 1/n + e of a connection's bytes, by its window. For kernels without the scheduler capped.
 *
 * Model: n paths carry data, and path p delivers d_p bytes a second. Path r keeps to the share s = 1/n + e while
 *
 *     d_r <= s / (1 - s) * (sum of d_p for p other than r)
 *
 * so its window is at most that rate times its round-trip time, plus one segment, without which two equal paths with
 * e = 0 could not grow. Below the bound the window is Reno's. A path on its own has no bound.
 *
 * It is a bound on rates, a measuring interval late, and not a promise as that of the scheduler: a path whose sibling
 * slows down exceeds its share until both have measured. A sibling that falls silent counts no more after three
 * retransmission timeouts (plait_coupled.h); until then its last rate counts.
 *
 * d_p: the bytes acknowledged in the last interval of CAP_INTERVAL_US or more. The slot publishes it in `interloss`, as
 * its own fields say: loss_mark is bytes_acked at the interval's start, credit the start's time, last_interval the rate.
 *
 * Locking: every hook runs under the subflow's socket lock (plait_coupled.h).
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "plait_coupled.h"

#ifndef CAP_EXTRA
#define CAP_EXTRA	50	/* e in 1/1000 */
#endif
#define CAP_INTERVAL_US	200000
#define CAP_MOST	(1ULL << 33)	/* bytes a second: what follows stays within 64 bits */

static void cap_init(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct plait_coupled) > ICSK_CA_PRIV_SIZE);
	plait_coupled_init(sk);
}

/* Measures what this path delivers, at the end of an interval. */
static void cap_measure(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct plait_slot *slot = plait_slot(sk);
	u64 elapsed;

	if (!slot)
		return;
	elapsed = tp->tcp_mstamp - slot->credit;
	if (slot->credit && elapsed < CAP_INTERVAL_US)
		return;
	if (slot->credit)
		slot->last_interval = div_u64((tp->bytes_acked - slot->loss_mark) * 1000,
					      (u32)min_t(u64, elapsed, U32_MAX) / 1000);
	slot->loss_mark = tp->bytes_acked;
	slot->credit = tp->tcp_mstamp;
}

/* The largest window, in segments; U32_MAX: this path is on its own, or no sibling has measured yet. */
static u32 cap_bound(struct sock *sk)
{
	struct plait_path paths[PLAIT_PATHS];
	int i, n = plait_coupled_snapshot(sk, paths);
	u64 bytes = 0;
	u32 share;

	if (n < 2)
		return U32_MAX;
	for (i = 1; i < n; i++)
		bytes += min_t(u64, paths[i].interloss, CAP_MOST);
	share = 1000 / (u32)n + CAP_EXTRA;
	if (!bytes || share >= 1000)
		return U32_MAX;
	bytes = div_u64(min_t(u64, bytes, CAP_MOST) * share, 1000 - share);
	bytes = div_u64(bytes * min_t(u32, paths[0].srtt_us / 1000 + 1, 60000), 1000);
	return min_t(u64, div_u64(bytes, paths[0].mss) + 1, U32_MAX);
}

static void cap_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 bound;

	cap_measure(sk);
	acked = plait_coupled_slow_start(sk, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
	bound = max(cap_bound(sk), 2U);
	if (tcp_snd_cwnd(tp) > bound)
		tcp_snd_cwnd_set(tp, bound);
}

static void cap_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	cap_measure(sk);
	plait_coupled_pkts_acked(sk, sample);
}

static struct tcp_congestion_ops cap __read_mostly = {
	.init		= cap_init,
	.release	= plait_coupled_release,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= cap_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.set_state	= plait_coupled_set_state,
	.pkts_acked	= cap_pkts_acked,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "cap",
};

static int __init cap_register(void)
{
	return tcp_register_congestion_control(&cap);
}

static void __exit cap_unregister(void)
{
	tcp_unregister_congestion_control(&cap);
}

module_init(cap_register);
module_exit(cap_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A bound on the share that each MPTCP subflow carries");
