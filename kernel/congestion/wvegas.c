// SPDX-License-Identifier: GPL-2.0
/* wVegas, weighted Vegas: draft-xu-mptcp-congestion-control-05; Cao, Xu, Fu, "Delay-based congestion control for
 * multipath TCP", ICNP 2012.
 *
 * Model: each subflow keeps a few segments queued in its path, as Vegas does. The connection may queue total_alpha
 * segments in all, divided in proportion to the rates x_r = w_r / r_r, so that at equilibrium every path has the same
 * queueing delay ("price"), and traffic moves away from congested paths without waiting for losses.
 *
 *   once per round-trip time, on path r (draft, section 3):
 *     diff_r = (w_r / base_r - w_r / r_r) * base_r          segments that wait in queues
 *     slow start:  leave it when diff_r > gamma
 *     else:        when diff_r >= alpha_r:  alpha_r = total_alpha * x_r / sum x_p
 *                  w_r += 1 when diff_r < alpha_r, w_r -= 1 when diff_r > alpha_r
 *     queues are drained when the queueing delay q_r = r_r - base_r reaches twice the least seen:
 *                  w_r = w_r * base_r / (2 * r_r)
 *   base_r is the least round-trip time ever seen, r_r the least of this round. total_alpha = 10, gamma = 1.
 *
 * Choices where the draft leaves room: alpha_r starts at total_alpha; draining is considered only while diff_r >=
 * alpha_r, because the least queueing delay of a nearly empty queue is a few microseconds, of which twice is noise;
 * a window never falls below 2 segments; ssthresh follows a falling window, which would be in slow start otherwise;
 * rounds with fewer than 3 samples of the round-trip time, and all but the Open state, grow as Reno does (as in
 * Vegas); losses halve the window as Reno does.
 *
 * One subflow: x_r / sum x_p = 1, and nothing is drained: Vegas with alpha = beta = total_alpha.
 *
 * Arithmetic: plait_vegas_backlog(), plait_wvegas_alpha() and plait_wvegas_drained() in plait_rules.h; Q16 segments,
 * relative error below 2^-24.
 *
 * Locking: every hook runs under the subflow's socket lock (plait_coupled.h).
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "plait_coupled.h"

#define WVEGAS_TOTAL_ALPHA	10
#define WVEGAS_GAMMA		1
#define WVEGAS_MIN_SAMPLES	3
#define WVEGAS_MIN_CWND		2U

struct wvegas {
	struct plait_coupled coupled;
	u64 alpha;		/* Q16 segments */
	u32 round_end;		/* snd_nxt when the round began: its ACK ends the round */
	u32 base_us;		/* least round-trip time ever, U32_MAX before the first sample */
	u32 round_us;		/* least round-trip time of this round */
	u32 samples;		/* of this round */
	u32 queue_us;		/* least queueing delay since the queues were last drained, 0: none yet */
};

static void wvegas_start_round(struct sock *sk)
{
	struct wvegas *wv = inet_csk_ca(sk);

	wv->round_end = tcp_sk(sk)->snd_nxt;
	wv->round_us = U32_MAX;
	wv->samples = 0;
}

static void wvegas_init(struct sock *sk)
{
	struct wvegas *wv = inet_csk_ca(sk);

	BUILD_BUG_ON(sizeof(struct wvegas) > ICSK_CA_PRIV_SIZE);
	plait_coupled_init(sk);
	wv->alpha = (u64)WVEGAS_TOTAL_ALPHA << 16;
	wv->base_us = U32_MAX;
	wv->queue_us = 0;
	wvegas_start_round(sk);
}

static void wvegas_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct wvegas *wv = inet_csk_ca(sk);

	plait_coupled_publish(sk);
	if (sample->rtt_us <= 0)
		return;
	wv->base_us = min_t(u32, wv->base_us, sample->rtt_us);
	wv->round_us = min_t(u32, wv->round_us, sample->rtt_us);
	wv->samples++;
}

