// SPDX-License-Identifier: GPL-2.0
/* plait_cut: a node's decision about a flow, remembered where the flow arrives.
 *
 * A router sends each packet through its whole stack, although it decides the same for all packets of a flow until a
 * route, a link or a setting changes. So the stack of the node handles the first packet, and the line on which that
 * packet arrived remembers on which line it left. The next ones go there at once, with the same bytes at the same
 * instant, and every counter moves as if they had passed the stack.
 *
 *   line -> [ device -> IP: receive, route, forward, neighbour -> device ] -> line		the first packet
 *   line -> [ this file                                                  ] -> line		all others
 *
 * The key is all of a packet that a decision can depend on: addresses, ports, protocol, type of service or class and
 * flow label, and the hash of its sender, which chooses among equal routes. What is remembered holds as long as
 * net_epoch stands still: every release of RTNL after a change, every write of a sysctl, changes of filters, taps and
 * learnt routes, and neighbours that change their state or are freed advance it. While one of them is under way, or
 * RTNL is held, all packets take the stack.
 *
 * The stack handles whatever may end otherwise than forwarded: fragments, options, a TTL that runs out, packets above
 * the MTU, wrong checksums or lengths, other protocols than TCP and UDP, and neighbours that have to be asked. It
 * handles all packets at a device where somebody looks or intervenes: captures, XDP, filters of tc or netfilter, bridges
 * and bonds, qdiscs of the node, tunnels. And all in kernels with trace events.
 *
 * Locking: packets arrive in events of the agenda, one at a time, in softirq and under RCU; User-Mode Linux has one
 * processor. Nothing else touches tables, until the line is freed.
 */

#include "plait_line.h"

#if PLAIT_CUTS

#include <init.h>
#include <linux/inetdevice.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/version.h>
#include <net/addrconf.h>
#include <net/hotdata.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ndisc.h>
#include <net/neighbour.h>
#include <net/netevent.h>
#include <net/route.h>
#include <net/sch_generic.h>
#include <net/sock.h>

#include "plait_flows.h"

/* The packet that goes through a stack now. */
static struct {
	struct sk_buff *skb;
	struct plait_line *line;
	struct net_device *to;
	struct plait_flow flow;
	u32 epoch;
	u32 length;
	u8 ttl;
} learning;

static bool is_on = true;

static ulong cut_through;
module_param(cut_through, ulong, 0444);
MODULE_PARM_DESC(cut_through, "how many packets did not pass the stack of a router");

/* Not passed on, so that a guest sees the same command line with either value: its length costs programs time. */
static int __init plait_cut_option(char *text, int *add)
{
	*add = 0;
	is_on = *text != '0';
	return 0;
}

__uml_setup("plait_cut_through=", plait_cut_option,
"plait_cut_through=<0 or 1>\n"
"    With 0 each packet passes the whole stack of each router.\n\n"
);

static bool plait_is_settled(void)
{
	return !rtnl_is_locked() && !atomic_read(&net_epoch.under_way);
}

static u32 plait_epoch(void)
{
	return atomic_read(&net_epoch.count);
}

/* --- Learning ----------------------------------------------------------------------------------------------------- */

/* One protocol, and nobody else, gets what arrives with this number. */
static bool plait_is_alone(__be16 type)
{
	const struct list_head *head = &ptype_base[ntohs(type) & PTYPE_HASH_MASK];

	return list_is_singular(head) && list_first_entry(head, struct packet_type, list)->type == type;
}

static bool plait_is_plain_input(const struct net_device *dev)
{
	return !rcu_access_pointer(dev->rx_handler) && !rcu_access_pointer(dev->xdp_prog) &&
	       !rcu_access_pointer(dev->tcx_ingress) && !rcu_access_pointer(dev->nf_hooks_ingress) &&
	       list_empty(&dev->ptype_all) && list_empty(&dev->ptype_specific);
}

