"""A search for faults of a kernel's MPTCP: random small networks and connections, invariants, and smaller cases."""
