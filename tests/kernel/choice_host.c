/* The arithmetic of the schedulers as a library of the host, for test_choice.py. */
#include "plait_choice.h"

bool host_ecf_waits(u64 k, u32 cwnd_f, u32 rtt_f, u32 cwnd_s, u32 rtt_s, u32 delta, bool *waiting)
{
	return plait_ecf_waits(k, cwnd_f, rtt_f, cwnd_s, rtt_s, delta, waiting);
}

bool host_blest_skips(u64 window, u32 mss_f, u32 cwnd_f, u32 rtt_f, u32 mss_s, u32 inflight_s, u32 rtt_s, u32 lambda)
{
	return plait_blest_skips(window, mss_f, cwnd_f, rtt_f, mss_s, inflight_s, rtt_s, lambda);
}

struct plait_cap host_cap(u32 n, u32 e, u32 burst) { return plait_cap(n, e, burst); }
s64 host_cap_credit(struct plait_cap cap, s64 credit, u64 all, u64 own) { return plait_cap_credit(&cap, credit, all, own); }
u32 host_cap_grant(struct plait_cap cap, s64 credit) { return plait_cap_grant(&cap, credit); }
s64 host_cap_lack(struct plait_cap cap, s64 highest, u32 bytes) { return plait_cap_lack(&cap, highest, bytes); }
