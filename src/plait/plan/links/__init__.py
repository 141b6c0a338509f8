"""Links of a plan: conditions as numbers, traces, shared buckets, and the qdiscs that stand for them."""
