// SPDX-License-Identifier: GPL-2.0
/* wVegas for stock kernels: the source of the module, as BPF programs. */

#include "coupled.h"

#define tcp_congestion_ops plait_module_ops
#include "../kernel/congestion/wvegas.c"
#undef tcp_congestion_ops

PLAIT_CONGESTION_CONTROL(wvegas, tcp_reno_ssthresh, wvegas_set_state, wvegas_pkts_acked);
