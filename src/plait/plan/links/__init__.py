"""Links as qdiscs: rates, delays, losses, traces, shared buckets. `plait.plan.network` holds the interfaces."""
