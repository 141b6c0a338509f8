/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between the kernels that plait builds (6.12 and 7.x), in one place. */
#ifndef PLAIT_COMPAT_H
#define PLAIT_COMPAT_H

#include <linux/version.h>
#include <net/mptcp.h>

#include "protocol.h"

/* The scheduler interface: one callback with a flag for reinjection until 6.14, one for each since.
 * PLAIT_SCHED_CALLBACKS(id, send, resend) defines what PLAIT_SCHED_FIELDS(id) names in a struct mptcp_sched_ops;
 * send and resend are expressions over the connection msk, 0 or a negative error.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)

#define PLAIT_SCHED_CALLBACKS(id, send, resend)					\
static int id##_get_send(struct mptcp_sock *msk)					\
{											\
	return send;									\
}											\
											\
static int id##_get_retrans(struct mptcp_sock *msk)					\
{											\
	return resend;								\
}
#define PLAIT_SCHED_FIELDS(id)	.get_send = id##_get_send, .get_retrans = id##_get_retrans

#else

#define PLAIT_SCHED_CALLBACKS(id, send, resend)					\
static int id##_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)	\
{											\
	return data->reinject ? (resend) : (send);					\
}
#define PLAIT_SCHED_FIELDS(id)	.get_subflow = id##_get_subflow

#endif

#endif
