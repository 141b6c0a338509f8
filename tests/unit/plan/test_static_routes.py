"""Routes that the scenario gives appear in the right tables, replace the right ones, and are refused if impossible."""

from __future__ import annotations

import pytest

from plait.errors import ScenarioError
from scenario_samples import plan_of

TEXT = """\
title: t
network:
  hosts: {h1: , h2: }
  routers: {r1: , r2: , r3: , r4: }
  links: {h1-r1: {}, r1-r2: {delay: 1ms}, r1-r3: {delay: 9ms}, r2-r4: {}, r3-r4: {}, r4-h2: {}}
traffic: [bulk: {from: h1, to: h2, duration: 1s}]
"""


def path(*overrides: str) -> str:
    return plan_of(TEXT, *overrides).flows[0].paths[0].name


@pytest.mark.parametrize("to", ["h2", "default", "10.0.5.0/24", "10.0.0.0/8", "10.0.5.1"])
@pytest.mark.parametrize("via", ["r3", "r1-r3", "10.0.2.2"])
def test_a_given_route_holds_for_what_it_covers(to: str, via: str) -> None:
    assert path() == "h1-r1-r2-r4-h2"
    if to != "10.0.0.0/8":
        assert path(f"network.routers.r1={{routes: [{{to: {to}, via: {via}}}]}}") == "h1-r1-r3-r4-h2"
    assert path("network.routers.r1={routes: [{to: 10.9.0.0/16, via: r3}]}") == "h1-r1-r2-r4-h2"


def test_the_longest_given_prefix_wins_and_answers_go_their_own_way() -> None:
    plan = plan_of(TEXT, "network.routers.r1={routes: [{to: default, via: r2}, {to: h2, via: r3}]}")
    assert plan.flows[0].paths[0].forward[1] == "r1->r3"
    assert plan.flows[0].paths[0].backward == ("h2->r4", "r4->r2", "r2->r1", "r1->h1")
    at_r1 = [(r.destination, r.via) for r in plan.network.routes if r.netns == "r1"]
    assert at_r1 == [("10.0.5.1/32", "10.0.2.2"), ("default", "10.0.1.2")]


@pytest.mark.parametrize(
    ("routes", "field", "wrong"),
    [
        ("[{to: h9, via: r3}]", "0.to", "neither a node"),
        ("[{to: h2, via: r4}]", "0.via", "next to it are r2, r3"),
        ("[{to: h2, via: h1}]", "0.via", "hosts do not forward"),
        ("[{to: r1, via: r3}]", "0.to", "name another node"),
        ("[{to: 10.0.0.0/16, via: r3}]", "0.to", "own address"),
        ("[{to: 10.0.5.7/24, via: r3}]", "0.to", "neither a node"),
        ("[{to: 'fd00::/64', via: r3}]", "0.via", "no address of the family"),
        ("[{to: h2, via: r3}, {to: h2, via: r3}]", "1", "another route"),
        ("[{to: h2}]", "0.via", ""),
    ],
)
def test_a_route_that_cannot_be_is_located(routes: str, field: str, wrong: str) -> None:
    with pytest.raises(ScenarioError, match=rf"network\.routers\.r1\.routes\.{field}") as caught:
        plan_of(TEXT, f"network.routers.r1={{routes: {routes}}}")
    assert wrong in str(caught.value)


def test_routes_that_lead_in_a_circle_are_refused() -> None:
    with pytest.raises(ScenarioError, match="in a circle: r1 - r2 - r1"):
        plan_of(TEXT, "network.routers.r2={routes: [{to: h2, via: r1}]}")


def test_a_host_can_be_given_its_default_route() -> None:
    text = TEXT.replace("h1-r1: {}", "h1-r1: {}, h1-r3: {}")
    plan = plan_of(text, "network.hosts.h1={routes: [{to: default, via: h1-r3}]}")
    main = [(r.destination, r.device) for r in plan.network.routes if r.netns == "h1" and r.table == 254]
    assert main == [("default", "h1-eth1")]