static void wvegas_set_state(struct sock *sk, u8 state)
{
	plait_coupled_publish(sk);
	if (state == TCP_CA_Open)
		wvegas_start_round(sk);
}

/* The path's queue has filled beyond its share for long enough that even the least delay has doubled. */
static bool wvegas_must_drain(struct wvegas *wv)
{
	u32 queue_us = wv->round_us - wv->base_us;

	if (!wv->queue_us || queue_us < wv->queue_us)
		wv->queue_us = queue_us;
	return queue_us && queue_us >= 2 * wv->queue_us;
}

static void wvegas_avoid(struct sock *sk, u64 diff)
{
	struct wvegas *wv = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct plait_path paths[PLAIT_PATHS];
	u32 cwnd = tcp_snd_cwnd(tp);
	int n;

	if (diff >= wv->alpha) {
		n = plait_coupled_snapshot(sk, paths);
		wv->alpha = n ? plait_wvegas_alpha(paths, n, WVEGAS_TOTAL_ALPHA) : (u64)WVEGAS_TOTAL_ALPHA << 16;
		if (n > 1 && wvegas_must_drain(wv)) {
			wv->queue_us = 0;
			cwnd = plait_wvegas_drained(cwnd, wv->round_us, wv->base_us);
			goto out;
		}
	}
	if (diff > wv->alpha)
		cwnd--;
	else if (diff < wv->alpha && tcp_is_cwnd_limited(sk))
		cwnd++;
out:
	cwnd = clamp(cwnd, WVEGAS_MIN_CWND, max(tp->snd_cwnd_clamp, WVEGAS_MIN_CWND));
	tcp_snd_cwnd_set(tp, cwnd);
	/* a window below ssthresh would be in slow start again */
	tp->snd_ssthresh = min(tp->snd_ssthresh, max(cwnd - 1, WVEGAS_MIN_CWND));
}

static void wvegas_leave_slow_start(struct sock *sk)
{
	struct wvegas *wv = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 target = div_u64((u64)tcp_snd_cwnd(tp) * wv->base_us, wv->round_us);

	tcp_snd_cwnd_set(tp, max(min(tcp_snd_cwnd(tp), target + 1), WVEGAS_MIN_CWND));
	tp->snd_ssthresh = max(min(tp->snd_ssthresh, tcp_snd_cwnd(tp) - 1), WVEGAS_MIN_CWND);
}

static void wvegas_end_round(struct sock *sk, u32 ack, u32 acked)
{
	struct wvegas *wv = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 diff;

	if (wv->samples < WVEGAS_MIN_SAMPLES) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	diff = plait_vegas_backlog(tcp_snd_cwnd(tp), wv->round_us, wv->base_us);
	if (!tcp_in_slow_start(tp))
		wvegas_avoid(sk, diff);
	else if (diff > (u64)WVEGAS_GAMMA << 16)
		wvegas_leave_slow_start(sk);
	else if (tcp_is_cwnd_limited(sk))
		tcp_slow_start(tp, acked);
}

static void wvegas_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	const struct wvegas *wv = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	plait_coupled_publish(sk);
	if (inet_csk(sk)->icsk_ca_state != TCP_CA_Open) {
		tcp_reno_cong_avoid(sk, ack, acked);
	} else if (after(ack, wv->round_end)) {
		wvegas_end_round(sk, ack, acked);
		wvegas_start_round(sk);
	} else if (tcp_in_slow_start(tp) && tcp_is_cwnd_limited(sk)) {
		tcp_slow_start(tp, acked);
	}
}

static struct tcp_congestion_ops wvegas __read_mostly = {
	.init		= wvegas_init,
	.release	= plait_coupled_release,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= wvegas_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.set_state	= wvegas_set_state,
	.pkts_acked	= wvegas_pkts_acked,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "wvegas",
};

static int __init wvegas_register(void)
{
	return tcp_register_congestion_control(&wvegas);
}

static void __exit wvegas_unregister(void)
{
	tcp_unregister_congestion_control(&wvegas);
}

module_init(wvegas_register);
module_exit(wvegas_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP weighted Vegas congestion control");
