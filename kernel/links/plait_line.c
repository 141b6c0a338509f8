// SPDX-License-Identifier: GPL-2.0
/* plait_line: one direction of a link. A queue, a line with a rate, and a delay.
 *
 * The model. A packet of n bytes (Ethernet header and what follows, as skb->len has it) enters at `now`:
 *
 *   lost?       memoryless, or by the model of Gilbert and Elliott: it is gone
 *   corrupted?  one bit of it, any, is inverted
 *   queue       drop-tail: with as many packets (or bytes) waiting as the limit allows, it is gone;
 *               or a qdisc, which the line asks for a packet at the very instant at which it is free
 *   duplicated? a copy follows it into the queue
 *
 *   start     = max(now, when the line is free), in the order of the queue
 *   begin     = max(start, when the bucket has n bytes of tokens)
 *   departure = begin + 8 n / rate                           the line is free again
 *   arrival   = departure + delay + jitter                   and not before that of an earlier packet, unless jitter may
 *                                                            change the order; a reordered packet: departure
 *
 * The line is a server: the first packet after silence needs its own transmission time, like any other. Remainders of
 * the division are kept while the line is busy (plait_link_rules.h). A packet that has started is on the line: a change
 * of conditions moves neither its departure nor its arrival; it concerns all packets that start later, also those
 * that wait. A device that goes down loses what waits for its line, as a network card loses its queue. What it has
 * started arrives. What arrives at a device that is down is gone.
 *
 * Time. With a drop-tail queue and without reordering, nobody sees when a packet starts: the starts up to now are
 * computed when something happens (plait_line_advance), and events are for arrivals only. Otherwise there is also one
 * when the line is free. Events run in softirq (plait_agenda.c), like a packet from a network card. What arrives at once
 * (no rate, no delay) goes through the backlog of the receiver.
 *
 * The skb is orphaned as it enters, as on a wire: TCP's small queues see a network card that has sent it.
 *
 * Generators are the kernel's prandom, one for each purpose, seeded by SEED: the same arrivals, the same draws.
 *
 * Locking: line->lock (with bottom halves off), and below it the lock of the qdisc. Delivery holds neither.
 */

#include <linux/etherdevice.h>
#include <linux/ktime.h>
#include <linux/prefetch.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <net/pkt_sched.h>

#include "plait_line.h"

/* Of their own: in a cache of a power of two, the same fields of all lines would be in few sets of the caches. */
static struct kmem_cache *plait_lines;

struct plait_cb {
	u64 at;		/* arrival */
};

static struct plait_cb *plait_cb(struct sk_buff *skb)
{
	return (struct plait_cb *)skb->cb;
}

static u32 plait_draw(struct plait_line *line, enum plait_draw purpose)
{
	return prandom_u32_state(&line->draw[purpose]);
}

static bool plait_drawn(struct plait_line *line, enum plait_draw purpose, u32 probability)
{
	return probability && plait_link_happens(probability, plait_draw(line, purpose));
}

/* --- On the way ------------------------------------------------------------------------------------------------- */

static struct sk_buff *plait_first_early(const struct plait_line *line)
{
	struct rb_node *node = rb_first(&line->early);

	return node ? rb_to_skb(node) : NULL;
}

/* The packet that arrives next. Of two at the same instant, that which the tree does not hold. */
static struct sk_buff *plait_next_arrival(const struct plait_line *line)
{
	struct sk_buff *skb = skb_peek(&line->flight), *early;

	if (likely(RB_EMPTY_ROOT(&line->early)))
		return skb;
	early = plait_first_early(line);
	return !skb || plait_cb(early)->at < plait_cb(skb)->at ? early : skb;
}

