"""Sample scenarios, and short functions that return the mistakes or the plan of a scenario's text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.errors import ScenarioError
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from plait.errors import Mistake
    from plait.plan.model.plan import Plan

WORK_S = 15.0
"""Most processor time of what a limit refuses: on a busy machine it takes some 3 s, and without the limit minutes."""

TWO = """\
title: Two paths
network:
  hosts: [h1, h2]
  switches: [s1, s2]
  links:
    h1-s1: {rate: 5mbit, delay: 5ms}
    s1-h2: {rate: 5mbit, delay: 5ms}
    h1-s2: {rate: 5mbit, delay: 5ms}
    s2-h2: {rate: 5mbit, delay: 5ms}
traffic:
  - bulk: {from: h1, to: h2, duration: 10s}
"""

ONE_LINE = """\
title: One line
network:
  hosts: [a, b]
  links:
    a-b: {rate: 10mbit, delay: 5ms, loss: 0.2%}
traffic:
  - bulk: {from: a, to: b, duration: 2s}
transport: tcp
"""

TWO_ACCESS_LINES = """\
title: Two access lines to a router, and %s
network:
  hosts: [c, s]
  routers: [r]
  links:
    c-r: {rate: 5mbit, delay: 1ms}
    c-r#2: {rate: 5mbit, delay: 2ms}
    %s
traffic:
  - bulk: {from: c, to: s, duration: 10s}
"""

MESH = TWO_ACCESS_LINES % (
    "two lines to the server",
    "r-s: {rate: 8mbit, delay: 3ms}\n    r-s#2: {rate: 9mbit, delay: 4ms}",
)

ISLANDS = """\
title: Three paths through routers that do not know each other
network:
  hosts: [n1, n2]
  routers: [r1, r2, g1, g2, g3]
  links:
    n1-g1: {rate: 1mbit, delay: 50ms}
    n1-r1: {rate: 10mbit, delay: 1ms}
    n1-r2: {rate: 10mbit, delay: 2ms}
    r1-n2: {rate: 10mbit, delay: 1ms}
    r2-n2: {rate: 10mbit, delay: 2ms}
    g1-g3: {rate: 1mbit, delay: 50ms}
    g3-g2: {}
    n2-g2: {rate: 1mbit, delay: 50ms}
traffic:
  - bulk: {from: n1, to: n2, duration: 10s}
"""


def direct(links: str, traffic: str = "bulk: {from: a, to: b, duration: 10s}", more: str = "") -> str:
    """Return hosts a and b with these links (flow style) between them."""
    return f"title: t\nnetwork: {{hosts: [a, b], links: {{{links}}}}}\ntraffic: [{traffic}]\n{more}"


def plan_of(text: str, *overrides: str, case: int = 0, seed: int = 1) -> Plan:
    """Return the plan of one case of a scenario's text."""
    return resolve(expand(parse(text, "t.yaml", overrides))[case].scenario, seed)


def all_plans(text: str, *overrides: str) -> list[Plan]:
    """Return the plans of all cases of a scenario's text."""
    return [resolve(case.scenario, 1) for case in expand(parse(text, "t.yaml", overrides))]


def mistakes(text: str, *overrides: str) -> list[Mistake]:
    """Return what is wrong with a scenario, wherever on the way to its plans it is found."""
    with pytest.raises(ScenarioError) as caught:
        all_plans(text, *overrides)
    assert caught.value.exit_code == 2
    for mistake in caught.value.mistakes:
        assert "\n" not in str(mistake)
        assert len(str(mistake)) < 600
    return list(caught.value.mistakes)


def mistakes_as_text(text: str, *overrides: str) -> str:
    """Return the same as one text, as a person sees it."""
    return "\n".join(map(str, mistakes(text, *overrides)))