static bool plait_is_plain_output(const struct net_device *dev)
{
	const struct netdev_queue *queue = netdev_get_tx_queue(dev, 0);
	const netdev_features_t needed = NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;

	return !rcu_access_pointer(dev->tcx_egress) && !rcu_access_pointer(dev->nf_hooks_egress) &&
	       list_empty(&dev->ptype_all) && !rcu_dereference(queue->qdisc)->enqueue &&
	       !netif_xmit_stopped(queue) && dev->real_num_tx_queues == 1 && (dev->features & needed) == needed;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
static bool plait_has_taps(const struct net *net)
{
	return !list_empty(&net->ptype_all) || !list_empty(&net->ptype_specific);
}
#else
static bool plait_has_taps(const struct net *net)
{
	return !list_empty(&net_hotdata.ptype_all);
}
#endif

static bool plait_is_plain_node(const struct net *net, __be16 protocol)
{
	struct nf_hook_entries __rcu *const *hooks =
		protocol == htons(ETH_P_IP) ? net->nf.hooks_ipv4 : net->nf.hooks_ipv6;

	return !rcu_access_pointer(hooks[NF_INET_PRE_ROUTING]) && !rcu_access_pointer(hooks[NF_INET_FORWARD]) &&
	       !rcu_access_pointer(hooks[NF_INET_POST_ROUTING]) && !net->nexthop.seq &&
	       !READ_ONCE(net->ipv4.sysctl_ip_early_demux) && !READ_ONCE(net->ipv4.sysctl_fib_multipath_use_neigh) &&
	       !plait_has_taps(net) && plait_is_alone(protocol);
}

/* The neighbour to which IPv4 has sent the packet, and the largest packet of the route; NULL: not an ordinary route. */
static struct neighbour *plait_v4_route(struct sk_buff *skb, struct plait_cut *cut)
{
	struct rtable *route = skb_rtable(skb);
	struct neighbour *neighbour;
	bool is_v6 = false;

	if (route->rt_type != RTN_UNICAST || route->dst.expires || route->dst.output != ip_output)
		return NULL;
	cut->mtu = ip_dst_mtu_maybe_forward(&route->dst, true);
	neighbour = ip_neigh_for_gw(route, skb, &is_v6);
	return is_v6 || IS_ERR(neighbour) ? NULL : neighbour;
}

static struct neighbour *plait_v6_route(struct sk_buff *skb, struct plait_cut *cut)
{
	struct rt6_info *route = dst_rt6_info(skb_dst(skb));
	const struct inet6_dev *idev = ip6_dst_idev(&route->dst);

	if (route->rt6i_flags & (RTF_CACHE | RTF_EXPIRES | RTF_LOCAL | RTF_ANYCAST) || route->dst.output != ip6_output ||
	    !idev || idev->dev != skb->dev)
		return NULL;
	cut->mtu = max_t(u32, ip6_dst_mtu_maybe_forward(&route->dst, true), IPV6_MIN_MTU);
	return __ipv6_neigh_lookup_noref(skb->dev, rt6_nexthop(route, &plait_v6(skb)->daddr));
}

/* Whether the neighbour has a header now, and its state stays what it is if a packet goes there. */
static bool plait_is_reached(const struct neighbour *neighbour)
{
	return READ_ONCE(neighbour->nud_state) & (NUD_CONNECTED | NUD_DELAY | NUD_PROBE) &&
	       READ_ONCE(neighbour->hh.hh_len) == ETH_HLEN;
}

static bool plait_sends_to(const struct neighbour *neighbour, const struct sk_buff *skb)
{
	const u8 *header = (const u8 *)neighbour->hh.hh_data + HH_DATA_OFF(ETH_HLEN);

	return plait_is_reached(neighbour) && !neighbour->dead && !memcmp(header, skb->data, ETH_HLEN);
}

void plait_cut_learn(struct plait_line *next, struct sk_buff *skb)
{
	const struct dst_entry *route = skb_dst(skb);
	struct plait_cut cut = {}, *place;
	u8 ttl;

	if (likely(learning.skb != skb))
		return;
	learning.skb = NULL;
	if (!route || route->dev != skb->dev || route->lwtstate || skb->dev == learning.to ||
	    skb->len != learning.length || learning.epoch != plait_epoch() || !plait_is_settled())
		return;
	if (!plait_flow_of(skb, &cut.flow, &ttl) || ttl + 1 != learning.ttl || !plait_flow_is_same(&cut.flow, &learning.flow) ||
	    !plait_is_plain_input(learning.to) || !plait_is_plain_output(skb->dev) ||
	    !plait_is_plain_node(dev_net(skb->dev), skb->protocol))
		return;
	cut.neighbour = cut.flow.version == PLAIT_V4 ? plait_v4_route(skb, &cut) : plait_v6_route(skb, &cut);
	if (!cut.neighbour || cut.neighbour->dev != skb->dev || !plait_sends_to(cut.neighbour, skb) ||
	    skb->priority > U8_MAX || LL_RESERVED_SPACE(skb->dev) > U8_MAX)
		return;
	cut.epoch = learning.epoch;
	cut.priority = skb->priority;
	cut.reserve = LL_RESERVED_SPACE(skb->dev);
	cut.next = next;
	cut.from = skb->dev;
	cut.sent = skb->dev->tstats;
	place = plait_cuts_place(learning.line, &cut.flow, cut.epoch);
	if (place)
		*place = cut;
}

void plait_cut_done(void)
{
	learning.skb = NULL;
}

/* --- Forwarding --------------------------------------------------------------------------------------------------- */

/* What net/core, ip_rcv, ip_forward and ip_output do to the counters and the header. */
static void plait_pass_v4(struct net *net, struct sk_buff *skb)
{
	struct iphdr *ip = (struct iphdr *)skb->data;

	__IP_UPD_PO_STATS(net, IPSTATS_MIB_IN, skb->len);
	__IP_ADD_STATS(net, IPSTATS_MIB_NOECTPKTS + (ip->tos & INET_ECN_MASK),
		       max_t(unsigned short, 1, skb_shinfo(skb)->gso_segs));
	__IP_INC_STATS(net, IPSTATS_MIB_OUTFORWDATAGRAMS);
	ip_decrease_ttl(ip);
	IP_UPD_PO_STATS(net, IPSTATS_MIB_OUT, skb->len);
	skb_set_transport_header(skb, sizeof(*ip));
}

static void plait_pass_v6(struct net *net, struct sk_buff *skb, const struct net_device *to,
			  const struct net_device *from)
{
	struct inet6_dev *in = __in6_dev_get(to), *out = __in6_dev_get(from);
	struct ipv6hdr *ip = (struct ipv6hdr *)skb->data;

	__IP6_UPD_PO_STATS(net, in, IPSTATS_MIB_IN, skb->len);
	__IP6_ADD_STATS(net, in, IPSTATS_MIB_NOECTPKTS + (ipv6_get_dsfield(ip) & INET_ECN_MASK),
			max_t(unsigned short, 1, skb_shinfo(skb)->gso_segs));
	__IP6_INC_STATS(net, out, IPSTATS_MIB_OUTFORWDATAGRAMS);
	ip->hop_limit--;
	IP6_UPD_PO_STATS(net, out, IPSTATS_MIB_OUT, skb->len);
	skb_set_transport_header(skb, sizeof(*ip));
}

static void plait_put_header(struct sk_buff *skb, struct neighbour *neighbour)
{
	const struct hh_cache *hh = &neighbour->hh;
	unsigned int sequence;

	if (!(READ_ONCE(neighbour->nud_state) & NUD_CONNECTED) && READ_ONCE(neighbour->used) != jiffies)
		WRITE_ONCE(neighbour->used, jiffies);	/* as neigh_event_send() does */
	do {
		sequence = read_seqbegin(&hh->hh_lock);
		memcpy(skb->data - HH_DATA_MOD, hh->hh_data, HH_DATA_MOD);
	} while (read_seqretry(&hh->hh_lock, sequence));
	__skb_push(skb, ETH_HLEN);
	skb_reset_mac_header(skb);
}

/* dev_sw_netstats_tx_add */
static void plait_count_sent(const struct plait_cut *cut, unsigned int bytes)
{
	struct pcpu_sw_netstats *sent = this_cpu_ptr(cut->sent);

	u64_stats_update_begin(&sent->syncp);
	u64_stats_add(&sent->tx_bytes, bytes);
	u64_stats_inc(&sent->tx_packets);
	u64_stats_update_end(&sent->syncp);
}

/* False: the stack has to, and the packet is as it was. */
static bool plait_forward(const struct plait_cut *cut, struct net_device *to, struct sk_buff *skb)
{
	struct net_device *from = cut->from;
	struct net *net = dev_net(to);
	unsigned int bytes = skb->len;

	if (bytes - ETH_HLEN > cut->mtu || !plait_is_reached(cut->neighbour))
		return false;
	__skb_pull(skb, ETH_HLEN);
	if (unlikely(skb_cow(skb, cut->flow.version == PLAIT_V4 ? cut->reserve : ETH_HLEN) ||
		     skb_headroom(skb) < cut->reserve)) {
		__skb_push(skb, ETH_HLEN);
		return false;
	}
	skb_scrub_packet(skb, !net_eq(net, dev_net(skb->dev)));
	skb_reset_redirect(skb);
	skb_reset_network_header(skb);
	skb->mac_len = ETH_HLEN;
	skb->tstamp = 0;
	skb->tstamp_type = 0;
	skb->skb_iif = to->ifindex;
	skb->priority = cut->priority;
	dev_sw_netstats_rx_add(to, bytes);
	__this_cpu_inc(softnet_data.processed);
	if (cut->flow.version == PLAIT_V4)
		plait_pass_v4(net, skb);
	else
		plait_pass_v6(net, skb, to, from);
	sock_confirm_neigh(skb, cut->neighbour);
	skb->dev = from;
	plait_put_header(skb, cut->neighbour);
	plait_count_sent(cut, bytes);
	cut_through++;
	plait_line_send(cut->next, skb);
	return true;
}

bool plait_cut_through(struct plait_line *line, struct net_device *to, struct sk_buff *skb)
{
	const struct plait_cut *cut = NULL;
	u32 epoch = plait_epoch();

	if (!is_on || !plait_is_settled() || !plait_flow_of(skb, &learning.flow, &learning.ttl) ||
	    !ether_addr_equal_64bits(skb->data, to->dev_addr) ||
	    skb->len > to->mtu + to->hard_header_len + VLAN_HLEN)
		return false;
	if (line->cuts)
		cut = plait_cuts_find(line->cuts, &learning.flow, epoch);
	if (cut)
		return plait_forward(cut, to, skb);
	learning.skb = skb;
	learning.line = line;
	learning.to = to;
	learning.epoch = epoch;
	learning.length = skb->len;
	return false;
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

static int plait_neighbour_changed(struct notifier_block *block, unsigned long event, void *neighbour)
{
	if (event == NETEVENT_NEIGH_UPDATE)
		net_epoch_advance();
	return NOTIFY_DONE;
}

void plait_cut_start(void)
{
	static struct notifier_block block = { .notifier_call = plait_neighbour_changed };

	register_netevent_notifier(&block);
}

#endif
