"""Paths that share a link carry less at once than the sum of what each carries alone."""

from __future__ import annotations

import pytest

from fake_tables import fake_tables
from plait.explain import explain_trial
from scenario_samples import plan_of

TWO_TUNNELS = """\
title: Two tunnels over the better line, and one over the other
network:
  hosts: [home, server]
  routers: [fibre, core]
  links:
    home-fibre: {}
    home-fibre#2: {}
    fibre-core: {rate: 25mbit, delay: 10ms, queue: 50KB}
    home-core: {rate: 8mbit, delay: 15ms, queue: 40KB}
    core-server: {rate: 100mbit, delay: 1ms}
transport: mptcp
mptcp:
  endpoints: {home: [{link: home-core, flags: [subflow]}, {link: "home-fibre#2", flags: [subflow]}], server: []}
traffic: [{bulk: {from: server, to: home, reverse: true, duration: 10s}}]
"""
PAYLOAD = 1424 / 1514


def test_the_capacity_of_a_flow_is_what_its_paths_carry_at_once() -> None:
    plan = plan_of(TWO_TUNNELS)
    (flow,) = explain_trial(plan, fake_tables(plan))
    assert flow.together_bps == pytest.approx(33e6 * PAYLOAD)
    assert flow.capacity_bps == pytest.approx(58e6 * PAYLOAD)
    assert flow.sentences[0].endswith(
        "of what its three paths, which share links, carry at once (31.0 Mbit/s)."
    )


def test_what_a_cause_costs_is_within_what_the_paths_carry_at_once() -> None:
    """Two paths that both stand still lose the rate of their link once, not twice."""
    plan = plan_of(TWO_TUNNELS)
    (flow,) = explain_trial(plan, fake_tables(plan))
    costs = {share.cause: share.cost_bps or 0.0 for share in flow.shares}
    shared = costs.pop("shared-bottleneck")
    assert flow.goodput_bps is not None
    assert flow.together_bps is not None
    assert flow.capacity_bps is not None
    assert sum(costs.values()) + flow.goodput_bps == pytest.approx(flow.together_bps, rel=0.08)
    assert shared + sum(costs.values()) + flow.goodput_bps == pytest.approx(flow.capacity_bps, rel=0.08)


def test_paths_without_a_common_limit_add_up() -> None:
    plan = plan_of(TWO_TUNNELS, "network.links.fibre-core.rate=100mbit", "network.links.core-server.rate=1gbit",
                   "network.links.home-fibre.rate=10mbit", "network.links.home-fibre#2.rate=10mbit")  # fmt: skip
    (flow,) = explain_trial(plan, fake_tables(plan))
    assert flow.together_bps == flow.capacity_bps == pytest.approx(28e6 * PAYLOAD)
    assert "the combined capacity of its three paths (26.3 Mbit/s)" in flow.sentences[0]
