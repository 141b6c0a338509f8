"""Packets take the path that a flow names, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from conftest import RunTrial

pytestmark = pytest.mark.guest

PINNED = """\
title: Two subflows, each on a path of its own that is not the shortest
network:
  hosts: [h1, h2]
  routers: [r1, r2, r3, r4]
  links:
    h1-r1: {}
    h1-r3: {}
    r1-r2: {rate: 10mbit, delay: 1ms}
    r1-r2#2: {rate: 10mbit, delay: 9ms}
    r3-r2: {rate: 10mbit, delay: 1ms}
    r3-r4: {rate: 10mbit, delay: 5ms}
    r4-h2: {}
    r2-h2: {}
traffic:
  - bulk: {from: h1, to: h2, duration: 1s, paths: [[h1, r1, 'r1-r2#2', r2, h2], [h1, r3, r4, h2]]}
"""


def test_subflows_stay_on_the_paths_that_are_named(run_trial: RunTrial) -> None:
    ran = run_trial(PINNED)
    packets = dict(ran.tables["links"].group_by("link").agg(pl.col("sent_packets").max()).iter_rows())
    assert packets["r1->r2"] == packets["r2->r1"] == 0, "the shorter of two parallel links stays empty"
    for pinned in ("r1->r2#2", "r2->r1#2", "r3->r4", "r4->r3"):
        assert packets[pinned] > 400, pinned


def test_packets_follow_the_routes_that_are_given(run_trial: RunTrial) -> None:
    text = PINNED[: PINNED.index(", paths:")] + "}\n"
    text = text.replace(
        "[r1, r2, r3, r4]", "{r1: , r2: {routes: [{to: 10.0.0.0/24, via: 'r1-r2#2'}]}, r3: , r4: }"
    )
    ran = run_trial(text.replace("duration: 1s", "duration: 1s, transport: tcp"))
    packets = dict(ran.tables["links"].group_by("link").agg(pl.col("sent_packets").max()).iter_rows())
    forward, backward = ran.plan.flows[0].paths[0].forward, ran.plan.flows[0].paths[0].backward
    assert "r1->r2" in forward
    assert "r2->r1#2" in backward
    assert packets["r2->r1"] <= 2, "nothing but the answer to an ARP request"
    assert min(packets[name] for name in (*forward, *backward)) > 200
