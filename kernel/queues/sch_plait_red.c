// SPDX-License-Identifier: GPL-2.0
/* plait_red: random early detection with the drop curve given point by point.
 *
 * Model: S. Floyd, V. Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993. At
 * every arrival, with q packets in the queue (the arriving one not counted), in the notation of its figure 2:
 *
 *   q > 0:  avg = (1 - w) * avg + w * q
 *   q = 0:  avg = (1 - w)^m * avg,  m = time since the queue became empty / IDLE_NS, the time that a packet takes
 *
 *   avg below the first point:        let in
 *   between two points:               dropped (or marked) with probability p, linear in avg between the points
 *   above the last point:             dropped
 *   q >= LIMIT:                       dropped
 *
 * The paper's own curve is the points (min, 0), (max, maxp); its "gentle" variant (S. Floyd, "Recommendation on using
 * the gentle_ variant of RED", 2000) adds (2 * max, 1); studies state others, which the kernel's `red` cannot express:
 * it has two slopes at most, a byte queue, and rounds maxp and the slope to its tables.
 *
 * Each drop is drawn on its own, so that p is the share of packets that are dropped (the paper's first method, section
 * 7). The second method spaces drops out, which makes their share 2p / (1 + p).
 *
 * ECN (RFC 3168): with it, a packet that is capable of it is marked where it would have been dropped with probability p.
 * Above the last point and beyond LIMIT it is dropped all the same.
 *
 * Netlink, TCA_OPTIONS: the attributes below, all but LIMIT, WEIGHT_LOG, POINTS and IDLE_NS optional at first, all
 * optional in a change. A change keeps the queue, its average and the counts; only SEED starts the generator anew.
 *
 * Arithmetic: plait_red_rules.h, with its bounds. The generator is the kernel's prandom (a combined Tausworthe of period
 * 2^113), seeded by SEED: the same arrivals make the same drops.
 *
 * Locking: enqueue and dequeue run under the root's lock, change and dumps take it.
 */

#include <linux/module.h>
#include <linux/prandom.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "plait_red_rules.h"

enum {
	TCA_PLAIT_RED_UNSPEC,
	TCA_PLAIT_RED_LIMIT,		/* u32, packets */
	TCA_PLAIT_RED_WEIGHT_LOG,	/* u32, n for a weight of 2^-n */
	TCA_PLAIT_RED_POINTS,		/* 1 to 8 struct plait_red_point, averages ascending */
	TCA_PLAIT_RED_ECN,		/* u32, 0 or 1 */
	TCA_PLAIT_RED_SEED,		/* u32 */
	TCA_PLAIT_RED_IDLE_NS,		/* u32, nanoseconds that a packet takes to leave */
	__TCA_PLAIT_RED_MAX,
};

#define TCA_PLAIT_RED_MAX	(__TCA_PLAIT_RED_MAX - 1)

/* TCA_STATS_APP */
struct plait_red_xstats {
	u32 early;	/* dropped by the curve */
	u32 forced;	/* dropped above its last point */
	u32 marked;	/* marked instead of dropped early */
	u32 overflow;	/* dropped at LIMIT */
	u32 average;	/* the average queue as of the last arrival, packets, Q8 */
};

struct plait_red {
	struct plait_red_point point[PLAIT_RED_POINTS];
	int points;
	u32 limit;
	u32 weight_log;
	u32 idle_ns;
	bool ecn;
	u32 seed;
	struct rnd_state random;

	u64 average;		/* Q32 packets */
	u64 empty_since;	/* ktime_get_ns(); holds while the queue is empty */
	struct plait_red_xstats count;
};

static const struct nla_policy plait_red_policy[TCA_PLAIT_RED_MAX + 1] = {
	[TCA_PLAIT_RED_LIMIT]		= NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_PLAIT_RED_WEIGHT_LOG]	= NLA_POLICY_MAX(NLA_U32, PLAIT_RED_WEIGHT_MOST),
	[TCA_PLAIT_RED_POINTS]		= { .type = NLA_BINARY,
					    .len = PLAIT_RED_POINTS * sizeof(struct plait_red_point) },
	[TCA_PLAIT_RED_ECN]		= NLA_POLICY_MAX(NLA_U32, 1),
	[TCA_PLAIT_RED_SEED]		= { .type = NLA_U32 },
	[TCA_PLAIT_RED_IDLE_NS]		= NLA_POLICY_MIN(NLA_U32, 1),
};

static void plait_red_arrival(struct plait_red *red, u32 queue)
{
	u64 packets;

	if (queue) {
		red->average = plait_red_average(red->average, queue, red->weight_log);
		return;
	}
	packets = div_u64(ktime_get_ns() - red->empty_since, red->idle_ns);
	red->average = plait_red_idle(red->average, min_t(u64, packets, U32_MAX), red->weight_log);
}

static bool plait_red_admits(struct plait_red *red, struct sk_buff *skb, struct Qdisc *sch)
{
	bool beyond;
	u32 p = plait_red_probability(red->point, red->points, red->average, &beyond);

	if (beyond) {
		red->count.forced++;
		return false;
	}
	if (!plait_red_happens(p, prandom_u32_state(&red->random)))
		return true;
	qdisc_qstats_overlimit(sch);
	if (red->ecn && INET_ECN_set_ce(skb)) {
		red->count.marked++;
		return true;
	}
	red->count.early++;
	return false;
}

static int plait_red_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct plait_red *red = qdisc_priv(sch);

	plait_red_arrival(red, sch->q.qlen);
	if (sch->q.qlen >= red->limit) {
		red->count.overflow++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (plait_red_admits(red, skb, sch))
		return qdisc_enqueue_tail(skb, sch);
	qdisc_drop(skb, sch, to_free);
	return NET_XMIT_CN;
}