static void plait_fly(struct plait_line *line, struct sk_buff *skb, u64 at)
{
	struct sk_buff *last = skb_peek_tail(&line->flight);
	struct rb_node **link = &line->early.rb_node, *parent = NULL;

	plait_cb(skb)->at = at;
	if (likely(!last || at >= plait_cb(last)->at)) {
		__skb_queue_tail(&line->flight, skb);
		return;
	}
	while (*link) {
		parent = *link;
		link = at >= plait_cb(rb_to_skb(parent))->at ? &parent->rb_right : &parent->rb_left;
	}
	rb_link_node(&skb->rbnode, parent, link);
	rb_insert_color(&skb->rbnode, &line->early);
	line->early_count++;
}

static void plait_land(struct plait_line *line, struct sk_buff *skb, bool is_up)
{
	if (skb == skb_peek(&line->flight)) {
		__skb_unlink(skb, &line->flight);
	} else {
		rb_erase(&skb->rbnode, &line->early);
		line->early_count--;
		skb->next = NULL;
		skb->prev = NULL;
		skb->dev = line->from;	/* shares its place with rbnode */
	}
	if (unlikely(!is_up)) {
		line->count.down++;
		return;
	}
	line->count.packets++;
	line->count.bytes += skb->len;
}

/* Takes all that has arrived by `now`. */
static void plait_arrivals(struct plait_line *line, u64 now, struct sk_buff_head *out)
{
	const struct net_device *to = rcu_dereference(line->to);
	struct sk_buff *skb;

	while ((skb = plait_next_arrival(line)) && plait_cb(skb)->at <= now) {
		bool is_up = to && READ_ONCE(to->flags) & IFF_UP;

		plait_land(line, skb, is_up);
		__skb_queue_tail(out, skb);
	}
}

static void plait_deliver(struct plait_line *line, struct sk_buff_head *arrived, bool at_once)
{
	struct net_device *to = rcu_dereference(line->to);
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(arrived))) {
		unsigned int bytes = skb->len;

		skb->tstamp = 0;
		skb->tstamp_type = 0;
		if (unlikely(!to)) {
			kfree_skb(skb);
			continue;
		}
		if (!at_once && plait_cut_through(line, to, skb))
			continue;
		if (likely(__dev_forward_skb(to, skb) == NET_RX_SUCCESS)) {
			dev_sw_netstats_rx_add(to, bytes);
			if (at_once)
				netif_rx(skb);
			else
				netif_receive_skb(skb);
		}
		plait_cut_done();
	}
}

/* --- The line --------------------------------------------------------------------------------------------------- */

static void plait_start(struct plait_line *line, struct sk_buff *skb, u64 start)
{
	const struct plait_conditions *is = &line->is;
	u64 waited = start - skb->tstamp, at;

	line->count.sojourn_ns += waited;
	line->sojourn[plait_sojourn_bin(waited)]++;
	if (line->bucket.rate)
		start = plait_bucket_take(&line->bucket, start, skb->len);
	if (is->rate) {
		plait_instant_add(&line->free, start, skb->len, is->rate);
	} else if (start > line->free.ns) {
		line->free.ns = start;
		line->free.rest = 0;
	}
	at = line->free.ns;
	if (plait_drawn(line, PLAIT_DRAW_REORDER, is->reorder)) {
		line->count.reordered++;
	} else {
		u32 draw = is->jitter ? plait_draw(line, PLAIT_DRAW_JITTER) : 0;
		const struct plait_table *table = line->table;

		at += plait_link_delay(is->delay, is->jitter, table ? table->value : NULL, table ? table->size : 0, draw);
		if (!is->overtaking)
			at = max(at, line->last_arrival);
		line->last_arrival = at;
	}
	plait_fly(line, skb, at);
}

u32 plait_line_waiting(const struct plait_line *line)
{
	const struct Qdisc *qdisc = line->qdisc;

	if (!qdisc)
		return skb_queue_len(&line->queue);
	return qdisc_is_percpu_stats(qdisc) ? qdisc_qlen_sum(qdisc) : qdisc->q.qlen;
}

static struct sk_buff *plait_next(struct plait_line *line)
{
	struct Qdisc *qdisc = line->qdisc;
	struct sk_buff *skb;

