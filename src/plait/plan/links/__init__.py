"""Links of a plan: conditions as numbers, traces, shared buckets, and their qdiscs."""
