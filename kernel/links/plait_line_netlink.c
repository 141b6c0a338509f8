// SPDX-License-Identifier: GPL-2.0
/* What netlink sets in a direction of a link, and reads from it. plait_link.h documents the attributes. */

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/gen_stats.h>
#include <net/genetlink.h>
#include <net/pkt_sched.h>
#include <net/sock.h>

#include "plait_line.h"

#define PLAIT_TABLE_MOST	16384
#define PLAIT_DELAY_MOST	(1ULL << 61)

static LIST_HEAD(plait_listed);

static const struct nla_policy plait_line_policy[PLAIT_LINE_MAX + 1] = {
	[PLAIT_LINE_NUMBER]		= { .type = NLA_U32 },
	[PLAIT_LINE_RATE]		= { .type = NLA_U64 },
	[PLAIT_LINE_DELAY]		= { .type = NLA_U64 },
	[PLAIT_LINE_JITTER]		= { .type = NLA_U32 },
	[PLAIT_LINE_TABLE]		= { .type = NLA_BINARY, .len = PLAIT_TABLE_MOST * sizeof(s16) },
	[PLAIT_LINE_OVERTAKING]		= NLA_POLICY_MAX(NLA_U8, 1),
	[PLAIT_LINE_LOSS]		= { .type = NLA_U32 },
	[PLAIT_LINE_GE]			= NLA_POLICY_EXACT_LEN(sizeof(struct plait_ge)),
#define PLAIT_EFFECT(NAME, field, generator) [PLAIT_LINE_##NAME] = { .type = NLA_U32 },
	PLAIT_LINE_EFFECTS(PLAIT_EFFECT)
#undef PLAIT_EFFECT
	[PLAIT_LINE_QUEUE_PACKETS]	= { .type = NLA_U32 },
	[PLAIT_LINE_QUEUE_BYTES]	= { .type = NLA_U32 },
	[PLAIT_LINE_BUCKET_RATE]	= { .type = NLA_U64 },
	[PLAIT_LINE_BUCKET_BURST]	= NLA_POLICY_MIN(NLA_U32, 1),
	[PLAIT_LINE_SEED]		= { .type = NLA_U64 },
	[PLAIT_LINE_QDISC]		= { .type = NLA_NUL_STRING, .len = IFNAMSIZ - 1 },
	[PLAIT_LINE_QDISC_OPTIONS]	= { .type = NLA_BINARY },
};

#ifdef MODULE

/* The table of qdiscs and what makes them are not exported. */
static int plait_add_qdisc(struct plait_line *line, struct nlattr *kind, struct nlattr *options,
			   struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG_ATTR(extack, kind, "plait_link is a module of this kernel, and only a built-in one has qdiscs");
	return -EOPNOTSUPP;
}

#else

/* Those that have a packet whenever they have any: nothing but the line delays. */
static const char * const plait_work_conserving[] = {
	"codel", "fq_codel", "pfifo_fast", "pie", "plait_red", "red", "sfq",
};

static bool plait_is_allowed(const struct nlattr *kind)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(plait_work_conserving); i++)
		if (!nla_strcmp(kind, plait_work_conserving[i]))
			return true;
	return false;
}

/* Puts a qdisc in front of a line that has carried nothing yet. It gets a place of its own, so that its lock is that of
 * a root, and the device's queue is none of its business.
 */
static int plait_add_qdisc(struct plait_line *line, struct nlattr *kind, struct nlattr *options,
			   struct netlink_ext_ack *extack)
{
	struct Qdisc_ops *ops;
	struct Qdisc *qdisc;
	int err;

