"""The greatest sum of goodputs of several flows equals known optima, and is null where there is none."""

from __future__ import annotations

import pytest

from plait.analysis.metrics.ideal import payload_ratio
from plait.analysis.metrics.joint_ideal import joint_goodput_bps
from scenario_samples import plan_of

LINE = """\
title: One long flow over two links, and a short one on each
network:
  hosts: [a, b, c, d]
  routers: [r1, r2, r3]
  links: {a-r1: {}, b-r1: {}, r1-r2: {rate: 10mbit}, c-r2: {}, r2-r3: {rate: 10mbit}, d-r3: {}}
transport: tcp
traffic:
  - bulk: {from: a, to: d, duration: 10s}
  - bulk: {from: b, to: c, duration: 10s}
  - bulk: {from: c, to: d, duration: 10s}
"""
TCP = 1448 / 1514


def joint(text: str, *overrides: str) -> float | None:
    return joint_goodput_bps(plan_of(text, *overrides))


def test_the_joint_ideal_is_the_greatest_sum_and_not_the_fair_one() -> None:
    """Max-min fair were 5 Mbit/s for each of the three; the sum is greatest where the long flow has nothing."""
    assert joint(LINE) == pytest.approx(20e6 * TCP, abs=1)


def test_shared_links_count_once_and_directions_on_their_own() -> None:
    text = LINE.replace("{from: c, to: d", "{from: d, to: a")
    assert joint(text) == pytest.approx((10e6 + 10e6) * TCP, abs=1)
    assert joint(LINE, "network.links.r2-r3.rate=3mbit") == pytest.approx(13e6 * TCP, abs=1)


def test_permutation_traffic_could_fill_every_access_link_of_a_fat_tree() -> None:
    text = (
        "title: t\nnetwork: {generator: fat-tree, k: 4, rate: 100mbit}\nmptcp: {subflows_per_path: 8}\n"
        "traffic: [permutation: {seed: SEED, each: {bulk: {duration: 1s, start_jitter: 0s}}}]\n"
    )
    for seed in ("1", "2"):
        plan = plan_of(text.replace("SEED", seed))
        ratio = payload_ratio(plan, plan.flows[0], transport="mptcp")
        assert joint_goodput_bps(plan) == pytest.approx(16 * 100e6 * ratio, rel=1e-6)


def test_a_path_shared_with_tcp_and_a_private_one_have_the_models_windows() -> None:
    text = """\
title: t
network:
  hosts: [a, b, c]
  routers: [r]
  links: {a-b: {rate: 4mbit}, a-r: {rate: 6mbit}, c-r: {}, r-b: {rate: 5mbit}}
transport: mptcp
traffic:
  - bulk: {from: a, to: b, duration: 10s}
  - bulk: {from: c, to: b, duration: 10s, transport: tcp}
"""
    # TCP's frames carry more, so the shared link is best given to it
    assert joint(text) == pytest.approx(4e6 * 1424 / 1514 + 5e6 * TCP, abs=1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{from: c, to: d, duration: 10s}", "{from: c, to: d, duration: 9s}"),
        ("{from: c, to: d, duration: 10s}", "{from: c, to: d, duration: 10s, start: 1s}"),
        ("bulk: {from: c, to: d, duration: 10s}", "transfer: {from: c, to: d, bytes: 1MB}"),
        ("{from: c, to: d, duration: 10s}", "{from: c, to: d, duration: 10s, background: true}"),
        ("r1-r2: {rate: 10mbit}", "r1-r2: {}"),
        ("traffic:", "events: [{at: 1s, down: r1-r2}]\ntraffic:"),
    ],
    ids=["lengths", "starts", "transfer", "background", "no limit", "events"],
)
def test_the_ideal_is_null_where_it_would_not_bound_the_measurement(old: str, new: str) -> None:
    assert old in LINE
    assert joint(LINE.replace(old, new)) is None
