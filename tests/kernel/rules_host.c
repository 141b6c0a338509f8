/* The rules of coupled congestion control as a library of the host, for test_rules.py. */
#include "plait_rules.h"

struct plait_num host_num(u64 m, s32 e) { return plait_num(m, e); }
struct plait_num host_mul(struct plait_num a, struct plait_num b) { return plait_mul(a, b); }
struct plait_num host_div(struct plait_num a, struct plait_num b) { return plait_div(a, b); }
struct plait_num host_add(struct plait_num a, struct plait_num b) { return plait_add(a, b); }
int host_cmp(struct plait_num a, struct plait_num b) { return plait_cmp(a, b); }
u64 host_fixed(struct plait_num a, int bits) { return plait_fixed(a, bits); }

u64 host_lia_increase(const struct plait_path *paths, int n) { return plait_lia_increase(paths, n); }
s32 host_olia_alpha(const struct plait_path *paths, int n) { return plait_olia_alpha(paths, n); }
s64 host_olia_increase(const struct plait_path *paths, int n) { return plait_olia_increase(paths, n); }
u64 host_balia_increase(const struct plait_path *paths, int n) { return plait_balia_increase(paths, n); }
u32 host_balia_reduced(const struct plait_path *paths, int n) { return plait_balia_reduced(paths, n); }
u64 host_vegas_backlog(u32 cwnd, u32 rtt_us, u32 base_us) { return plait_vegas_backlog(cwnd, rtt_us, base_us); }
u64 host_wvegas_alpha(const struct plait_path *paths, int n, u32 total) { return plait_wvegas_alpha(paths, n, total); }
u32 host_wvegas_drained(u32 cwnd, u32 rtt_us, u32 base_us) { return plait_wvegas_drained(cwnd, rtt_us, base_us); }
