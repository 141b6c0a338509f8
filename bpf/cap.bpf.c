// SPDX-License-Identifier: GPL-2.0
/* The cap on the share of each path, for stock kernels. */

#include "coupled.h"

#define tcp_congestion_ops plait_module_ops
#include "cap.c"
#undef tcp_congestion_ops

PLAIT_CONGESTION_CONTROL(cap, tcp_reno_ssthresh, plait_coupled_set_state, cap_pkts_acked);
