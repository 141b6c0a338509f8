// SPDX-License-Identifier: GPL-2.0
/* plait_link: a link between two namespaces, a pair of network devices with all conditions of the link between them.
 *
 *      node A                                                      node B
 *   +---------+   out of A: plait_line (queue, rate, delay, loss)  +---------+
 *   | device  | -------------------------------------------------> | device  |
 *   |         | <------------------------------------------------- |         |
 *   +---------+   out of B: another plait_line                     +---------+
 *
 * To its node a device is a fast network card: what the node sends leaves at once, and the link treats it afterwards
 * (plait_line.c). So a qdisc of the node sees no queue, and a sender none of the packets that the link still holds.
 *
 * `ip link add` makes a pair as with veth (PLAIT_LINK_PEER), with the conditions of both directions; a change of a device
 * names conditions of either direction. IFLA_INFO_XSTATS has the counters of the direction that leaves the device.
 * The generic netlink family plait_link dumps those of all links that were made from a namespace, wherever their
 * devices are.
 *
 * A frame is one skb: the devices segment nothing, so the kernel does before. Checksums are not computed unless a
 * bit is inverted, as with veth. The carrier is on while both ends are up.
 *
 * Locking: RTNL for everything but packets, which are under RCU (the peer) and the lock of their line.
 */

#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/version.h>
#include <net/dst.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#include <net/netdev_lock.h>
#endif
#include <net/rtnetlink.h>

#include "plait_line.h"

#define PLAIT_FEATURES	(NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_HW_CSUM | NETIF_F_RXCSUM | NETIF_F_HIGHDMA)

struct plait_end {
	struct net_device __rcu *peer;
	struct plait_line *out;
};

static struct rtnl_link_ops plait_link_ops;

static struct plait_end *plait_end(const struct net_device *dev)
{
	return netdev_priv(dev);
}

/* --- The device --------------------------------------------------------------------------------------------------- */

static netdev_tx_t plait_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct plait_end *end = plait_end(dev);

	rcu_read_lock();
	if (unlikely(!rcu_dereference(end->peer) || skb_orphan_frags(skb, GFP_ATOMIC) || skb_is_gso(skb))) {
		dev_core_stats_tx_dropped_inc(dev);
		kfree_skb(skb);
	} else {
		dev_sw_netstats_tx_add(dev, 1, skb->len);
		skb_tx_timestamp(skb);
		plait_cut_learn(end->out, skb);
		skb_dst_drop(skb);
		plait_line_send(end->out, skb);
	}
	rcu_read_unlock();
	return NETDEV_TX_OK;
}

static int plait_open(struct net_device *dev)
{
	struct net_device *peer = rtnl_dereference(plait_end(dev)->peer);

	/* Before there is a peer the carrier stays on, so that the queue is active at once and not when the kernel's
	 * link watch comes to it, which takes seconds with many devices.
	 */
	if (peer && peer->flags & IFF_UP) {
		netif_carrier_on(dev);
		netif_carrier_on(peer);
	} else if (peer) {
		netif_carrier_off(dev);
	}
	return 0;
}

static int plait_stop(struct net_device *dev)
{
	struct net_device *peer = rtnl_dereference(plait_end(dev)->peer);

	netif_carrier_off(dev);
	if (peer)
		netif_carrier_off(peer);
	plait_line_lose_queue(plait_end(dev)->out);
	return 0;
}

static int plait_init(struct net_device *dev)
{
	struct plait_end *end = plait_end(dev);

	netdev_lockdep_set_classes(dev);
	end->out = plait_line_make(dev);
	return end->out ? 0 : -ENOMEM;
}

/* Nothing sends any more, and no peer is left that could. */
static void plait_uninit(struct net_device *dev)
{
	plait_line_free(plait_end(dev)->out);
}

static int plait_get_iflink(const struct net_device *dev)
{
	struct net_device *peer;
	int index;

	rcu_read_lock();
	peer = rcu_dereference(plait_end(dev)->peer);
	index = peer ? READ_ONCE(peer->ifindex) : 0;
	rcu_read_unlock();
	return index;
}

static const struct net_device_ops plait_netdev_ops = {
	.ndo_init		= plait_init,
	.ndo_uninit		= plait_uninit,
	.ndo_open		= plait_open,
	.ndo_stop		= plait_stop,
	.ndo_start_xmit		= plait_xmit,
	.ndo_set_mac_address	= eth_mac_addr,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_get_iflink		= plait_get_iflink,
	.ndo_features_check	= passthru_features_check,
};

static void plait_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, "plait_link", sizeof(info->driver));
}

static const struct ethtool_ops plait_ethtool_ops = {
	.get_drvinfo	= plait_get_drvinfo,
	.get_link	= ethtool_op_get_link,
	.get_ts_info	= ethtool_op_get_ts_info,
};

