/* What the modules of kernel/ need of the kernel, for a program of the host: one processor, one algorithm, no locks. */
#ifndef KERNEL_HOST_H
#define KERNEL_HOST_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#define U32_MAX ((u32)~0U)
#define S64_MAX INT64_MAX
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min3(a, b, c) min(min(a, b), c)
#define min_t(type, a, b) min((type)(a), (type)(b))
#define clamp(value, low, high) min(max(value, low), high)
#define clamp_t(type, value, low, high) clamp((type)(value), (type)(low), (type)(high))
#define after(a, b) ((s32)((b) - (a)) < 0)
#define after64(a, b) ((int64_t)((b) - (a)) < 0)
#define DIV_ROUND_UP(dividend, divisor) (((dividend) + (divisor) - 1) / (divisor))
#define DIV_ROUND_UP_ULL DIV_ROUND_UP
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(7, 3, 0)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define READ_ONCE(value) (value)
#define WRITE_ONCE(place, value) ((place) = (value))
#define EXPORT_SYMBOL_GPL(name) _Static_assert(1, #name)
#define MODULE_LICENSE(text) _Static_assert(1, text)
#define MODULE_DESCRIPTION(text) _Static_assert(1, text)
#define THIS_MODULE NULL
#define __read_mostly
#define __init
#define __exit __attribute__((unused))
#define module_init(function) static int (*const host_register)(void) = function
#define module_exit(function) _Static_assert(1, #function)
#define DEFINE_SPINLOCK(name) int name
#define spin_lock_bh(lock) (++*(lock))
#define spin_unlock_bh(lock) (--*(lock))
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define sock_owned_by_me(sk) ((void)(sk))
#define abs(value) ({ typeof(value) _value = (value); _value < 0 ? -_value : _value; })
#define GFP_ATOMIC 0
#define kzalloc(size, flags) calloc(1, size)
#define kfree free
#define kfree_rcu(object, member) free(object)

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline u32 hash_32(u32 value, unsigned int bits)
{
	return value * 0x61C88647 >> (32 - bits);
}

struct rcu_head {
	int unused;
};

struct hlist_head {
	struct hlist_node *first;
};

struct hlist_node {
	struct hlist_node *next, **before;
};

struct list_head {
	struct list_head *next, *prev;
};

#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define entry_or_null(node, type, member) ({ typeof(node) _node = (node); _node ? container_of(_node, type, member) : NULL; })
#define hlist_for_each_entry(entry, head, member)					\
	for (entry = entry_or_null((head)->first, typeof(*entry), member); entry;	\
	     entry = entry_or_null(entry->member.next, typeof(*entry), member))
#define list_for_each_entry_rcu(entry, head, member)					\
	for (entry = container_of((head)->next, typeof(*entry), member); &entry->member != (head);	\
	     entry = container_of(entry->member.next, typeof(*entry), member))

static inline void hlist_add_head(struct hlist_node *node, struct hlist_head *head)
{
	*node = (struct hlist_node){ head->first, &head->first };
	if (node->next)
		node->next->before = &node->next;
	head->first = node;
}

static inline void hlist_del(struct hlist_node *node)
{
	*node->before = node->next;
	if (node->next)
		node->next->before = node->before;
}

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head->prev = head;
}

static inline void list_add_tail_rcu(struct list_head *node, struct list_head *head)
{
	*node = (struct list_head){ head, head->prev };
	head->prev->next = node;
	head->prev = node;
}