	if (line->place || line->count.packets || !skb_queue_empty(&line->flight)) {
		NL_SET_ERR_MSG_ATTR(extack, kind, "a line gets its qdisc before the first packet, and one only");
		return -EBUSY;
	}
	if (!plait_is_allowed(kind)) {
		NL_SET_ERR_MSG_ATTR(extack, kind, "a line needs a qdisc that delays nothing itself");
		return -EINVAL;
	}
	ops = qdisc_lookup_ops(kind);
	if (!ops) {
		NL_SET_ERR_MSG_ATTR(extack, kind, "this kernel has no such qdisc");
		return -ENOENT;
	}
	line->place = kzalloc(sizeof(*line->place), GFP_KERNEL);
	if (!line->place) {
		module_put(ops->owner);
		return -ENOMEM;
	}
	line->place->dev = line->from;
	qdisc = qdisc_alloc(line->place, ops, extack);
	if (IS_ERR(qdisc)) {
		err = PTR_ERR(qdisc);
		module_put(ops->owner);
		goto no_place;
	}
	qdisc->parent = TC_H_ROOT;
	qdisc->handle = TC_H_MAKE(1 << 16, 0);
	RCU_INIT_POINTER(line->place->qdisc, qdisc);
	RCU_INIT_POINTER(line->place->qdisc_sleeping, qdisc);
	err = ops->init ? ops->init(qdisc, options, extack) : 0;
	if (err) {
		qdisc_put(qdisc);
		goto no_place;
	}
	line->qdisc = qdisc;
	return 0;

no_place:
	kfree(line->place);
	line->place = NULL;
	return err;
}

#endif

static int plait_set_qdisc(struct plait_line *line, struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct nlattr *options = tb[PLAIT_LINE_QDISC_OPTIONS];

	if (tb[PLAIT_LINE_QDISC])
		return plait_add_qdisc(line, tb[PLAIT_LINE_QDISC], options, extack);
	if (!options)
		return 0;
	if (!line->qdisc || !line->qdisc->ops->change) {
		NL_SET_ERR_MSG_ATTR(extack, options, "the line has no qdisc whose options could change");
		return -EINVAL;
	}
	return line->qdisc->ops->change(line->qdisc, options, extack);
}

static struct plait_table *plait_read_table(const struct nlattr *attr)
{
	u32 size = nla_len(attr) / sizeof(s16);
	struct plait_table *table = kmalloc(struct_size(table, value, size), GFP_KERNEL);

	if (table) {
		table->size = size;
		memcpy(table->value, nla_data(attr), size * sizeof(s16));
	}
	return table;
}

static void plait_set_u32(u32 *field, const struct nlattr *attr)
{
	if (attr)
		*field = nla_get_u32(attr);
}

static void plait_set_u64(u64 *field, const struct nlattr *attr)
{
	if (attr)
		*field = nla_get_u64(attr);
}

static void plait_set_conditions(struct plait_conditions *is, struct nlattr **tb)
{
	plait_set_u64(&is->rate, tb[PLAIT_LINE_RATE]);
	plait_set_u64(&is->delay, tb[PLAIT_LINE_DELAY]);
	plait_set_u32(&is->jitter, tb[PLAIT_LINE_JITTER]);
	plait_set_u32(&is->loss, tb[PLAIT_LINE_LOSS]);
#define PLAIT_EFFECT(NAME, field, generator) plait_set_u32(&is->field, tb[PLAIT_LINE_##NAME]);
	PLAIT_LINE_EFFECTS(PLAIT_EFFECT)
#undef PLAIT_EFFECT
	plait_set_u32(&is->queue_packets, tb[PLAIT_LINE_QUEUE_PACKETS]);
	plait_set_u32(&is->queue_bytes, tb[PLAIT_LINE_QUEUE_BYTES]);
	if (tb[PLAIT_LINE_OVERTAKING])
		is->overtaking = nla_get_u8(tb[PLAIT_LINE_OVERTAKING]);
	if (tb[PLAIT_LINE_GE])
		nla_memcpy(&is->ge, tb[PLAIT_LINE_GE], sizeof(is->ge));
}

static void plait_seed(struct plait_line *line, u64 seed)
{
	int i;

	for (i = 0; i < PLAIT_DRAWS; i++)
		prandom_seed_state(&line->draw[i], seed + i * 0x9e3779b97f4a7c15ULL);
	line->bad = false;
}

