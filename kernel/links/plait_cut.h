/* SPDX-License-Identifier: GPL-2.0 */
/* Forwarding from line to line as the node between them would. plait_cut.c says when. */
#ifndef PLAIT_CUT_H
#define PLAIT_CUT_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>

struct plait_line;
struct plait_cuts;

#if defined(CONFIG_UML_TIME_TRAVEL_SUPPORT) && !defined(MODULE) && __has_include(<linux/net_epoch.h>) && \
	!defined(CONFIG_XFRM) && !defined(CONFIG_FTRACE) && !defined(CONFIG_NET_L3_MASTER_DEV)
#define PLAIT_CUTS 1

#include <linux/net_epoch.h>

/* Forwards a frame that `line` delivers to the device `to`, or returns false: then the node's stack has to. */
bool plait_cut_through(struct plait_line *line, struct net_device *to, struct sk_buff *skb);
/* The stack has done with the frame. */
void plait_cut_done(void);
/* A device sends a frame, which has its route: remembers how the stack forwarded it. */
void plait_cut_learn(struct plait_line *next, struct sk_buff *skb);
/* Asks for the memory of what is known of the packet's flow. */
void plait_cut_foresee(const struct plait_cuts *cuts, const struct sk_buff *skb);
void plait_cut_free(struct plait_line *line);
void plait_cut_start(void);

#else
#define PLAIT_CUTS 0

static inline bool plait_cut_through(struct plait_line *line, struct net_device *to, struct sk_buff *skb)
{
	return false;
}

static inline void plait_cut_done(void) {}
static inline void plait_cut_learn(struct plait_line *next, struct sk_buff *skb) {}
static inline void plait_cut_foresee(const struct plait_cuts *cuts, const struct sk_buff *skb) {}
static inline void plait_cut_free(struct plait_line *line) {}
static inline void plait_cut_start(void) {}
#define rtnl_unlock_unchanged rtnl_unlock

#endif
#endif
