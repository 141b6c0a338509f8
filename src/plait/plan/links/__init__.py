"""Links as qdiscs: rates, delays, losses, traces, shared buckets. Interfaces are in `network`."""
