/* Runs one scheduler as a program of the host: reads the states of a connection's subflows, prints what it chooses.
 *
 * BPF_SOURCE is the program for kernels with the struct_ops mptcp_sched_ops, MODULE_SOURCE the module of plait's kernel.
 * Both are the module's source. What differs is the header between it and the kernel, and what that header calls.
 *
 *   join ID      leave ID
 *   state ID CWND OUT SACKED LOST RESENT UNSENT MSS SRTT MDEV TIMEOUTS ASSIGNED BACKUP ACTIVE STALES MEMORY
 *   send WRITE_SEQ SND_NXT SND_UNA WND_END FIN CLOCK_US      resend
 *
 * It prints what the callback returns, the burst, the state of the connection, and the subflows that it marked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef BPF_SOURCE
#include BPF_SOURCE
#define CONCAT(a, b) CONCAT_(a, b)
#define CONCAT_(a, b) a##b
#define host_scheduler (&CONCAT(plait_, SCHEDULER))
#define host_ready() ((void)0)
#define host_state() ((u64 *)host_storage)
#else
#include "kernel_host.h"
#include MODULE_SOURCE
#define host_ready() ((void)host_register())
#define host_state() (connection.sched_priv)
#endif

#define SUBFLOWS 9
#define STATE 4	/* words of a scheduler's state of a connection, first in its storage */
#define FIELDS 15

struct host_subflow {
	struct mptcp_subflow_context context;	/* first, so that one address is both */
	struct tcp_sock tcp;
	bool active, memory, marked;
};

static struct host_subflow subflows[SUBFLOWS];	/* in the order in which they joined */
static struct mptcp_sock connection;
static unsigned int joined;
static u64 clock_us;

static struct host_subflow *host_subflow(const struct mptcp_subflow_context *context)
{
	return (struct host_subflow *)context;
}

bool mptcp_subflow_active(struct mptcp_subflow_context *context)
{
	return host_subflow(context)->active;
}

void mptcp_subflow_set_scheduled(struct mptcp_subflow_context *context, bool scheduled)
{
	host_subflow(context)->marked = scheduled;
}

void mptcp_set_timeout(struct sock *sk)
{
	(void)sk;
}

static bool host_memory_free(const struct sock *sk)
{
	for (unsigned int i = 0; i < joined; i++)
		if ((const struct sock *)&subflows[i].tcp == sk)
			return subflows[i].memory;
	abort();
}

/* A timeout of the connection passed without an answer on a busy subflow. */
static void host_check(struct mptcp_subflow_context *context)
{
	if (context->stale_count < 255)
		context->stale_count++;
}

#ifdef BPF_SOURCE
void mptcp_pm_subflow_chk_stale(const struct mptcp_sock *msk, struct sock *ssk)
{
	(void)msk;
	for (unsigned int i = 0; i < joined; i++)
		if ((struct sock *)&subflows[i].tcp == ssk)
			host_check(&subflows[i].context);
}

int bpf_iter_mptcp_subflow_new(struct bpf_iter_mptcp_subflow *it, struct sock *sk)
{
	it->opaque[0] = 0;
	return sk == (struct sock *)&connection ? 0 : -EINVAL;
}

struct mptcp_subflow_context *bpf_iter_mptcp_subflow_next(struct bpf_iter_mptcp_subflow *it)
{
	return it->opaque[0] < joined ? &subflows[it->opaque[0]++].context : NULL;
}

void bpf_iter_mptcp_subflow_destroy(struct bpf_iter_mptcp_subflow *it)
{
	(void)it;
}

struct sock *bpf_mptcp_subflow_tcp_sock(const struct mptcp_subflow_context *context)
{
	return (struct sock *)&host_subflow(context)->tcp;
}

bool bpf_sk_stream_memory_free(const struct sock *sk)
{
	return host_memory_free(sk);
}

static u64 bpf_ktime_get_ns(void)
{
	return clock_us * 1000;
}
#else
struct mptcp_subflow_context *host_next_subflow(unsigned int *number)
{
	return *number < joined ? &subflows[(*number)++].context : NULL;
}

struct sock *mptcp_subflow_tcp_sock(const struct mptcp_subflow_context *context)
{
	return (struct sock *)&host_subflow(context)->tcp;
}

bool sk_stream_memory_free(const struct sock *sk)
{
	return host_memory_free(sk);
}

