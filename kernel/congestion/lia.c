// SPDX-License-Identifier: GPL-2.0
/* LIA, the Linked Increases Algorithm: RFC 6356.
 *
 * Model: the subflows of a connection grow together no faster than one TCP flow on the best of their paths, and
 * each no faster than a TCP flow on its own path; each halves alone. Windows w in bytes, round-trip times r.
 *
 *   for each ACK on subflow i (section 3, equation 1):
 *     w_i += min(alpha * acked * mss_i / w_total, acked * mss_i / w_i)
 *   with (section 3, equation 2)
 *     alpha = w_total * max(w_p / r_p^2) / (sum w_p / r_p)^2
 *
 *   slow start, fast retransmit, recovery and the decrease are TCP's (section 3); while a subflow is in fast
 *   recovery its ssthresh stands for its window (section 3, last paragraph).
 *
 * One subflow: alpha = 1, the rule is Reno's, and Reno's own code is called, so the two are the same to the segment.
 *
 * Arithmetic: plait_lia_increase() in plait_rules.h; relative error below 2^-24, truncated to 2^-32 segment. Section
 * 4.1 of the RFC suggests computing alpha once per window; here it is computed for each ACK, which has no such lag.
 *
 * Locking: every hook runs under the subflow's socket lock (plait_coupled.h).
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "plait_coupled.h"

static void lia_init(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct plait_coupled) > ICSK_CA_PRIV_SIZE);
	plait_coupled_init(sk);
}

static void lia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
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
		plait_coupled_grow(sk, plait_lia_increase(paths, n), acked);
}

static struct tcp_congestion_ops lia __read_mostly = {
	.init		= lia_init,
	.release	= plait_coupled_release,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= lia_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.set_state	= plait_coupled_set_state,
	.pkts_acked	= plait_coupled_pkts_acked,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "lia",
};

static int __init lia_register(void)
{
	return tcp_register_congestion_control(&lia);
}

static void __exit lia_unregister(void)
{
	tcp_unregister_congestion_control(&lia);
}

module_init(lia_register);
module_exit(lia_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP Linked Increases congestion control (RFC 6356)");