static void plait_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->priv_flags &= ~IFF_TX_SKB_SHARING;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE | IFF_NO_QUEUE | IFF_DISABLE_NETPOLL;
	dev->lltx = true;
	dev->netdev_ops = &plait_netdev_ops;
	dev->ethtool_ops = &plait_ethtool_ops;
	dev->features |= PLAIT_FEATURES;
	dev->hw_features = PLAIT_FEATURES;
	dev->vlan_features = PLAIT_FEATURES;
	if (PLAIT_CUTS)
		netif_keep_dst(dev);	/* plait_cut_learn reads it */
	dev->needs_free_netdev = true;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	dev->max_mtu = ETH_MAX_MTU;
}

/* --- Making, changing and removing a pair ------------------------------------------------------------------------- */

static const struct nla_policy plait_link_policy[PLAIT_LINK_MAX + 1] = {
	[PLAIT_LINK_PEER]	= { .type = NLA_BINARY },
	[PLAIT_LINK_OUT]	= { .type = NLA_NESTED },
	[PLAIT_LINK_IN]		= { .type = NLA_NESTED },
};

static int plait_validate(struct nlattr *tb[], struct nlattr *data[], struct netlink_ext_ack *extack)
{
	if (tb[IFLA_ADDRESS] && (nla_len(tb[IFLA_ADDRESS]) != ETH_ALEN ||
				 !is_valid_ether_addr(nla_data(tb[IFLA_ADDRESS])))) {
		NL_SET_ERR_MSG_ATTR(extack, tb[IFLA_ADDRESS], "this is no Ethernet address of a device");
		return -EADDRNOTAVAIL;
	}
	if (tb[IFLA_MTU] && (nla_get_u32(tb[IFLA_MTU]) < ETH_MIN_MTU || nla_get_u32(tb[IFLA_MTU]) > ETH_MAX_MTU)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[IFLA_MTU], "the MTU of a link is 68 to 65535");
		return -EINVAL;
	}
	return 0;
}

static int plait_changelink(struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
			    struct netlink_ext_ack *extack)
{
	struct net_device *peer = rtnl_dereference(plait_end(dev)->peer);
	int err = 0;

	if (data && data[PLAIT_LINK_OUT])
		err = plait_line_change(plait_end(dev)->out, data[PLAIT_LINK_OUT], extack);
	if (!err && data && data[PLAIT_LINK_IN] && peer)
		err = plait_line_change(plait_end(peer)->out, data[PLAIT_LINK_IN], extack);
	return err;
}

static void plait_connect(struct net_device *dev, struct net_device *peer, u64 home)
{
	struct plait_end *end = plait_end(dev);

	plait_line_list(end->out, home);
	rcu_assign_pointer(end->out->to, peer);
	rcu_assign_pointer(end->peer, peer);
}

/* The other end, registered in its namespace and configured, but not connected. */
static struct net_device *plait_make_peer(struct net *net, struct ifinfomsg *ifmp, struct nlattr *tb[],
					  bool is_numbered, struct netlink_ext_ack *extack)
{
	char ifname[IFNAMSIZ] = "plait%d";
	struct net_device *peer;
	int err;

	if (tb[IFLA_IFNAME])
		nla_strscpy(ifname, tb[IFLA_IFNAME], IFNAMSIZ);
	peer = rtnl_create_link(net, ifname, tb[IFLA_IFNAME] ? NET_NAME_USER : NET_NAME_ENUM, &plait_link_ops, tb, extack);
	if (IS_ERR(peer))
		return peer;
	if (!tb[IFLA_ADDRESS])
		eth_hw_addr_random(peer);
	if (is_numbered)
		peer->ifindex = ifmp->ifi_index;
	err = register_netdevice(peer);
	if (err) {
		free_netdev(peer);
		return ERR_PTR(err);
	}
	err = rtnl_configure_link(peer, ifmp, 0, NULL);
	if (err) {
		unregister_netdevice(peer);
		return ERR_PTR(err);
	}
	return peer;
}

static int plait_make(struct net_device *dev, struct net *home, struct net *peer_net, struct nlattr *tb[],
		      struct nlattr *data[], struct nlattr *peer_tb[], struct netlink_ext_ack *extack)
{
	struct net_device *peer;
	int err;

	peer = plait_make_peer(peer_net, nla_data(data[PLAIT_LINK_PEER]), peer_tb, dev->ifindex != 0, extack);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	if (!tb[IFLA_ADDRESS])
		eth_hw_addr_random(dev);
	err = register_netdevice(dev);
	if (err)
		goto no_device;
	plait_connect(dev, peer, home->net_cookie);
	plait_connect(peer, dev, home->net_cookie);
	err = plait_changelink(dev, tb, data, extack);
	if (err)
		goto no_conditions;
	return 0;

no_conditions:
	RCU_INIT_POINTER(plait_end(peer)->peer, NULL);
	RCU_INIT_POINTER(plait_end(peer)->out->to, NULL);
	unregister_netdevice(dev);
no_device:
	unregister_netdevice(peer);
	return err;
}

