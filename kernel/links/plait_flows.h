/* SPDX-License-Identifier: GPL-2.0 */
/* Flows, and the tables of what lines know of them. plait_flows.c has both. */
#ifndef PLAIT_FLOWS_H
#define PLAIT_FLOWS_H

#include <linux/in6.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>

#define PLAIT_V4	4
#define PLAIT_V6	6

/* Compared as bytes: for IPv4 up to the two addresses. */
struct plait_flow {
	u32 hash;
	__be32 ports;
	__be32 service;		/* IPv4: type of service; IPv6: version, class and flow label */
	u8 version;
	u8 protocol;
	u8 hashed;		/* how `hash` was made */
	u8 zero;
	union {
		__be32 v4[2];
		struct in6_addr v6[2];
	};
};

/* What is known of a flow. For IPv4 all of it is in one line of the cache. */
struct plait_cut {
	u32 epoch;		/* 0: nothing is known */
	u16 mtu;
	u8 priority;
	u8 reserve;		/* room before the packet that the next device wants */
	struct plait_line *next;
	struct neighbour *neighbour;
	struct net_device *from;	/* that of `next`, .. */
	struct pcpu_sw_netstats __percpu *sent;	/* .. and what it has sent */
	struct plait_flow flow;
} __aligned(SMP_CACHE_BYTES);

struct plait_cuts {
	u32 mask;
	struct plait_cut cut[] __aligned(SMP_CACHE_BYTES);
};

struct plait_line;

/* The flow of a frame at `data`, if nothing about it needs the stack; and its TTL or hop limit. */
bool plait_flow_of(struct sk_buff *skb, struct plait_flow *flow, u8 *ttl);
bool plait_flow_is_same(const struct plait_flow *a, const struct plait_flow *b);
/* What is known of the flow; NULL: nothing. */
struct plait_cut *plait_cuts_find(struct plait_cuts *cuts, const struct plait_flow *flow, u32 epoch);
/* A place for a new flow; NULL: no memory. */
struct plait_cut *plait_cuts_place(struct plait_line *line, const struct plait_flow *flow, u32 epoch);

static inline struct iphdr *plait_v4(const struct sk_buff *skb)
{
	return (struct iphdr *)(skb->data + ETH_HLEN);
}

static inline struct ipv6hdr *plait_v6(const struct sk_buff *skb)
{
	return (struct ipv6hdr *)(skb->data + ETH_HLEN);
}

#endif