static struct sk_buff *plait_red_dequeue(struct Qdisc *sch)
{
	struct plait_red *red = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_dequeue_head(sch);

	if (skb && !sch->q.qlen)
		red->empty_since = ktime_get_ns();
	return skb;
}

/* The points of the attribute, when they are a curve. */
static int plait_red_read_points(const struct nlattr *attr, struct plait_red_point *point,
				 struct netlink_ext_ack *extack)
{
	int i, n = nla_len(attr) / sizeof(*point);

	if (!n || nla_len(attr) % sizeof(*point)) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "a drop curve is 1 to 8 points of 8 bytes");
		return -EINVAL;
	}
	nla_memcpy(point, attr, n * sizeof(*point));
	for (i = 1; i < n; i++) {
		if (point[i].average <= point[i - 1].average) {
			NL_SET_ERR_MSG_ATTR(extack, attr, "the averages of a drop curve must ascend");
			return -EINVAL;
		}
	}
	return n;
}

static void plait_red_set_u32(u32 *field, const struct nlattr *attr)
{
	if (attr)
		*field = nla_get_u32(attr);
}

static int plait_red_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct plait_red *red = qdisc_priv(sch);
	struct nlattr *tb[TCA_PLAIT_RED_MAX + 1];
	struct plait_red_point point[PLAIT_RED_POINTS];
	int err, points = 0;

	/* strict within, though TCA_OPTIONS itself never had to carry NLA_F_NESTED */
	err = nla_parse(tb, TCA_PLAIT_RED_MAX, nla_data(opt), nla_len(opt), plait_red_policy, extack);
	if (err < 0)
		return err;
	if (tb[TCA_PLAIT_RED_POINTS]) {
		points = plait_red_read_points(tb[TCA_PLAIT_RED_POINTS], point, extack);
		if (points < 0)
			return points;
	}

	sch_tree_lock(sch);
	if (points) {
		memcpy(red->point, point, points * sizeof(*point));
		red->points = points;
	}
	plait_red_set_u32(&red->limit, tb[TCA_PLAIT_RED_LIMIT]);
	plait_red_set_u32(&red->weight_log, tb[TCA_PLAIT_RED_WEIGHT_LOG]);
	plait_red_set_u32(&red->idle_ns, tb[TCA_PLAIT_RED_IDLE_NS]);
	if (tb[TCA_PLAIT_RED_ECN])
		red->ecn = nla_get_u32(tb[TCA_PLAIT_RED_ECN]);
	if (tb[TCA_PLAIT_RED_SEED]) {
		red->seed = nla_get_u32(tb[TCA_PLAIT_RED_SEED]);
		prandom_seed_state(&red->random, red->seed);
	}
	sch_tree_unlock(sch);
	return 0;
}

static int plait_red_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct plait_red *red = qdisc_priv(sch);
	int err;

	if (!opt) {
		NL_SET_ERR_MSG(extack, "plait_red needs LIMIT, WEIGHT_LOG, POINTS and IDLE_NS");
		return -EINVAL;
	}
	red->seed = get_random_u32();
	prandom_seed_state(&red->random, red->seed);
	red->empty_since = ktime_get_ns();
	red->weight_log = U32_MAX;
	err = plait_red_change(sch, opt, extack);
	if (err)
		return err;
	if (!red->limit || !red->points || !red->idle_ns || red->weight_log == U32_MAX) {
		NL_SET_ERR_MSG(extack, "plait_red needs LIMIT, WEIGHT_LOG, POINTS and IDLE_NS");
		return -EINVAL;
	}
	return 0;
}

static void plait_red_reset(struct Qdisc *sch)
{
	struct plait_red *red = qdisc_priv(sch);

	qdisc_reset_queue(sch);
	red->average = 0;
	red->empty_since = ktime_get_ns();
}

static int plait_red_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct plait_red *red = qdisc_priv(sch);
	struct nlattr *opts = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!opts)
		return -EMSGSIZE;
	if (nla_put_u32(skb, TCA_PLAIT_RED_LIMIT, red->limit) ||
	    nla_put_u32(skb, TCA_PLAIT_RED_WEIGHT_LOG, red->weight_log) ||
	    nla_put(skb, TCA_PLAIT_RED_POINTS, red->points * sizeof(red->point[0]), red->point) ||
	    nla_put_u32(skb, TCA_PLAIT_RED_ECN, red->ecn) ||
	    nla_put_u32(skb, TCA_PLAIT_RED_SEED, red->seed) ||
	    nla_put_u32(skb, TCA_PLAIT_RED_IDLE_NS, red->idle_ns)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static int plait_red_dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct plait_red *red = qdisc_priv(sch);
	struct plait_red_xstats count;

	sch_tree_lock(sch);
	count = red->count;
	count.average = red->average >> 24;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(dump, &count, sizeof(count));
}

static struct Qdisc_ops plait_red_ops __read_mostly = {
	.id		= "plait_red",
	.priv_size	= sizeof(struct plait_red),
	.enqueue	= plait_red_enqueue,
	.dequeue	= plait_red_dequeue,
	.peek		= qdisc_peek_head,
	.init		= plait_red_init,
	.reset		= plait_red_reset,
	.change		= plait_red_change,
	.dump		= plait_red_dump,
	.dump_stats	= plait_red_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init plait_red_register(void)
{
	return register_qdisc(&plait_red_ops);
}

static void __exit plait_red_unregister(void)
{
	unregister_qdisc(&plait_red_ops);
}

module_init(plait_red_register);
module_exit(plait_red_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Random early detection with a piecewise-linear drop curve");
