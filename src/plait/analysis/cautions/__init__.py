"""Reasons not to trust a trial at once: what its data and its MPTCP counters show. What to do is up to the reader."""
