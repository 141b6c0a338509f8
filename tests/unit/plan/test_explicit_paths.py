"""Flows that name their paths get the rules they need, and plait refuses paths that no packet can take."""

from __future__ import annotations

import pytest

from plait.errors import ScenarioError
from plait.plan.shell.script import to_shell
from scenario_samples import plan_of

WEB = """\
title: t
network:
  hosts: [h1, h2, h3]
  routers: [r1, r2, r3]
  switches: [s1]
  links:
    h1-r1: {}
    r1-r2: {delay: 1ms}
    r1-r2#2: {delay: 9ms}
    r1-r3: {delay: 5ms}
    r3-r2: {delay: 5ms}
    r2-s1: {}
    s1-h2: {}
    s1-h3: {}
traffic: [bulk: {from: h1, to: h2, duration: 1s, transport: tcp, paths: [PATH]}]
"""


def test_rules_stand_only_where_routes_would_lead_elsewhere() -> None:
    straight = plan_of(WEB.replace("PATH", "h1, r1, r2, s1, h2"))
    assert not [rule for rule in straight.network.rules if rule.destination is not None]
    plan = plan_of(WEB.replace("PATH", "h1, r1, r3, r2, s1, h2"))
    pinned = [rule for rule in plan.network.rules if rule.destination is not None]
    assert [(r.netns, r.source, r.destination) for r in pinned] == [
        ("r1", "10.0.0.1/32", "10.0.5.1/32"),
        ("r2", "10.0.5.1/32", "10.0.0.1/32"),
    ]
    (path,) = plan.flows[0].paths
    assert path.forward == ("h1->r1", "r1->r3", "r3->r2", "r2->s1", "s1->h2")
    assert path.backward == ("h2->s1", "s1->r2", "r2->r3", "r3->r1", "r1->h1")
    assert path.base_rtt_us == 20_000
    assert "to 10.0.5.1/32 lookup 2001" in to_shell(plan)


def test_a_link_between_two_nodes_chooses_among_parallel_ones() -> None:
    plan = plan_of(WEB.replace("PATH", "h1, r1, 'r1-r2#2', r2, s1, h2"))
    assert plan.flows[0].paths[0].name == "h1-r1-r2-s1-h2#2"


def test_a_path_of_one_subflow_leaves_ecmp_no_choice() -> None:
    text = WEB.replace("PATH", "h1, r1, 'r1-r2#2', r2, s1, h2").replace("delay: 9ms", "delay: 1ms")
    plan = plan_of(text, "network.routing={ecmp: true}")
    assert plan.flows[0].paths[0].spread == ()
    assert {rule.netns for rule in plan.network.rules if rule.destination} == {"r1", "r2"}


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("h1, r1, r2", "must begin with h1 and end with h2"),
        ("h1, r1, h2", "no link joins r1 and h2"),
        ("h1, r1, r9, h2", "no node or link is called 'r9'"),
        ("h1, r1, r1-r3, r2, s1, h2", "no link r1-r3 joins r1 and r2"),
        ("h1, r1, r3, r1, r2, s1, h2", "must not contain a loop"),
        ("h1, r1, r2, s1, h3, h2", "no link joins h3 and h2"),
        ("h1-r1, r1, r2, s1, h2", "is not between two nodes"),
        ("h1, r1, r2, s1, h2], [h1, r1, r3, r2, s1, h2", "the two addresses determine the path"),
    ],
)
def test_a_path_that_cannot_be_taken_is_located(path: str, wrong: str) -> None:
    text = WEB.replace("[PATH]", f"[[{path}]]")
    with pytest.raises(ScenarioError, match=r"traffic\.0\.bulk\.paths") as caught:
        plan_of(text)
    assert wrong in str(caught.value)