	if (!qdisc) {
		skb = __skb_dequeue(&line->queue);
		if (!skb)
			return NULL;
		line->count.queue_bytes -= skb->len;
		prefetch(line->queue.next);
		prefetch(&line->queue.next->len);
		return skb;
	}
	spin_lock(qdisc_lock(qdisc));
	skb = qdisc->dequeue(qdisc);
	spin_unlock(qdisc_lock(qdisc));
	if (skb) {
		skb_mark_not_on_list(skb);
		skb->prev = NULL;
	}
	return skb;
}

/* Starts what waits, up to now. With a qdisc the line comes here when it is free, not later. */
void plait_line_advance(struct plait_line *line, u64 now)
{
	struct sk_buff *skb;

	while (plait_line_waiting(line) && line->free.ns <= now) {
		skb = plait_next(line);
		if (!skb)
			break;
		plait_start(line, skb, line->qdisc ? now : max_t(u64, line->free.ns, skb->tstamp));
	}
}

/* Asks for an event when something happens next. */
void plait_line_arm(struct plait_line *line)
{
	struct sk_buff *first = plait_next_arrival(line);
	u64 next = first ? plait_cb(first)->at : PLAIT_NEVER;

	if (plait_line_waiting(line) && (line->qdisc || line->is.overtaking || line->is.reorder || !first))
		next = min(next, line->free.ns);
	if (next != line->next.at)
		plait_agenda_set(line, next);
}

void plait_line_event(struct plait_line *line, u64 now)
{
	struct sk_buff_head arrived;

	__skb_queue_head_init(&arrived);
	spin_lock(&line->lock);
	plait_line_advance(line, now);
	plait_arrivals(line, now, &arrived);
	plait_line_arm(line);
	spin_unlock(&line->lock);
	plait_agenda_foresee();
	plait_deliver(line, &arrived, false);
}

/* --- Into the queue --------------------------------------------------------------------------------------------- */

static bool plait_loses(struct plait_line *line)
{
	const struct plait_ge *ge = &line->is.ge;

	if (ge->to_bad | ge->to_good | ge->loss_bad | ge->loss_good) {
		u32 change = plait_draw(line, PLAIT_DRAW_LOSS);

		return plait_ge_loses(ge, &line->bad, change, plait_draw(line, PLAIT_DRAW_LOSS));
	}
	return plait_drawn(line, PLAIT_DRAW_LOSS, line->is.loss);
}

/* Inverts one bit. The checksum is completed before, so that the receiver can see it. NULL: no memory. */
static struct sk_buff *plait_corrupted(struct plait_line *line, struct sk_buff *skb)
{
	u32 byte = plait_draw(line, PLAIT_DRAW_CORRUPT), bit = plait_draw(line, PLAIT_DRAW_CORRUPT);

	skb = skb_unshare(skb, GFP_ATOMIC);
	if (!skb)
		return NULL;
	if (skb_linearize(skb) || (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb))) {
		kfree_skb(skb);
		return NULL;
	}
	skb->ip_summed = CHECKSUM_NONE;
	skb->data[byte % skb->len] ^= 1 << bit % 8;
	line->count.corrupted++;
	return skb;
}

static bool plait_has_room(const struct plait_line *line, const struct sk_buff *skb)
{
	const struct plait_conditions *is = &line->is;

	if (is->queue_packets && skb_queue_len(&line->queue) >= is->queue_packets)
		return false;
	return !is->queue_bytes || line->count.queue_bytes + skb->len <= is->queue_bytes;
}

static void plait_into_qdisc(struct plait_line *line, struct sk_buff *skb)
{
	struct Qdisc *qdisc = line->qdisc;
	struct sk_buff *to_free = NULL;

	memset(skb->cb, 0, sizeof(struct qdisc_skb_cb));
	qdisc_skb_cb(skb)->pkt_len = skb->len;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
	spin_lock(qdisc_lock(qdisc));
	qdisc->enqueue(skb, qdisc, &to_free);
	spin_unlock(qdisc_lock(qdisc));
	if (to_free)
		kfree_skb_list_reason(to_free, SKB_DROP_REASON_QDISC_DROP);
}

