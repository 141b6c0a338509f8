/* SPDX-License-Identifier: GPL-2.0 */
/* A direction of a link: its queue, its line, and the packets on the way. plait_line.c has the model. */
#ifndef PLAIT_LINE_H
#define PLAIT_LINE_H

#include <linux/netdevice.h>
#include <linux/prandom.h>
#include <linux/rbtree.h>
#include <linux/skbuff.h>
#include <net/netlink.h>
#include <net/sch_generic.h>

#include "plait_agenda.h"
#include "plait_cut.h"
#include "plait_link.h"
#include "plait_link_rules.h"

/* One generator for each purpose: with jitter or without, the same packets are lost. */
enum plait_draw {
	PLAIT_DRAW_LOSS = 0,
	PLAIT_DRAW_JITTER = 4,
#define PLAIT_EFFECT(NAME, field, generator) PLAIT_DRAW_##NAME = (generator),
	PLAIT_LINE_EFFECTS(PLAIT_EFFECT)
#undef PLAIT_EFFECT
	PLAIT_DRAWS = 5,
};

struct plait_conditions {
	u64 rate;
	u64 delay;
	u32 jitter;
	bool overtaking;
	u32 loss;
	struct plait_ge ge;
#define PLAIT_EFFECT(NAME, field, generator) u32 field;
	PLAIT_LINE_EFFECTS(PLAIT_EFFECT)
#undef PLAIT_EFFECT
	u32 queue_packets;
	u32 queue_bytes;
};

struct plait_table {
	u32 size;
	s16 value[];
};

struct plait_line {
	spinlock_t lock;
	struct plait_conditions is;
	struct plait_table *table;
	struct plait_bucket bucket;
	struct rnd_state draw[PLAIT_DRAWS];
	bool bad;			/* the state of the loss model */

	struct sk_buff_head queue;	/* drop-tail; empty if there is a qdisc */
	struct Qdisc *qdisc;
	struct netdev_queue *place;	/* where the qdisc is: it has the lock of a root, and no device runs it */

	struct plait_instant free;	/* when the line has sent what was given to it */
	struct sk_buff_head flight;	/* on the way, by arrival .. */
	struct rb_root early;		/* .. and those that arrive before the last of `flight` */
	u32 early_count;
	u64 last_arrival;

	struct plait_entry next;	/* when something happens to the line */
	struct net_device *from;
	struct net_device __rcu *to;
	struct plait_cuts *cuts;	/* what is known of flows that arrive at `to` */

	u32 number;
	struct plait_line_counters count;
	u64 sojourn[PLAIT_SOJOURNS];
};

int plait_line_init(struct plait_line *line, struct net_device *from);
/* Frees what is in the line; nothing sends any more. */
void plait_line_free(struct plait_line *line);
/* The sender goes down: what waits for the line is gone, what has started is not. Under RTNL. */
void plait_line_lose_queue(struct plait_line *line);
/* Packets that wait for the line. */
u32 plait_line_waiting(const struct plait_line *line);
/* Takes a packet from the sender, under RCU with bottom halves off. */
void plait_line_send(struct plait_line *line, struct sk_buff *skb);

/* Netlink: sets what the attributes name (under RTNL); before, all packets are where they are at this instant. */
int plait_line_change(struct plait_line *line, const struct nlattr *attr, struct netlink_ext_ack *extack);
int plait_line_put(struct plait_line *line, struct sk_buff *skb, int type);
int plait_line_put_counters(struct plait_line *line, struct sk_buff *skb);
int plait_line_put_sojourns(struct plait_line *line, struct sk_buff *skb);
/* The counters at this instant. */
void plait_line_read(struct plait_line *line, struct plait_line_counters *out);

/* How soon a line has an event: each step follows pointers whose memory the step before has asked for. */
enum plait_distance { PLAIT_NEXT, PLAIT_SOON, PLAIT_LATER };
/* Asks for memory of the line's next event; for the agenda, under its lock and RCU. */
void plait_line_foresee(struct plait_line *line, enum plait_distance distance);
/* What happens to the line at `now`; for the agenda, in softirq and under RCU. */
void plait_line_event(struct plait_line *line, u64 now);
/* Brings the line to the present; the caller holds its lock. */
void plait_line_advance(struct plait_line *line, u64 now);
void plait_line_arm(struct plait_line *line);
#endif