static int plait_read_peer(struct nlattr *data[], struct nlattr *peer_tb[], struct netlink_ext_ack *extack)
{
	int err;

	if (!data || !data[PLAIT_LINK_PEER] || nla_len(data[PLAIT_LINK_PEER]) < (int)sizeof(struct ifinfomsg)) {
		NL_SET_ERR_MSG(extack, "a link needs PLAIT_LINK_PEER, its other end");
		return -EINVAL;
	}
	err = rtnl_nla_parse_ifinfomsg(peer_tb, data[PLAIT_LINK_PEER], extack);
	return err < 0 ? err : plait_validate(peer_tb, NULL, extack);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
static int plait_newlink(struct net_device *dev, struct rtnl_newlink_params *params, struct netlink_ext_ack *extack)
{
	struct nlattr *peer_tb[IFLA_MAX + 1];
	int err = plait_read_peer(params->data, peer_tb, extack);

	return err ?: plait_make(dev, params->src_net, rtnl_newlink_peer_net(params), params->tb, params->data, peer_tb, extack);
}
#else
static int plait_newlink(struct net *src_net, struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
			 struct netlink_ext_ack *extack)
{
	struct nlattr *peer_tb[IFLA_MAX + 1];
	struct net *peer_net;
	int err = plait_read_peer(data, peer_tb, extack);

	if (err)
		return err;
	peer_net = rtnl_link_get_net(src_net, peer_tb);
	if (IS_ERR(peer_net))
		return PTR_ERR(peer_net);
	err = plait_make(dev, src_net, peer_net, tb, data, peer_tb, extack);
	put_net(peer_net);
	return err;
}
#endif

static void plait_dellink(struct net_device *dev, struct list_head *head)
{
	struct net_device *peer = rtnl_dereference(plait_end(dev)->peer);

	RCU_INIT_POINTER(plait_end(dev)->peer, NULL);
	RCU_INIT_POINTER(plait_end(dev)->out->to, NULL);
	unregister_netdevice_queue(dev, head);
	if (peer) {
		RCU_INIT_POINTER(plait_end(peer)->peer, NULL);
		RCU_INIT_POINTER(plait_end(peer)->out->to, NULL);
		unregister_netdevice_queue(peer, head);
	}
}

static struct net *plait_get_link_net(const struct net_device *dev)
{
	struct net_device *peer = rtnl_dereference(plait_end(dev)->peer);

	return dev_net(peer ? peer : dev);
}

/* --- What netlink reads ------------------------------------------------------------------------------------------- */

static size_t plait_get_size(const struct net_device *dev)
{
	return 256;	/* plait_line_put */
}

static int plait_fill_info(struct sk_buff *skb, const struct net_device *dev)
{
	return plait_line_put(plait_end(dev)->out, skb, PLAIT_LINK_OUT);
}

static size_t plait_get_xstats_size(const struct net_device *dev)
{
	return sizeof(struct plait_line_counters);
}

static int plait_fill_xstats(struct sk_buff *skb, const struct net_device *dev)
{
	struct plait_line_counters xstats;

	plait_line_read(plait_end(dev)->out, &xstats);
	return nla_put(skb, IFLA_INFO_XSTATS, sizeof(xstats), &xstats);
}

static struct rtnl_link_ops plait_link_ops = {
	.kind			= "plait_link",
	.priv_size		= sizeof(struct plait_end),
	.setup			= plait_setup,
	.validate		= plait_validate,
	.newlink		= plait_newlink,
	.changelink		= plait_changelink,
	.dellink		= plait_dellink,
	.policy			= plait_link_policy,
	.maxtype		= PLAIT_LINK_MAX,
	.get_link_net		= plait_get_link_net,
	.get_size		= plait_get_size,
	.fill_info		= plait_fill_info,
	.get_xstats_size	= plait_get_xstats_size,
	.fill_xstats		= plait_fill_xstats,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	.peer_type		= PLAIT_LINK_PEER,
#endif
};

static int __init plait_link_register(void)
{
	int err = plait_line_start();

	if (err)
		return err;
	plait_agenda_start();
	plait_cut_start();
	err = plait_line_family_start();
	if (err)
		goto no_family;
	err = rtnl_link_register(&plait_link_ops);
	if (err)
		goto no_links;
	return 0;

no_links:
	plait_line_family_stop();
no_family:
	plait_line_stop();
	return err;
}

static void __exit plait_link_unregister(void)
{
	rtnl_link_unregister(&plait_link_ops);
	plait_line_family_stop();
	plait_agenda_stop();
	plait_line_stop();
}

module_init(plait_link_register);
module_exit(plait_link_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("plait: a link with a rate, a queue, a delay and losses");
