"""Transfers in a fat tree: slowdown against the arithmetic of the wire, and utilisation of the layers they cross."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import pytest

from plait.analysis.metrics.layers import layers
from plait.analysis.metrics.trial import trial_metrics

if TYPE_CHECKING:
    from conftest import RunTrial

pytestmark = pytest.mark.guest

TREE = """
title: A fat tree
network: {generator: fat-tree, k: 4, rate: 100mbit, delay: 100us, queue: 400pkt}
transport: tcp
traffic:
"""
PAYLOAD = 1448 / 1514
BYTES = 5_000_000


def test_a_transfer_alone_takes_as_long_as_it_must_and_fills_one_link_of_each_layer(
    run_trial: RunTrial,
) -> None:
    pairs = "  - pairs: {from: p0e0h0, to: p2e1h1, each: {transfer: {bytes: 5MB, group: large}}}\n"
    late = "  - transfer: {name: late, from: p0e0h0, to: p2e1h1, bytes: 1kB, start: 1s, background: true}\n"
    ran = run_trial(TREE + pairs + late)
    metrics = trial_metrics(ran.plan, ran.tables)
    rtt_s, wire_s = 12 * 100e-6, BYTES * 8 / (100e6 * PAYLOAD)
    completion = metrics["large.mean_completion_s"]
    assert completion is not None
    assert metrics["large.slowdown_p99"] == pytest.approx(completion / (1.5 * rtt_s + wire_s))
    # slow start from ten segments loses a few round trips, and each of five routers receives the last frame whole
    assert 1 < completion / (1.5 * rtt_s + wire_s) < 1.03
    row = ran.tables["flows"].row(0, named=True)
    sampled_s = (
        ceil(row["end_us"] / 1e5) / 10 - row["start_us"] // 100_000 / 10
    )  # there are ten samples a second
    # one of the 16 links of each layer and direction carries the data
    for name in ("layer1-up", "layer2-up", "layer3-up", "layer3-down", "layer2-down", "layer1-down"):
        assert len(layers(ran.plan)[name]) == 16
        busiest, mean = metrics[f"{name}.link_utilisation_max"], metrics[f"{name}.link_utilisation"]
        assert busiest == pytest.approx(wire_s / sampled_s, rel=0.005)
        assert mean is not None
        assert busiest / 16 < mean < 1.1 * busiest / 16  # and another one the acknowledgements


def test_an_incast_shares_the_receivers_link(run_trial: RunTrial) -> None:
    incast = "  - incast: {senders: 8, each: {transfer: {bytes: 500kB, start_jitter: 0s, group: all}}}\n"
    ran = run_trial(TREE + incast)
    metrics = trial_metrics(ran.plan, ran.tables)
    assert len({flow.server.netns for flow in ran.plan.flows}) == 1
    whole_s = 8 * 500e3 * 8 / (100e6 * PAYLOAD)
    last = metrics["completion_s"]
    assert last is not None
    assert whole_s < last < 1.5 * whole_s  # 0.2 s of a time-out are 60 % of it
    assert whole_s / (last + 0.2) < (metrics["layer1-down.link_utilisation_max"] or 0) <= 1
    assert metrics["all.completion_p99_s"] == pytest.approx(last, rel=0.01)
    assert 1 < (metrics["slowdown_p50"] or 0) <= (metrics["slowdown_p99"] or 0)
