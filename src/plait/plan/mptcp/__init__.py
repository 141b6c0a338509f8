"""MPTCP endpoints, limits and subflows, and what events change about them."""
