"""Routing tables and rules, and the paths that follow from them. `plait.plan.mptcp` holds the subflows."""
