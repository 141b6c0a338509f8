/* SPDX-License-Identifier: GPL-2.0 */
/* What user space and plait_link say to each other. */
#ifndef PLAIT_LINK_H
#define PLAIT_LINK_H

#include <linux/types.h>

/* Attributes of IFLA_INFO_DATA for a device of the kind "plait_link". */
enum {
	PLAIT_LINK_UNSPEC,
	PLAIT_LINK_PEER,	/* struct ifinfomsg and attributes of the other end, as with veth; on creation */
	PLAIT_LINK_OUT,		/* nested: conditions of the direction that leaves this device */
	PLAIT_LINK_IN,		/* nested: those of the direction that arrives at it */
	__PLAIT_LINK_MAX,
};
#define PLAIT_LINK_MAX (__PLAIT_LINK_MAX - 1)

/* The conditions of a direction. A change keeps what it does not name. Probabilities are 0 .. 2^32 - 1 for 0 .. 1. */
enum {
	PLAIT_LINE_UNSPEC,
	PLAIT_LINE_NUMBER,		/* u32: what the direction is called in dumps of counters */
	PLAIT_LINE_RATE,		/* u64, bit/s; 0: no limit */
	PLAIT_LINE_DELAY,		/* u64, ns */
	PLAIT_LINE_JITTER,		/* u32, ns, below 2^31 */
	PLAIT_LINE_TABLE,		/* s16[], at most 16384: the distribution of the jitter; empty: uniform */
	PLAIT_LINE_OVERTAKING,		/* u8: 1: jitter may change the order of packets */
	PLAIT_LINE_LOSS,		/* u32 */
	PLAIT_LINE_GE,			/* u32[4]: to bad, to good, loss in bad, loss in good; all 0: memoryless */
	PLAIT_LINE_DUPLICATE,		/* u32 */
	PLAIT_LINE_REORDER,		/* u32: packets that take no delay */
	PLAIT_LINE_CORRUPT,		/* u32: packets with one inverted bit */
	PLAIT_LINE_QUEUE_PACKETS,	/* u32: limit of the drop-tail queue; 0: none */
	PLAIT_LINE_QUEUE_BYTES,		/* u32: limit of the drop-tail queue; 0: none */
	PLAIT_LINE_BUCKET_RATE,		/* u64, bit/s; 0: no bucket */
	PLAIT_LINE_BUCKET_BURST,	/* u32, bytes */
	PLAIT_LINE_SEED,		/* u64: starts all generators anew */
	PLAIT_LINE_QDISC,		/* string: a qdisc in place of the drop-tail queue; on creation */
	PLAIT_LINE_QDISC_OPTIONS,	/* nested: its TCA_OPTIONS */
	__PLAIT_LINE_MAX,
};
#define PLAIT_LINE_MAX (__PLAIT_LINE_MAX - 1)

/* What happens by chance to packets: X(name of the attribute, field of the conditions, number of its generator, which
 * decides the draws of a seed). Generators 0 and 4 draw losses and jitter.
 */
#define PLAIT_LINE_EFFECTS(X)			\
	X(DUPLICATE, duplicate, 1)		\
	X(CORRUPT, corrupt, 2)			\
	X(REORDER, reorder, 3)

/* The generic netlink family "plait_link": dumps all links that were made from a namespace. */
#define PLAIT_LINK_FAMILY	"plait_link"
#define PLAIT_LINK_VERSION	2	/* 1: had no PLAIT_LINK_CMD_SOJOURNS */
#define PLAIT_LINK_CMD_GET	1	/* the counters */
#define PLAIT_LINK_CMD_SOJOURNS	2	/* the times in the queue */

/* Attributes of a message, one per direction. */
enum {
	PLAIT_COUNT_UNSPEC,
	PLAIT_COUNT_NUMBER,	/* u32; in both dumps */
	PLAIT_COUNT_LINE,	/* struct plait_line_counters */
	PLAIT_COUNT_QDISC,	/* nested: TCA_STATS_BASIC, TCA_STATS_QUEUE and TCA_STATS_APP of the qdisc, if there is one */
	PLAIT_COUNT_PAD,
	PLAIT_COUNT_SOJOURNS,	/* u64[]: packets that left the queue for the line, by their time in it; up to the last bin
				 * that has any. plait_sojourn_bin (plait_link_rules.h) has the bins */
	__PLAIT_COUNT_MAX,
};

/* Counters of a direction. */
struct plait_line_counters {
	__u64	packets;		/* delivered at the other end */
	__u64	bytes;
	__u64	lost;			/* by the loss model */
	__u64	overflow;		/* found the drop-tail queue full */
	__u64	refused;		/* by the qdisc, when packets arrived or later */
	__u64	corrupted;
	__u64	duplicated;
	__u64	reordered;
	__u64	queue_packets;		/* that wait for the line now */
	__u64	queue_bytes;
	__u64	flying;			/* packets on the line now */
	__u64	tokens;			/* bytes in the bucket now; all bits set: there is no bucket */
	__u64	sojourn_ns;		/* sum of the times in the queue, of all packets that left it for the line */
	__u64	down;			/* waited as the sender went down, or arrived at a device that is down */
};

/* IFLA_INFO_XSTATS: struct plait_line_counters of the direction that leaves the device. */

#endif
