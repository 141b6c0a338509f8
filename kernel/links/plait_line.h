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

/* What each packet needs is in few lines of the cache. */
struct plait_line {
	spinlock_t lock;
	struct Qdisc *qdisc;
	struct sk_buff_head queue;	/* drop-tail; empty if there is a qdisc */
	struct sk_buff_head flight;	/* on the way, by arrival .. */

	struct rb_root early ____cacheline_aligned;	/* .. and those that arrive before the last of `flight` */
	struct plait_instant free;	/* when the line has sent what was given to it */
	struct plait_entry next;	/* when something happens to the line */
	struct net_device *from;
	struct net_device __rcu *to;
	struct plait_cuts *cuts;	/* what is known of flows that arrive at `to` */

	struct plait_conditions is ____cacheline_aligned;

	struct plait_bucket bucket ____cacheline_aligned;
	struct plait_line_counters count;
	u64 sojourn[PLAIT_SOJOURNS];

	u64 last_arrival;
	u32 early_count;
	u32 number;			/* what dumps call it .. */
	u64 home;			/* .. from the namespace with this cookie */
	struct list_head list;		/* of all that have one, by age */
	struct plait_table *table;
	struct rnd_state draw[PLAIT_DRAWS];
	bool bad;			/* the state of the loss model */
	struct netdev_queue *place;	/* where the qdisc is: it has the lock of a root, and no device runs it */
};

/* A new line, under RTNL; NULL: no memory. */
struct plait_line *plait_line_make(struct net_device *from);
/* Frees the line with what is in it; nothing sends any more. */
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
/* Lets dumps from the namespace with the cookie `home` have the line; under RTNL, as those are. */
void plait_line_list(struct plait_line *line, u64 home);
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

int plait_line_start(void);
void plait_line_stop(void);
int plait_line_family_start(void);
void plait_line_family_stop(void);
#endif
