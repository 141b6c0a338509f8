/* The arithmetic of plait_red as a library of the host, for test_red.py. */
#include "plait_red_rules.h"

u64 host_red_average(u64 average, u32 queue, u32 weight_log) { return plait_red_average(average, queue, weight_log); }
u64 host_red_idle(u64 average, u32 packets, u32 weight_log) { return plait_red_idle(average, packets, weight_log); }
u32 host_red_probability(const struct plait_red_point *point, int n, u64 average, bool *beyond)
{
	return plait_red_probability(point, n, average, beyond);
}
bool host_red_happens(u32 probability, u32 draw) { return plait_red_happens(probability, draw); }