int plait_line_change(struct plait_line *line, const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[PLAIT_LINE_MAX + 1];
	struct plait_table *table = NULL;
	u64 now, bucket_rate;
	u32 burst;
	int err;

	err = nla_parse(tb, PLAIT_LINE_MAX, nla_data(attr), nla_len(attr), plait_line_policy, extack);
	if (err)
		return err;
	if ((tb[PLAIT_LINE_DELAY] && nla_get_u64(tb[PLAIT_LINE_DELAY]) > PLAIT_DELAY_MOST) ||
	    (tb[PLAIT_LINE_JITTER] && nla_get_u32(tb[PLAIT_LINE_JITTER]) > S32_MAX)) {
		NL_SET_ERR_MSG(extack, "a delay is at most 2^61 ns, a jitter less than 2^31 ns");
		return -ERANGE;
	}
	if (tb[PLAIT_LINE_TABLE]) {
		table = plait_read_table(tb[PLAIT_LINE_TABLE]);
		if (!table)
			return -ENOMEM;
	}
	err = plait_set_qdisc(line, tb, extack);
	if (err) {
		kfree(table);
		return err;
	}

	spin_lock_bh(&line->lock);
	now = ktime_get_ns();
	plait_line_advance(line, now);
	plait_set_conditions(&line->is, tb);
	if (table)
		swap(table, line->table);
	plait_set_u32(&line->number, tb[PLAIT_LINE_NUMBER]);
	bucket_rate = line->bucket.rate;
	burst = line->bucket.burst;
	plait_set_u64(&bucket_rate, tb[PLAIT_LINE_BUCKET_RATE]);
	plait_set_u32(&burst, tb[PLAIT_LINE_BUCKET_BURST]);
	if (bucket_rate != line->bucket.rate || burst != line->bucket.burst)
		plait_bucket_change(&line->bucket, now, bucket_rate, burst);
	if (tb[PLAIT_LINE_SEED])
		plait_seed(line, nla_get_u64(tb[PLAIT_LINE_SEED]));
	plait_line_arm(line);
	spin_unlock_bh(&line->lock);
	kfree(table);
	return 0;
}

int plait_line_put(struct plait_line *line, struct sk_buff *skb, int type)
{
	const struct plait_conditions *is = &line->is;
	struct nlattr *nest = nla_nest_start(skb, type);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, PLAIT_LINE_NUMBER, line->number) ||
	    nla_put_u64_64bit(skb, PLAIT_LINE_RATE, is->rate, PLAIT_LINE_UNSPEC) ||
	    nla_put_u64_64bit(skb, PLAIT_LINE_DELAY, is->delay, PLAIT_LINE_UNSPEC) ||
	    nla_put_u32(skb, PLAIT_LINE_JITTER, is->jitter) ||
	    nla_put_u8(skb, PLAIT_LINE_OVERTAKING, is->overtaking) ||
	    nla_put_u32(skb, PLAIT_LINE_LOSS, is->loss) ||
	    nla_put(skb, PLAIT_LINE_GE, sizeof(is->ge), &is->ge) ||
#define PLAIT_EFFECT(NAME, field, generator) nla_put_u32(skb, PLAIT_LINE_##NAME, is->field) ||
	    PLAIT_LINE_EFFECTS(PLAIT_EFFECT)
#undef PLAIT_EFFECT
	    nla_put_u32(skb, PLAIT_LINE_QUEUE_PACKETS, is->queue_packets) ||
	    nla_put_u32(skb, PLAIT_LINE_QUEUE_BYTES, is->queue_bytes) ||
	    nla_put_u64_64bit(skb, PLAIT_LINE_BUCKET_RATE, line->bucket.rate, PLAIT_LINE_UNSPEC) ||
	    nla_put_u32(skb, PLAIT_LINE_BUCKET_BURST, line->bucket.burst) ||
	    (line->qdisc && nla_put_string(skb, PLAIT_LINE_QDISC, line->qdisc->ops->id))) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

void plait_line_read(struct plait_line *line, struct plait_line_counters *out)
{
	const struct Qdisc *qdisc = line->qdisc;
	u64 now;

	spin_lock_bh(&line->lock);
	now = ktime_get_ns();
	plait_line_advance(line, now);
	plait_line_arm(line);
	*out = line->count;
	out->queue_packets = plait_line_waiting(line);
	out->flying = skb_queue_len(&line->flight) + line->early_count;
	out->tokens = line->bucket.rate ? plait_bucket_level(&line->bucket, now) : U64_MAX;
	if (qdisc) {
		struct gnet_stats_queue sum = {};

		gnet_stats_add_queue(&sum, qdisc->cpu_qstats, &qdisc->qstats);
		out->queue_bytes = sum.backlog;
		out->refused = sum.drops;
	}
	spin_unlock_bh(&line->lock);
}

