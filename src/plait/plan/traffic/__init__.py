"""Flows, programs and monitors of a plan, and what the links allow flows. Subflows are in `mptcp`."""
