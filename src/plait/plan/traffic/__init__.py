"""Flows, programs and monitors of a plan, and what the links allow flows. `plait.plan.mptcp` holds the subflows."""
