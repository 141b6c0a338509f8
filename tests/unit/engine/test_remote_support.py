"""What the engine `remote` refuses of a plan, before anything is sent to a host."""

from __future__ import annotations

import pytest

from plait.engine.remote.support import LACKS, sockets
from plait.engine.support import lacking
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

TEXT = """\
title: One line
network: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 5ms}}}
traffic:
  - transfer: {from: a, to: b, bytes: 1MB}
  - TRAFFIC
transport: tcp
"""
REFUSED = {
    "udp: {from: a, to: b, rate: 1mbit, packet: 1000B, duration: 1s}": "does not measure udp",
    "stream: {from: a, to: b, message: 10KB, rate: 1mbit, duration: 1s}": "does not measure stream",
    "on_off: {from: a, to: b, on: 1s, off: 1s, duration: 3s}": "does not measure on_off",
}
CARRIED = (
    "bulk: {from: a, to: b, duration: 1s}",
    "request: {from: a, to: b, response: 10KB, requests: 3}",
    "page: {from: a, to: b, objects: [10KB, 20KB]}",
)


@pytest.mark.parametrize("traffic", REFUSED)
def test_traffic_that_needs_one_clock_is_refused_in_its_place(traffic: str) -> None:
    plan = resolve(expand(parse(TEXT.replace("TRAFFIC", traffic), "t.yaml"))[0].scenario, 1)
    (refused,) = sockets(plan)
    assert (refused.use.part, refused.use.name) == ("traffic", "1")
    assert refused.reason.startswith(REFUSED[traffic])


@pytest.mark.parametrize("traffic", CARRIED)
def test_traffic_whose_times_one_host_measures_is_not_refused(traffic: str) -> None:
    plan = resolve(expand(parse(TEXT.replace("TRAFFIC", traffic), "t.yaml"))[0].scenario, 1)
    assert list(sockets(plan)) == []
    assert lacking(plan, LACKS) == []
