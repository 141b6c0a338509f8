/* SPDX-License-Identifier: GPL-2.0 */
/* What a module says of itself to the kernel; a BPF program says it in its struct_ops. */
#include "kernel.h"

#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define __read_mostly
#define __init __attribute__((unused))
#define __exit __attribute__((unused))
#define THIS_MODULE NULL
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define module_init(function)
#define module_exit(function)
#define tcp_register_congestion_control(ops) ((void)(ops), 0)
#define tcp_unregister_congestion_control(ops) ((void)(ops))