static int plait_put_sojourns(struct plait_line *line, struct sk_buff *skb)
{
	u32 bins = PLAIT_SOJOURNS;
	int err;

	if (nla_put_u32(skb, PLAIT_COUNT_NUMBER, line->number))
		return -EMSGSIZE;
	spin_lock_bh(&line->lock);
	plait_line_advance(line, ktime_get_ns());
	plait_line_arm(line);
	while (bins && !line->sojourn[bins - 1])
		bins--;
	err = nla_put_64bit(skb, PLAIT_COUNT_SOJOURNS, bins * sizeof(u64), line->sojourn, PLAIT_COUNT_PAD);
	spin_unlock_bh(&line->lock);
	return err;
}

static int plait_put_qdisc(struct Qdisc *qdisc, struct sk_buff *skb)
{
	struct gnet_dump dump;

	if (gnet_stats_start_copy(skb, PLAIT_COUNT_QDISC, NULL, &dump, PLAIT_COUNT_PAD) < 0)
		return -EMSGSIZE;
	if ((qdisc->ops->dump_stats && qdisc->ops->dump_stats(qdisc, &dump) < 0) ||
	    gnet_stats_copy_basic(&dump, qdisc->cpu_bstats, &qdisc->bstats, true) < 0 ||
	    gnet_stats_copy_queue(&dump, qdisc->cpu_qstats, &qdisc->qstats, qdisc_qlen_sum(qdisc)) < 0)
		return -EMSGSIZE;
	return gnet_stats_finish_copy(&dump) < 0 ? -EMSGSIZE : 0;
}

static int plait_put_counters(struct plait_line *line, struct sk_buff *skb)
{
	struct plait_line_counters now;

	plait_line_read(line, &now);
	if (nla_put_u32(skb, PLAIT_COUNT_NUMBER, line->number) ||
	    nla_put(skb, PLAIT_COUNT_LINE, sizeof(now), &now))
		return -EMSGSIZE;
	return line->qdisc ? plait_put_qdisc(line->qdisc, skb) : 0;
}

/* --- The family --------------------------------------------------------------------------------------------------- */

void plait_line_list(struct plait_line *line, u64 home)
{
	line->home = home;
	list_add_tail(&line->list, &plait_listed);
}

static struct genl_family plait_family;

static int plait_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	u8 command = ((struct genlmsghdr *)nlmsg_data(cb->nlh))->cmd;
	u64 home = sock_net(skb->sk)->net_cookie;
	struct plait_line *line;
	long place = 0;
	int err = 0;

	rtnl_lock();
	list_for_each_entry(line, &plait_listed, list) {
		void *header;

		if (line->home != home || place++ < cb->args[0])
			continue;
		header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &plait_family, NLM_F_MULTI,
				     command);
		if (!header)
			err = -EMSGSIZE;
		else if (command == PLAIT_LINK_CMD_SOJOURNS)
			err = plait_put_sojourns(line, skb);
		else
			err = plait_put_counters(line, skb);
		if (err) {
			if (header)
				genlmsg_cancel(skb, header);
			break;
		}
		genlmsg_end(skb, header);
		cb->args[0] = place;
	}
	rtnl_unlock_unchanged();
	return err && !skb->len ? err : skb->len;
}

static const struct genl_small_ops plait_commands[] = {
	{ .cmd = PLAIT_LINK_CMD_GET, .dumpit = plait_dump },
	{ .cmd = PLAIT_LINK_CMD_SOJOURNS, .dumpit = plait_dump },
};

static struct genl_family plait_family __ro_after_init = {
	.name		= PLAIT_LINK_FAMILY,
	.version	= PLAIT_LINK_VERSION,
	.netnsok	= true,
	.module		= THIS_MODULE,
	.small_ops	= plait_commands,
	.n_small_ops	= ARRAY_SIZE(plait_commands),
};

int plait_line_family_start(void)
{
	return genl_register_family(&plait_family);
}

void plait_line_family_stop(void)
{
	genl_unregister_family(&plait_family);
}
