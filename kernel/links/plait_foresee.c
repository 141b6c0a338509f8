// SPDX-License-Identifier: GPL-2.0
/* plait_foresee: asks the processor for the memory of events before they happen. It changes nothing else.
 *
 * Each step follows pointers whose memory the step before has asked for:
 *
 *   PLAIT_LATER   the line
 *   PLAIT_SOON    the packet that arrives next, and the device at which it arrives
 *   PLAIT_NEXT    the content of the packet, what is known of its flow, and the node
 */

#include <linux/inetdevice.h>
#include <linux/prefetch.h>

#include "plait_line.h"

/* Always inline: the compiler drops calls of functions that only prefetch. */
static __always_inline void plait_prefetch(const void *memory, size_t bytes)
{
	size_t offset;

	for (offset = 0; offset < bytes; offset += SMP_CACHE_BYTES)
		prefetch(memory + offset);
}

/* The heads of lists do no harm. */
static __always_inline void plait_foresee_packet(const struct plait_line *line, enum plait_distance distance)
{
	const struct sk_buff *first = line->flight.next, *waiting = line->queue.next;

	if (distance == PLAIT_SOON) {
		plait_prefetch(first, sizeof(*first));
		plait_prefetch(waiting, sizeof(*waiting) / 2);
	} else if (skb_peek(&line->flight)) {
		plait_prefetch(first->data, 2 * SMP_CACHE_BYTES);
		prefetch(skb_shinfo(first));
		plait_cut_foresee(line->cuts, first);
		prefetch(first->next);
		prefetch(waiting->next);
	}
}

static __always_inline void plait_foresee_node(const struct net_device *to, enum plait_distance distance)
{
	const struct net *net;
	const struct in_device *in;

	if (distance == PLAIT_SOON) {
		prefetch(&to->mtu);
		prefetch(&to->flags);
		prefetch(&to->tstats);
		prefetch(&to->rx_handler);
		prefetch(&to->ip_ptr);
		prefetch(&to->nd_net);
		prefetch(&to->dev_addr);
		return;
	}
	net = dev_net(to);
	in = rcu_dereference(to->ip_ptr);
	prefetch(to->dev_addr);
	prefetch(&net->mib.ip_statistics);
	prefetch(&net->ipv4.rt_genid);
	prefetch(&net->loopback_dev);
	if (in) {
		prefetch(in);
		prefetch(&in->cnf);
	}
}

void plait_line_foresee(struct plait_line *line, enum plait_distance distance)
{
	const struct net_device *to;

	if (distance == PLAIT_LATER) {
		prefetch(line);
		prefetch(&line->early);
		prefetch(&line->bucket);
		return;
	}
	if (!spin_trylock(&line->lock))
		return;
	if (distance == PLAIT_SOON) {
		prefetch(&line->is);
		prefetch(&line->last_arrival);
	}
	plait_foresee_packet(line, distance);
	spin_unlock(&line->lock);
	to = rcu_dereference(line->to);
	if (to)
		plait_foresee_node(to, distance);
}
