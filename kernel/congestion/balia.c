// SPDX-License-Identifier: GPL-2.0
/* BALIA, the Balanced Linked Adaptation algorithm: draft-walid-mptcp-congestion-control-04; Peng, Walid, Hwang, Low,
 * "Multipath TCP: analysis, design, and implementation", IEEE/ACM ToN 24(1), 2016.
 *
 * Model: a compromise, derived from a general fluid model, between friendliness to TCP (more coupling) and
 * responsiveness (less). Windows w in bytes, round-trip times r, x = w / r, alpha_r = max x_p / x_r.
 *
 *   for each ACK on path r (draft, section 3):
 *     w_r += acked * mss_r * x_r / (r_r * (sum x_p)^2) * (1 + alpha_r) / 2 * (4 + alpha_r) / 5
 *   for each loss on path r:
 *     w_r -= w_r / 2 * min(alpha_r, 1.5)
 *
 *   slow start and recovery are TCP's; the least ssthresh is 1 segment when there are several paths.
 *
 * One subflow: alpha = 1, both rules are Reno's, and Reno's own code is called.
 *
 * Arithmetic: plait_balia_increase() and plait_balia_reduced() in plait_rules.h; relative error below 2^-24,
 * truncated to 2^-32 segment; the reduced window is rounded down to a whole segment, as Reno's is.
 *
 * Locking: every hook runs under the subflow's socket lock (plait_coupled.h).
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "plait_coupled.h"

static void balia_init(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct plait_coupled) > ICSK_CA_PRIV_SIZE);
	plait_coupled_init(sk);
}

static void balia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct plait_path paths[PLAIT_PATHS];
	int n;

	acked = plait_coupled_slow_start(sk, acked);
	if (!acked)
		return;
	n = plait_coupled_snapshot(sk, paths);
	if (n < 2)
		tcp_cong_avoid_ai(tcp_sk(sk), tcp_snd_cwnd(tcp_sk(sk)), acked);
	else
		plait_coupled_grow(sk, plait_balia_increase(paths, n), acked);
}

static u32 balia_ssthresh(struct sock *sk)
{
	struct plait_path paths[PLAIT_PATHS];
	int n = plait_coupled_snapshot(sk, paths);

	if (n < 2)
		return tcp_reno_ssthresh(sk);
	paths[0].cwnd = tcp_snd_cwnd(tcp_sk(sk));
	return max(plait_balia_reduced(paths, n), 1U);
}

static struct tcp_congestion_ops balia __read_mostly = {
	.init		= balia_init,
	.release	= plait_coupled_release,
	.ssthresh	= balia_ssthresh,
	.cong_avoid	= balia_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.set_state	= plait_coupled_set_state,
	.pkts_acked	= plait_coupled_pkts_acked,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "balia",
};

static int __init balia_register(void)
{
	return tcp_register_congestion_control(&balia);
}

static void __exit balia_unregister(void)
{
	tcp_unregister_congestion_control(&balia);
}

module_init(balia_register);
module_exit(balia_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP Balanced Linked Adaptation congestion control");