static inline void list_del_rcu(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

/* A socket is the first member of each of these, as in the kernel, and all of them are one object here. */
struct sock {
	int sk_sndbuf, sk_userlocks;
};

struct net {
	struct {
		int sysctl_tcp_wmem[3];
	} ipv4;
};

struct inet_connection_sock {
	struct sock sk;
	const struct tcp_congestion_ops *icsk_ca_ops;
	void *icsk_ulp_data;
	u32 icsk_rto;
	u8 icsk_retransmits;
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, snd_nxt, prior_cwnd;
	u32 write_seq, packets_out, sacked_out, lost_out, retrans_out;
	u32 mss_cache, srtt_us, mdev_us, max_packets_out;
	u64 tcp_mstamp, bytes_acked, bytes_sent;
	struct {
		u32 rtt_us;
	} rack;
	u8 is_cwnd_limited : 1;
	bool is_mptcp;
};

struct mptcp_subflow_context {
	u32 token, rel_write_seq, subflow_id, sched_mss;
	u32 backup : 1, request_bkup : 1;
	u8 stale_count;
	u64 sched_priv[4];
	struct sock *conn;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct tcp_congestion_ops {
	u32 flags;
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
	void *owner;
};

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
#define TCP_CONG_NON_RESTRICTED 1
#define ICSK_CA_PRIV_SIZE 104

static const struct tcp_congestion_ops *host_operations;

static inline int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	host_operations = ops;
	return 0;
}

#define tcp_unregister_congestion_control(ops) ((void)(ops))
#define tcp_sk(sk) ((struct tcp_sock *)(sk))
#define inet_csk(sk) ((struct inet_connection_sock *)(sk))
#define inet_csk_ca(sk) ((void *)inet_csk(sk)->icsk_ca_priv)
#define mptcp_subflow_ctx(sk) ((struct mptcp_subflow_context *)inet_csk(sk)->icsk_ulp_data)
#define sk_is_mptcp(sk) (tcp_sk(sk)->is_mptcp)
#define sock_net(sk) ((const struct net *)((void)(sk), NULL))
#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#define tcp_snd_cwnd_set(tp, value) ((tp)->snd_cwnd = (value))
#define tcp_in_slow_start(tp) (tcp_snd_cwnd(tp) < (tp)->snd_ssthresh)
#define jiffies_to_usecs(jiffies) ((jiffies) * HOST_JIFFY_US)

static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->is_cwnd_limited)
		return true;
	return tcp_in_slow_start(tp) && tcp_snd_cwnd(tp) < 2 * tp->max_packets_out;
}

static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	return (1 << TCP_CA_CWR | 1 << TCP_CA_Recovery) & 1 << inet_csk(sk)->icsk_ca_state;
}

/* What schedulers need. */
struct mptcp_sock {
	struct sock sk;
	u64 write_seq, snd_nxt, snd_una, wnd_end;
	int snd_burst;
	bool snd_data_fin_enable;
	struct {
		int subflows;
	} pm;
	u64 sched_priv[8];
};

struct mptcp_sched_ops {
	int (*get_send)(struct mptcp_sock *msk);
	int (*get_retrans)(struct mptcp_sock *msk);
	char name[16];
	u32 flags;
	void *owner;
};

static const struct mptcp_sched_ops *host_scheduler;

static inline int mptcp_register_scheduler(struct mptcp_sched_ops *ops)
{
	host_scheduler = ops;
	return 0;
}

#define mptcp_unregister_scheduler(ops) ((void)(ops))
#define synchronize_rcu() ((void)0)
#define msk_owned_by_me(msk) ((void)(msk))
#define MPTCP_SCHED_BOUNDED 1
#define SOCK_SNDBUF_LOCK 1
#define tcp_min_rtt(tp) ((tp)->rack.rtt_us)
#define tcp_packets_in_flight(tp) ((tp)->packets_out - ((tp)->sacked_out + (tp)->lost_out) + (tp)->retrans_out)
#define mptcp_for_each_subflow(msk, subflow)						\
	for (unsigned int _n = 0; ((void)(msk), (subflow) = host_next_subflow(&_n));)

struct mptcp_subflow_context *host_next_subflow(unsigned int *number);
struct sock *mptcp_subflow_tcp_sock(const struct mptcp_subflow_context *subflow);
struct sock *mptcp_subflow_get_retrans(struct mptcp_sock *msk);
bool mptcp_subflow_active(struct mptcp_subflow_context *subflow);
bool sk_stream_memory_free(const struct sock *sk);
void mptcp_subflow_set_scheduled(struct mptcp_subflow_context *subflow, bool scheduled);
void mptcp_set_timeout(struct sock *sk);
u64 mptcp_stamp(void);

u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);

#endif
