/* Runs one coupled congestion control as a program of the host: reads events of sockets, prints the windows.
 *
 * BPF_SOURCE is the program for stock kernels, or MODULE_SOURCE the module of plait's kernel. The events do what TCP
 * does around the hooks (net/ipv4/tcp_input.c, tcp_timer.c, tcp_cong.c), in its order.
 *
 *   open SOCKET CONNECTION MSS       ack SOCKET SEGMENTS RTT_US LIMITED
 *   loss SOCKET  recovered SOCKET    timeout SOCKET    undo SOCKET
 *   wait JIFFIES                     close SOCKET      drop SOCKET (the map drops its slot)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_JIFFY_US 4000	/* Debian's kernel has 250 jiffies a second */
#ifdef BPF_SOURCE
#include BPF_SOURCE
#define host_operations (&CONCAT(plait_, ALGORITHM))
#define CONCAT(a, b) CONCAT_(a, b)
#define CONCAT_(a, b) a##b
#define host_ready() ((void)0)
#else
#include "kernel_host.h"
#include "plait_coupled.c"
#include MODULE_SOURCE
#define host_ready() ((void)host_register())
#endif

#define SOCKETS 16

static struct {
	struct tcp_sock tcp;		/* a stock kernel's structures have other fields between these */
	struct mptcp_subflow_context subflow;
} sockets[SOCKETS];
static struct sock connections[2];	/* an address serves connections of several tokens, as after a reuse */
static u64 jiffies;
static u32 prior[SOCKETS], counted[SOCKETS];	/* prior_cwnd, snd_cwnd_cnt */

#ifdef BPF_SOURCE
static unsigned long long bpf_jiffies64(void)
{
	return jiffies;
}

static void drop(struct sock *sk)
{
	const struct plait_coupled *ca = inet_csk_ca(sk);

	bpf_map_delete_elem(&plait_slots, &ca->place);
}
#else
#define drop(sk) exit(3)
#endif

static int number_of(const void *tp)
{
	return ((const char *)tp - (const char *)sockets) / sizeof(sockets[0]);
}

u32 tcp_reno_ssthresh(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd >> 1, 2U);
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd, prior[number_of(sk)]);
}

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = min(tp->snd_cwnd + acked, tp->snd_ssthresh);

	acked -= cwnd - tp->snd_cwnd;
	tp->snd_cwnd = min(cwnd, tp->snd_cwnd_clamp);
	return acked;
}

void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	u32 *count = &counted[number_of(tp)];

	if (*count >= w) {
		*count = 0;
		tp->snd_cwnd++;
	}
	*count += acked;
	if (*count >= w) {
		tp->snd_cwnd += *count / w;
		*count %= w;
	}
	tp->snd_cwnd = min(tp->snd_cwnd, tp->snd_cwnd_clamp);
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

static void enter(struct sock *sk, u8 state)
{
	host_operations->set_state(sk, state);
	inet_csk(sk)->icsk_ca_state = state;
}

static void open_socket(int number, int connection, u32 mss)
{
	struct ack_sample syn = { 1, 0, 1 };
	struct tcp_sock *tp = &sockets[number].tcp;

	memset(&sockets[number], 0, sizeof(sockets[number]));
	sockets[number].subflow.token = connection * 7919;
	sockets[number].subflow.conn = &connections[connection % 2];
	tp->is_mptcp = connection != 0;
	inet_csk((struct sock *)tp)->icsk_ulp_data = connection ? &sockets[number].subflow : NULL;
	inet_csk((struct sock *)tp)->icsk_rto = 250;
	tp->snd_cwnd = 10;
	tp->snd_ssthresh = 0x7fffffff;
	tp->snd_cwnd_clamp = ~0U;
	tp->mss_cache = mss;
	tp->tcp_mstamp = jiffies * HOST_JIFFY_US;
	host_operations->pkts_acked((struct sock *)tp, &syn);
	host_operations->init((struct sock *)tp);
}

static void acknowledge(struct sock *sk, u32 acked, s32 rtt_us, int limited)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ack_sample sample = { acked, rtt_us, acked };

	tp->srtt_us = tp->srtt_us ? tp->srtt_us + rtt_us - (tp->srtt_us >> 3) : (u32)rtt_us << 3;
	inet_csk(sk)->icsk_rto = max((tp->srtt_us >> 2) / HOST_JIFFY_US, 50U);
	tp->bytes_acked += (u64)acked * tp->mss_cache;
	tp->snd_nxt += acked * tp->mss_cache;
	tp->max_packets_out = tp->snd_cwnd;
	tp->is_cwnd_limited = limited;
	host_operations->pkts_acked(sk, &sample);
	if (!tcp_in_cwnd_reduction(sk))
		host_operations->cong_avoid(sk, tp->bytes_acked, acked);
}

static void lose(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	prior[number_of(sk)] = tp->snd_cwnd;
	tp->snd_ssthresh = host_operations->ssthresh(sk);
	enter(sk, state);
	if (state == TCP_CA_Loss)
		tp->snd_cwnd = 1;
	counted[number_of(sk)] = 0;
}

int main(void)
{
	char event[16];
	unsigned int number, a, b, c;

	host_ready();
	while (scanf("%15s %u", event, &number) == 2) {
		struct tcp_sock *tp = &sockets[number % SOCKETS].tcp;
		struct sock *sk = (struct sock *)tp;

		tp->tcp_mstamp = jiffies * HOST_JIFFY_US;
		if (!strcmp(event, "wait")) {
			jiffies += number;
			continue;
		}
		if (!strcmp(event, "open") && scanf("%u %u", &a, &b) == 2) {
			open_socket(number, a, b);
		} else if (!strcmp(event, "ack") && scanf("%u %u %u", &a, &b, &c) == 3) {
			acknowledge(sk, a, b, c);
		} else if (!strcmp(event, "loss")) {
			lose(sk, TCP_CA_Recovery);
		} else if (!strcmp(event, "timeout")) {
			lose(sk, TCP_CA_Loss);
		} else if (!strcmp(event, "recovered")) {
			if (tcp_in_cwnd_reduction(sk))
				tp->snd_cwnd = tp->snd_ssthresh;
			enter(sk, TCP_CA_Open);
		} else if (!strcmp(event, "undo")) {
			tp->snd_cwnd = host_operations->undo_cwnd(sk);
			enter(sk, TCP_CA_Open);
		} else if (!strcmp(event, "drop")) {
			drop(sk);
		} else if (!strcmp(event, "close")) {
			host_operations->release(sk);
		} else {
			return 2;
		}
		printf("%u %u\n", tp->snd_cwnd, tp->snd_ssthresh);
	}
#ifdef BPF_SOURCE
	fprintf(stderr, "%lu %lu\n", host_lookups, host_entries());
#endif
	return !feof(stdin);
}
