// SPDX-License-Identifier: GPL-2.0
/*
 * plait_trace: a link that carries bytes at the instants of a recorded trace.
 *
 * A trace is a list of delivery opportunities, as recorded from mobile networks by saturating them (Winstein,
 * Sivaraman, Balakrishnan: "Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks",
 * NSDI 2013) and replayed by mahimahi (Netravali et al., USENIX ATC 2015). The rules are mahimahi's:
 *
 *   - at each opportunity, up to `bytes` bytes of packets leave the queue, at that instant;
 *   - several small packets share one opportunity; a packet larger than what is left of one takes the rest of
 *     it and goes on with the next, and leaves with its last byte;
 *   - what an opportunity has left when the queue is empty is lost: it is not saved for later;
 *   - after `period` the list begins again; without a period the link carries nothing after its end.
 *
 * A packet counts as its network-layer bytes (IP header and what follows), so that an opportunity of 1500 bytes
 * carries exactly one full packet of an MTU of 1500.
 *
 *              enqueue                       opportunity, queue not empty
 *   [idle] --------------> [waiting for an opportunity] ----------------> packets leave
 *      ^                                                                      |
 *      +------------------------- queue empty: rest is lost <-----------------+
 *
 * The queue is the child qdisc's, as with tbf. The list is sent in pieces by `change` before the trace is started,
 * by an absolute time of CLOCK_MONOTONIC; until then the link carries nothing.
 */
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include "plait_trace.h"

#define MAX_TIMES	(16 << 20)

struct trace_sched_data {
	u32	*times;		/* of the opportunities in us from the start, rising */
	u32	count;
	u32	room;		/* entries allocated in `times` */
	u32	bytes;		/* that an opportunity carries */
	u32	period_us;	/* 0: the trace is not repeated */
	s64	start_ns;	/* -1: not started */

	u32	next;		/* index of the next opportunity .. */
	u64	lap;		/* .. in this repetition of the list */
	u32	left;		/* bytes left of the current opportunity */
	u32	owed;		/* bytes of the first packet still to be carried; 0: it has not begun */

	struct plait_trace_xstats stats;
	struct Qdisc	*qdisc;
	struct qdisc_watchdog watchdog;
};

static bool trace_over(const struct trace_sched_data *q)
{
	return q->start_ns < 0 || q->next >= q->count;
}

/* The instant of the next opportunity. */
static u64 trace_instant(const struct trace_sched_data *q)
{
	u64 us = q->lap * q->period_us + q->times[q->next];

	return q->start_ns + us * NSEC_PER_USEC;
}

static void trace_advance(struct trace_sched_data *q)
{
	if (++q->next == q->count && q->period_us) {
		q->next = 0;
		q->lap++;
	}
}

/* Passes the opportunities before `now`, which nothing was there to use. */
static void trace_skip(struct trace_sched_data *q, u64 now)
{
	u64 lap = q->lap, us;
	u32 low, high, rest;

	if (trace_over(q) || trace_instant(q) >= now)
		return;
	us = div_u64(now - q->start_ns + NSEC_PER_USEC - 1, NSEC_PER_USEC);
	if (q->period_us) {
		/* the last opportunity of a lap may lie at the very start of the next */
		lap = us ? div_u64_rem(us - 1, q->period_us, &rest) : 0;
		us -= lap * q->period_us;
	}
	low = lap == q->lap ? q->next : 0;
	high = q->count;
	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (q->times[middle] < us)
			low = middle + 1;
		else
			high = middle;
	}
	q->stats.unused += (lap - q->lap) * q->count + low - q->next;
	q->lap = lap;
	q->next = low;
	if (low == q->count && q->period_us) {
		q->next = 0;
		q->lap++;
	}
}

static int trace_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	bool was_empty = !sch->q.qlen;
	int ret;

	ret = qdisc_enqueue(skb, q->qdisc, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	if (was_empty)
		trace_skip(q, ktime_get_ns());
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

/* What the packet takes of opportunities: its bytes above the link layer. */
static u32 trace_load(const struct Qdisc *sch, const struct sk_buff *skb)
{
	return max_t(s32, 1, qdisc_pkt_len(skb) - qdisc_dev(sch)->hard_header_len);
}

static struct sk_buff *trace_dequeue(struct Qdisc *sch)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = q->qdisc->ops->peek(q->qdisc);
	u64 now;

	if (!skb)
		return NULL;
	now = ktime_get_ns();
	if (!q->owed)
		q->owed = trace_load(sch, skb);
	while (q->owed) {
		u32 now_carried;

		if (!q->left) {
			if (trace_over(q))
				return NULL;
			if (trace_instant(q) > now) {
				qdisc_watchdog_schedule_ns(&q->watchdog, trace_instant(q));
				qdisc_qstats_overlimit(sch);
				return NULL;
			}
			trace_advance(q);
			q->stats.used++;
			q->left = q->bytes;
		}
		now_carried = min(q->left, q->owed);
		q->left -= now_carried;
		q->owed -= now_carried;
	}
	skb = qdisc_dequeue_peeked(q->qdisc);
	if (unlikely(!skb))
		return NULL;
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	if (!sch->q.qlen)
		q->left = 0;
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void trace_reset(struct Qdisc *sch)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	qdisc_reset(q->qdisc);
	q->left = 0;
	q->owed = 0;
	qdisc_watchdog_cancel(&q->watchdog);
}

static const struct nla_policy trace_policy[TCA_PLAIT_TRACE_MAX + 1] = {
	[TCA_PLAIT_TRACE_BYTES]	= NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_PLAIT_TRACE_PERIOD]	= { .type = NLA_U32 },
	[TCA_PLAIT_TRACE_TIMES]	= { .type = NLA_BINARY },
	[TCA_PLAIT_TRACE_START]	= { .type = NLA_U64 },
};

