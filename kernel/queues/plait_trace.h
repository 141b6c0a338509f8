/* SPDX-License-Identifier: GPL-2.0 */
/* What user space and sch_plait_trace.c say to each other. */
#ifndef PLAIT_TRACE_H
#define PLAIT_TRACE_H

#include <linux/types.h>

/* Attributes of TCA_OPTIONS for the qdisc "plait_trace". */
enum {
	TCA_PLAIT_TRACE_UNSPEC,
	TCA_PLAIT_TRACE_BYTES,	/* u32: network-layer bytes that an opportunity carries; 1500 unless given */
	TCA_PLAIT_TRACE_PERIOD,	/* u32: us after which the list begins again; 0, the default: never */
	TCA_PLAIT_TRACE_TIMES,	/* u32[]: times of opportunities in us; added to those before, before the start */
	TCA_PLAIT_TRACE_START,	/* u64: ns of CLOCK_MONOTONIC; once, when the list is complete */
	__TCA_PLAIT_TRACE_MAX,
};
#define TCA_PLAIT_TRACE_MAX (__TCA_PLAIT_TRACE_MAX - 1)

/* TCA_STATS_APP: opportunities that carried something, and that passed while the queue was empty. */
struct plait_trace_xstats {
	__u64	used;
	__u64	unused;
};

#endif
