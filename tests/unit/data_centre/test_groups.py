"""Groups of transfers: means and percentiles over their flows, null where one of them has no value."""

from __future__ import annotations

import pytest

from plait.analysis.metrics.groups import group_metrics
from plait.analysis.metrics.ideal import slowdown
from scenario_samples import plan_of

TEXT = """\
title: t
network:
  hosts: [a, b]
  links: {a-b: {rate: 10mbit, delay: 5ms}}
transport: tcp
traffic:
  - transfer: {name: one, from: a, to: b, bytes: 1MB, group: big}
  - transfer: {name: two, from: a, to: b, bytes: 1MB, group: big}
  - transfer: {name: three, from: a, to: b, bytes: 1MB, group: big}
  - bulk: {name: long, from: a, to: b, duration: 1s, group: mixed}
"""


def test_a_group_of_transfers_has_the_mean_and_the_nearest_rank_of_its_flows() -> None:
    plan = plan_of(TEXT)
    flows: dict[str, float | None] = {
        f"{name}.{metric}": value
        for name, value in (("one", 1.0), ("two", 2.0), ("three", 6.0))
        for metric in ("goodput_bps", "completion_s", "slowdown")
    } | {"long.goodput_bps": 5.0}
    assert group_metrics(plan, flows) == {
        "big.mean_goodput_bps": 3.0,
        "big.mean_completion_s": 3.0,
        "big.completion_p99_s": 6.0,
        "big.slowdown_p50": 2.0,
        "big.slowdown_p99": 6.0,
        "mixed.mean_goodput_bps": 5.0,
    }
    missing = group_metrics(plan, flows | {"two.completion_s": None})
    assert missing["big.mean_completion_s"] is None
    assert missing["big.completion_p99_s"] is None
    assert missing["big.slowdown_p99"] == 6.0


def test_the_slowdown_is_against_handshake_propagation_and_the_rate() -> None:
    plan = plan_of(TEXT)
    alone_s = 0.010 + 0.005 + 8e6 / (10e6 * 1448 / 1514)
    assert slowdown(plan, plan.flows[0], 2 * alone_s) == pytest.approx(2)
    assert slowdown(plan, plan.flows[0], None) is None
    assert slowdown(plan, plan.flows[3], 1.0) is None
    unlimited = plan_of(TEXT.replace("rate: 10mbit, ", ""))
    assert slowdown(unlimited, unlimited.flows[0], 1.0) is None
