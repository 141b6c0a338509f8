// SPDX-License-Identifier: GPL-2.0
/* OLIA, the Opportunistic Linked Increases Algorithm: draft-khalili-mptcp-congestion-control-05; Khalili, Gast,
 * Popovic, Le Boudec, "MPTCP is not Pareto-optimal", CoNEXT 2012 and IEEE/ACM ToN 21(5), 2013.
 *
 * Model: the first term of the increase balances congestion optimally (Kelly and Voice); the second, alpha, makes
 * it responsive: windows move from paths with the largest windows to the presumably best ones that do not have them
 * yet. Windows w in bytes, round-trip times r, n paths.
 *
 *   for each ACK on path r (draft section 3, equations 2 to 4):
 *     w_r += acked * mss_r * ( (w_r / r_r^2) / (sum w_p / r_p)^2 + alpha_r / w_r )
 *
 *   l_r       = max(bytes acknowledged between the last two losses, bytes acknowledged since the last loss)
 *   best      = paths of the largest l_p / r_p^2
 *   largest   = paths of the largest w_p
 *   collected = best without largest
 *   alpha_r   = +1 / (n * |collected|)  for r in collected
 *             = -1 / (n * |largest|)    for r in largest when collected is not empty
 *             =  0                      otherwise
 *
 *   the decrease is TCP's, with a least ssthresh of 1 segment in place of 2 when there are several paths (draft,
 *   section 3): a path that is not wanted may shrink to a probe.
 *
 * A choice: the draft's text ranks the best paths by l^2 / r, the paper by l / r^2. A Reno flow that loses once per
 * l bytes reaches a rate in proportion to sqrt(l) / r, whose square is l / r^2; l^2 / r orders paths of different r
 * otherwise than their rates do. The paper's ranking is used (docs/decisions/0010-coupling.md).
 *
 * One subflow: (w / r^2) / (w / r)^2 = 1 / w is Reno's rule, and Reno's own code is called.
 *
 * Arithmetic: plait_olia_increase() in plait_rules.h; each term's relative error is below 2^-24, truncated to 2^-32
 * segment.
 *
 * Locking: every hook runs under the subflow's socket lock (plait_coupled.h).
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "plait_coupled.h"

static void olia_init(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct plait_coupled) > ICSK_CA_PRIV_SIZE);
	plait_coupled_init(sk);
}

static void olia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
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
		plait_coupled_grow(sk, plait_olia_increase(paths, n), acked);
}

/* A loss ends an interval of l_r. */
static u32 olia_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct plait_slot *slot = plait_slot(sk);
	struct plait_path paths[PLAIT_PATHS];
	int n = plait_coupled_snapshot(sk, paths);

	if (slot) {
		slot->last_interval = tp->bytes_acked - slot->loss_mark;
		slot->loss_mark = tp->bytes_acked;
	}
	return n < 2 ? tcp_reno_ssthresh(sk) : max(tcp_snd_cwnd(tp) >> 1, 1U);
}

static struct tcp_congestion_ops olia __read_mostly = {
	.init		= olia_init,
	.release	= plait_coupled_release,
	.ssthresh	= olia_ssthresh,
	.cong_avoid	= olia_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.set_state	= plait_coupled_set_state,
	.pkts_acked	= plait_coupled_pkts_acked,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "olia",
};

static int __init olia_register(void)
{
	return tcp_register_congestion_control(&olia);
}

static void __exit olia_unregister(void)
{
	tcp_unregister_congestion_control(&olia);
}

module_init(olia_register);
module_exit(olia_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP Opportunistic Linked Increases congestion control");
