// SPDX-License-Identifier: GPL-2.0
/* plait_flows: what of a packet decides where it goes, and the tables of what lines know of flows (plait_cut.c).
 *
 * A table per line that forwards, with two places for each index; it grows while both have flows that count. All tables
 * together have at most PLAIT_CUTS_MAX places. Packets arrive one at a time (plait_cut.c), and nothing else touches
 * tables, until the line is freed.
 */

#include "plait_line.h"

#if PLAIT_CUTS

#include <linux/if_vlan.h>
#include <linux/jhash.h>
#include <linux/prefetch.h>
#include <linux/slab.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "plait_flows.h"

#define PLAIT_CUTS_FIRST	32	/* places of a new table */
#define PLAIT_CUTS_LINE		4096	/* of one line, at most */
#define PLAIT_CUTS_MAX		262144	/* of all lines: 32 MiB */
#define PLAIT_HASHED		2	/* by addresses and ports */

static u32 places;

/* --- Flows -------------------------------------------------------------------------------------------------------- */

static bool plait_has_ports(u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

static bool plait_v4_flow(const struct sk_buff *skb, struct plait_flow *flow, u8 *ttl)
{
	const struct iphdr *ip = plait_v4(skb);

	if (skb_headlen(skb) < ETH_HLEN + sizeof(*ip) + sizeof(flow->ports) || *(const u8 *)ip != 0x45 ||
	    ip_is_fragment(ip) || !plait_has_ports(ip->protocol) || ip->ttl <= 1 ||
	    ntohs(ip->tot_len) + ETH_HLEN != skb->len || ip_fast_csum(ip, 5))
		return false;
	flow->version = PLAIT_V4;
	flow->protocol = ip->protocol;
	flow->service = (__force __be32)ip->tos;
	flow->ports = *(const __be32 *)(ip + 1);
	flow->v4[0] = ip->saddr;
	flow->v4[1] = ip->daddr;
	*ttl = ip->ttl;
	return true;
}

static bool plait_v6_flow(const struct sk_buff *skb, struct plait_flow *flow, u8 *ttl)
{
	const struct ipv6hdr *ip = plait_v6(skb);

	if (skb_headlen(skb) < ETH_HLEN + sizeof(*ip) + sizeof(flow->ports) || ip->version != 6 ||
	    !plait_has_ports(ip->nexthdr) || ip->hop_limit <= 1 ||
	    ntohs(ip->payload_len) + sizeof(*ip) + ETH_HLEN != skb->len)
		return false;
	flow->version = PLAIT_V6;
	flow->protocol = ip->nexthdr;
	flow->service = *(const __be32 *)ip;
	flow->ports = *(const __be32 *)(ip + 1);
	flow->v6[0] = ip->saddr;
	flow->v6[1] = ip->daddr;
	*ttl = ip->hop_limit;
	return true;
}

bool plait_flow_of(struct sk_buff *skb, struct plait_flow *flow, u8 *ttl)
{
	if (((const struct ethhdr *)skb->data)->h_proto != skb->protocol)	/* a line has inverted a bit */
		return false;
	if (skb->mark || skb->ip_summed == CHECKSUM_COMPLETE || skb_vlan_tag_present(skb) || skb_pfmemalloc(skb) ||
	    skb_shared(skb) || skb_is_gso(skb) || skb_zcopy(skb))
		return false;
	flow->hash = skb->hash;
	flow->hashed = (skb->l4_hash ? PLAIT_HASHED : 0) | skb->sw_hash;
	flow->zero = 0;
	flow->v6[0].s6_addr32[3] = 0;
	if (skb->protocol == htons(ETH_P_IP))
		return plait_v4_flow(skb, flow, ttl);
	return skb->protocol == htons(ETH_P_IPV6) && plait_v6_flow(skb, flow, ttl);
}

bool plait_flow_is_same(const struct plait_flow *a, const struct plait_flow *b)
{
	if (memcmp(a, b, offsetofend(struct plait_flow, v4)))
		return false;
	return a->version == PLAIT_V4 || !memcmp(a->v6, b->v6, sizeof(a->v6));
}

/* --- Tables ------------------------------------------------------------------------------------------------------- */

/* Senders of TCP hash each connection. */
static struct plait_cut *plait_pair(struct plait_cuts *cuts, const struct plait_flow *flow)
{
	u32 hash = flow->hash;

	if (!(flow->hashed & PLAIT_HASHED))
		hash = jhash_3words((__force u32)flow->ports, (__force u32)flow->v6[0].s6_addr32[3],
				    (__force u32)flow->v4[1], 0);
	return &cuts->cut[hash & cuts->mask & ~1];
}

struct plait_cut *plait_cuts_find(struct plait_cuts *cuts, const struct plait_flow *flow, u32 epoch)
{
	struct plait_cut *pair = plait_pair(cuts, flow);

	if (pair[0].epoch == epoch && plait_flow_is_same(&pair[0].flow, flow))
		return &pair[0];
	if (pair[1].epoch == epoch && plait_flow_is_same(&pair[1].flow, flow))
		return &pair[1];
	return NULL;
}

void plait_cut_free(struct plait_line *line)
{
	if (!line->cuts)
		return;
	places -= line->cuts->mask + 1;
	kvfree(line->cuts);
	line->cuts = NULL;
}

static bool plait_resize(struct plait_line *line, u32 size)
{
	u32 had = line->cuts ? line->cuts->mask + 1 : 0;
	struct plait_cuts *cuts;

	if (size > PLAIT_CUTS_LINE || places - had + size > PLAIT_CUTS_MAX)
		return false;
	cuts = kzalloc(struct_size(cuts, cut, size), GFP_ATOMIC | __GFP_NOWARN);
	if (!cuts)
		return false;
	cuts->mask = size - 1;
	plait_cut_free(line);
	line->cuts = cuts;
	places += size;
	return true;
}

struct plait_cut *plait_cuts_place(struct plait_line *line, const struct plait_flow *flow, u32 epoch)
{
	struct plait_cut *pair;

	if (!line->cuts && !plait_resize(line, PLAIT_CUTS_FIRST))
		return NULL;
	pair = plait_pair(line->cuts, flow);
	if (pair[0].epoch == epoch && pair[1].epoch == epoch &&
	    plait_resize(line, 4 * (line->cuts->mask + 1)))
		pair = plait_pair(line->cuts, flow);
	if (pair[0].epoch == epoch)
		pair[1] = pair[0];
	return &pair[0];
}

void plait_cut_foresee(const struct plait_cuts *cuts, const struct sk_buff *skb)
{
	if (cuts && skb->l4_hash)
		prefetch(&cuts->cut[skb->hash & cuts->mask & ~1]);
}

#endif