/* Makes room for `more` further entries, doubling it, so that a long list costs linear time. */
static int trace_grow(struct trace_sched_data *q, u32 more, struct netlink_ext_ack *extack)
{
	u32 room = max3(q->count + more, q->room * 2, 1024U);
	u32 *times;

	if (more > MAX_TIMES - q->count) {
		NL_SET_ERR_MSG(extack, "a trace has at most 16777216 opportunities");
		return -E2BIG;
	}
	if (q->count + more <= q->room)
		return 0;
	times = kvmalloc_array(room, sizeof(*times), GFP_KERNEL);
	if (!times)
		return -ENOMEM;
	memcpy(times, q->times, q->count * sizeof(*times));
	kvfree(q->times);
	q->times = times;
	q->room = room;
	return 0;
}

/* Adds a piece of the list. Nothing reads it yet: the trace has not been started. */
static int trace_add(struct trace_sched_data *q, const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	u32 more = nla_len(attr) / sizeof(u32);
	int err, i;

	if (q->start_ns >= 0) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "the trace has been started, its list is complete");
		return -EBUSY;
	}
	err = trace_grow(q, more, extack);
	if (err)
		return err;
	nla_memcpy(q->times + q->count, attr, more * sizeof(u32));
	for (i = 0; i < more; i++, q->count++) {
		if (q->count && q->times[q->count] < q->times[q->count - 1]) {
			NL_SET_ERR_MSG_ATTR(extack, attr, "the opportunities are not in the order of their times");
			return -EINVAL;
		}
	}
	return 0;
}

static int trace_start(struct Qdisc *sch, const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	s64 start_ns = nla_get_u64(attr);

	if (q->start_ns >= 0 || start_ns < 0 || !q->count) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "a trace is started once, and with opportunities");
		return -EINVAL;
	}
	if (q->period_us && (q->period_us < q->times[q->count - 1] || !q->times[q->count - 1])) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "the period ends before the last opportunity, or at once");
		return -EINVAL;
	}
	sch_tree_lock(sch);
	q->start_ns = start_ns;
	sch_tree_unlock(sch);
	if (sch->q.qlen)
		qdisc_watchdog_schedule_ns(&q->watchdog, trace_instant(q));
	return 0;
}

static int trace_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_PLAIT_TRACE_MAX + 1];
	int err;

	err = nla_parse_nested_deprecated(tb, TCA_PLAIT_TRACE_MAX, opt, trace_policy, extack);
	if (err)
		return err;
	if (tb[TCA_PLAIT_TRACE_BYTES])
		WRITE_ONCE(q->bytes, nla_get_u32(tb[TCA_PLAIT_TRACE_BYTES]));
	if (tb[TCA_PLAIT_TRACE_PERIOD] && q->start_ns < 0)
		q->period_us = nla_get_u32(tb[TCA_PLAIT_TRACE_PERIOD]);
	if (tb[TCA_PLAIT_TRACE_TIMES]) {
		err = trace_add(q, tb[TCA_PLAIT_TRACE_TIMES], extack);
		if (err)
			return err;
	}
	return tb[TCA_PLAIT_TRACE_START] ? trace_start(sch, tb[TCA_PLAIT_TRACE_START], extack) : 0;
}

static int trace_qdisc_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->start_ns = -1;
	q->bytes = 1500;
	q->qdisc = fifo_create_dflt(sch, &pfifo_qdisc_ops, 1000, extack);
	if (IS_ERR(q->qdisc)) {
		int err = PTR_ERR(q->qdisc);

		q->qdisc = NULL;
		return err;
	}
	qdisc_hash_add(q->qdisc, true);
	return opt ? trace_change(sch, opt, extack) : 0;
}

static void trace_destroy(struct Qdisc *sch)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	kvfree(q->times);
	if (q->qdisc)
		qdisc_put(q->qdisc);
}

static int trace_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct trace_sched_data *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, TCA_PLAIT_TRACE_BYTES, q->bytes) ||
	    nla_put_u32(skb, TCA_PLAIT_TRACE_PERIOD, q->period_us)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static int trace_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	return gnet_stats_copy_app(d, &q->stats, sizeof(q->stats));
}

/* The one class, 1, is the queue. */
static int trace_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb, struct tcmsg *tcm)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->qdisc->handle;
	return 0;
}

static int trace_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new, struct Qdisc **old,
		       struct netlink_ext_ack *extack)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ? new : &noop_qdisc, &q->qdisc);
	return 0;
}

static struct Qdisc *trace_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct trace_sched_data *q = qdisc_priv(sch);

	return q->qdisc;
}

static unsigned long trace_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void trace_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static const struct Qdisc_class_ops trace_class_ops = {
	.graft	= trace_graft,
	.leaf	= trace_leaf,
	.find	= trace_find,
	.walk	= trace_walk,
	.dump	= trace_dump_class,
};

static struct Qdisc_ops trace_qdisc_ops __read_mostly = {
	.cl_ops		= &trace_class_ops,
	.id		= "plait_trace",
	.priv_size	= sizeof(struct trace_sched_data),
	.enqueue	= trace_enqueue,
	.dequeue	= trace_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= trace_qdisc_init,
	.reset		= trace_reset,
	.destroy	= trace_destroy,
	.change		= trace_change,
	.dump		= trace_dump,
	.dump_stats	= trace_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init trace_module_init(void)
{
	return register_qdisc(&trace_qdisc_ops);
}

static void __exit trace_module_exit(void)
{
	unregister_qdisc(&trace_qdisc_ops);
}

module_init(trace_module_init)
module_exit(trace_module_exit)
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("plait: a link that replays a trace of delivery opportunities");
