// SPDX-License-Identifier: GPL-2.0
/* OLIA for stock kernels: the source of the module, as BPF programs. */

#include "coupled.h"

#define tcp_congestion_ops plait_module_ops
#include "../kernel/congestion/olia.c"
#undef tcp_congestion_ops

PLAIT_CONGESTION_CONTROL(olia, olia_ssthresh, plait_coupled_set_state, plait_coupled_pkts_acked);