static void plait_enter(struct plait_line *line, struct sk_buff *skb, u64 now)
{
	skb->tstamp = now;
	if (line->qdisc) {
		plait_into_qdisc(line, skb);
	} else if (line->free.ns <= now && skb_queue_empty(&line->queue)) {
		plait_start(line, skb, now);
		return;
	} else if (plait_has_room(line, skb)) {
		__skb_queue_tail(&line->queue, skb);
		line->count.queue_bytes += skb->len;
	} else {
		line->count.overflow++;
		kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
	}
	plait_line_advance(line, now);
}

void plait_line_send(struct plait_line *line, struct sk_buff *skb)
{
	struct sk_buff *copy = NULL;
	struct sk_buff_head arrived;
	u64 now;

	__skb_queue_head_init(&arrived);
	skb_orphan(skb);
	spin_lock(&line->lock);
	now = plait_agenda_now();
	plait_line_advance(line, now);
	if (plait_loses(line)) {
		line->count.lost++;
		kfree_skb(skb);
		goto out;
	}
	if (plait_drawn(line, PLAIT_DRAW_CORRUPT, line->is.corrupt)) {
		skb = plait_corrupted(line, skb);
		if (!skb)
			goto out;
	}
	if (plait_drawn(line, PLAIT_DRAW_DUPLICATE, line->is.duplicate)) {
		copy = skb_clone(skb, GFP_ATOMIC);
		line->count.duplicated += !!copy;
	}
	plait_enter(line, skb, now);
	if (copy)
		plait_enter(line, copy, now);
	/* at once; not while an event is due for earlier ones */
	if (line->next.at > now)
		plait_arrivals(line, now, &arrived);
out:
	plait_line_arm(line);
	spin_unlock(&line->lock);
	if (unlikely(!skb_queue_empty(&arrived)))
		plait_deliver(line, &arrived, true);
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

struct plait_line *plait_line_make(struct net_device *from)
{
	struct plait_line *line = kmem_cache_zalloc(plait_lines, GFP_KERNEL);

	if (!line)
		return NULL;
	spin_lock_init(&line->lock);
	__skb_queue_head_init(&line->queue);
	__skb_queue_head_init(&line->flight);
	INIT_LIST_HEAD(&line->list);
	line->early = RB_ROOT;
	line->from = from;
	if (!plait_agenda_join(line))
		return line;
	kmem_cache_free(plait_lines, line);
	return NULL;
}

void plait_line_lose_queue(struct plait_line *line)
{
	struct Qdisc *qdisc = line->qdisc;

	spin_lock_bh(&line->lock);
	plait_line_advance(line, ktime_get_ns());
	line->count.down += plait_line_waiting(line);
	if (qdisc) {
		spin_lock(qdisc_lock(qdisc));
		qdisc_reset(qdisc);
		spin_unlock(qdisc_lock(qdisc));
	}
	__skb_queue_purge(&line->queue);
	line->count.queue_bytes = 0;
	plait_line_arm(line);
	spin_unlock_bh(&line->lock);
}

void plait_line_free(struct plait_line *line)
{
	struct sk_buff *skb;

	list_del(&line->list);
	plait_agenda_leave(line);
	plait_cut_free(line);
	__skb_queue_purge(&line->queue);
	while ((skb = plait_next_arrival(line))) {
		plait_land(line, skb, false);
		kfree_skb(skb);
	}
	qdisc_put(line->qdisc);
	kfree(line->place);
	kfree(line->table);
	kmem_cache_free(plait_lines, line);
}

int plait_line_start(void)
{
	plait_lines = KMEM_CACHE(plait_line, SLAB_HWCACHE_ALIGN);
	return plait_lines ? 0 : -ENOMEM;
}

void plait_line_stop(void)
{
	kmem_cache_destroy(plait_lines);
}
