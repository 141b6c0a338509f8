"""Routing tables and rules, and the paths that follow from them. Subflows are in `mptcp`."""
