"""Routers spread connections over equal-cost routes by addresses and ports, each router with its own seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

FLOWS = 48
TWO_LAYERS = f"""\
title: Two layers of routers with two equally good ways each
network:
  hosts: [h1, h2]
  routers: [top, left, right, bottom]
  routing: {{ecmp: true}}
  links:
    h1-top: {{}}
    top-left: {{}}
    top-right: {{}}
    left-bottom: {{}}
    left-bottom#2: {{}}
    right-bottom: {{}}
    right-bottom#2: {{}}
    bottom-h2: {{}}
traffic:
  - transfer: {{from: h1, to: h2, bytes: 1KB, transport: tcp, count: {FLOWS}}}
"""
FIRST = ("top->left", "top->right")
SECOND = ("left->bottom", "left->bottom#2", "right->bottom", "right->bottom#2")


def carried(ran: Ran, *directions: str) -> list[int]:
    """Return packets that passed each of these link directions during the trial."""
    last = ran.tables["links"].group_by("link").agg(pl.col("sent_packets").max())
    packets = dict(last.iter_rows())
    return [packets[direction] for direction in directions]


def test_connections_spread_over_equal_ways_independently_at_each_router(run_trial: RunTrial) -> None:
    ran = run_trial(TWO_LAYERS)
    (total,) = carried(ran, "h1->top")
    first, second = carried(ran, *FIRST), carried(ran, *SECOND)
    # beside the connections' packets there is an ARP exchange on each link
    assert total <= sum(first) <= total + 4
    assert total <= sum(second) <= total + 8
    # 48 fair coins: fewer than 9 heads has a chance below 1e-5; 48 four-sided dice: fewer than 3 of a side, 4e-4.
    # Routers that choose alike would leave two ways of four empty
    assert min(first) / total > 9 / FLOWS
    assert min(second) / total > 3 / FLOWS


def test_the_choice_follows_from_the_seed(run_trial: RunTrial) -> None:
    ways = [carried(run_trial(TWO_LAYERS, repeat=repeat), *FIRST, *SECOND) for repeat in (0, 0, 1, 2)]
    assert ways[0] == ways[1]
    assert len({tuple(way) for way in ways}) == 3