u64 mptcp_stamp(void)
{
	return clock_us;
}

/* The core's rule: an idle subflow; failing that an idle backup, if none that is busy has answered lately. It also
 * counts for how many timeouts a busy one has not.
 */
struct sock *mptcp_subflow_get_retrans(struct mptcp_sock *msk)
{
	struct sock *idle[2] = { NULL, NULL };
	bool progress = false;

	(void)msk;
	for (unsigned int i = 0; i < joined; i++) {
		const struct tcp_sock *tp = &subflows[i].tcp;
		bool backup = plait_is_backup(&subflows[i].context);

		if (!subflows[i].active)
			continue;
		if (tp->packets_out || tp->write_seq != tp->snd_nxt) {
			host_check(&subflows[i].context);
			progress |= subflows[i].context.stale_count < 2;
		} else if (!idle[backup])
			idle[backup] = (struct sock *)tp;
	}
	return idle[0] || progress ? idle[0] : idle[1];
}
#endif

static struct host_subflow *find(unsigned int id)
{
	for (unsigned int i = 0; i < joined; i++)
		if (subflows[i].context.subflow_id == id)
			return &subflows[i];
	exit(3);
}

static void join(unsigned int id)
{
	struct host_subflow *subflow = &subflows[joined++];

	memset(subflow, 0, sizeof(*subflow));
	subflow->context.subflow_id = id;
	inet_csk(&subflow->tcp)->icsk_ulp_data = &subflow->context;
}

static void leave(unsigned int id)
{
	struct host_subflow *subflow = find(id), *last = &subflows[--joined];

	memmove(subflow, subflow + 1, (char *)last - (char *)subflow);
	for (unsigned int i = 0; i < joined; i++)
		inet_csk(&subflows[i].tcp)->icsk_ulp_data = &subflows[i].context;
}

static void state(struct host_subflow *subflow, const unsigned int *field)
{
	struct mptcp_subflow_context *context = &subflow->context;
	struct tcp_sock *tp = &subflow->tcp;

	tp->snd_cwnd = field[0];
	tp->packets_out = field[1];
	tp->sacked_out = field[2];
	tp->lost_out = field[3];
	tp->retrans_out = field[4];
	tp->snd_nxt = ~0U - 20000;
	tp->write_seq = tp->snd_nxt + field[5];
	tp->mss_cache = field[6];
	tp->srtt_us = field[7];
	tp->mdev_us = field[8];
	inet_csk(tp)->icsk_retransmits = field[9];
	context->rel_write_seq = field[10];
	context->backup = field[11] & 1;
	context->request_bkup = field[11] >> 1;
	subflow->active = field[12];
	context->stale_count = field[13];
	subflow->memory = field[14];
}

static void print(int result)
{
	u64 none[STATE] = { 0 }, *words = host_state() ? host_state() : none;

	printf("%d %d", result, connection.snd_burst);
	for (int i = 0; i < STATE; i++)
		printf("%c%llx", i ? ',' : ' ', (unsigned long long)words[i]);
	for (unsigned int i = 0; i < joined; i++) {
		if (subflows[i].marked)
			printf(" %u", subflows[i].context.subflow_id);
		subflows[i].marked = false;
	}
	printf("\n");
}

int main(void)
{
	unsigned int id, fin, field[FIELDS];
	unsigned long long s[5];
	char event[8];

	host_ready();
	while (scanf("%7s", event) == 1) {
		if (!strcmp(event, "resend")) {
			print(host_scheduler->get_retrans(&connection));
			continue;
		}
		if (!strcmp(event, "send")) {
			if (scanf("%llu %llu %llu %llu %u %llu", s, s + 1, s + 2, s + 3, &fin, s + 4) != 6)
				return 2;
			connection.write_seq = s[0];
			connection.snd_nxt = s[1];
			connection.snd_una = s[2];
			connection.wnd_end = s[3];
			connection.snd_data_fin_enable = fin;
			clock_us = s[4];
			print(host_scheduler->get_send(&connection));
			continue;
		}
		if (scanf("%u", &id) != 1)
			return 2;
		if (!strcmp(event, "join")) {
			join(id);
		} else if (!strcmp(event, "leave")) {
			leave(id);
		} else {
			for (int i = 0; i < FIELDS; i++)
				if (scanf("%u", &field[i]) != 1)
					return 2;
			state(find(id), field);
		}
	}
	return !feof(stdin);
}
