"""Any text gives a plan or located mistakes: never a traceback, never a long wait."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO

from plait.errors import ScenarioError
from plait.plan.case_plan import resolve_case
from plait.plan.lint.lint import lint
from plait.plan.resolve import resolve
from plait.plan.shell.script import to_shell
from plait.scenario import parse
from plait.scenario.read.document import read
from plait.scenario.vary.cases import expand
from scenario_samples import ISLANDS, MESH, TWO

FULL = (
    TWO
    + """\
description: everything that a scenario can say
transport: mptcp
mptcp:
  scheduler: default
  limits: {h1: {subflows: 2, add_addr_accepted: 1}}
  endpoints: {h1: [{link: h1-s2, flags: [subflow, backup], id: 3}]}
tcp: {congestion_control: cubic, receive_buffer_max: 8MiB, send_buffer_max: 1MiB}
sysctls: {net.ipv4.tcp_sack: 1}
vary: {transport: [tcp, mptcp], network.links.*.rate: [1mbit, 2mbit]}
baseline: transport=tcp,rate=1mbit
repeat: 2
seed: 7
sample: 50ms
until: 20s
"""
)
BASES = [read(text).value for text in (TWO, MESH, ISLANDS, FULL)]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["5mbit", "10ms", "1%", "100pkt", "h1", "h1-s1", "1bdp", "64KiB", "10.0.0.1/24", "*", "a-b#2"]
    ),
    st.lists(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


def yaml(value: Any) -> str:
    out = StringIO()
    writer = YAML(typ="safe", pure=True)
    writer.sort_base_mapping_type_on_output = False
    writer.dump(value, out)
    return str(out.getvalue())


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = [at] if at else []
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        below += paths(inner, (*at, key))
    return below


def answer(text: str, overrides: tuple[str, ...] = ()) -> bool:
    """Return whether the text is a scenario that can be planned; if not, it must say why in located lines."""
    try:
        cases = expand(parse(text, "t.yaml", overrides))
        for case in cases[:3]:
            plan = resolve(case.scenario, 1)
            assert to_shell(plan)
            lint(resolve_case(case))
    except ScenarioError as wrong:
        located(wrong)
        return False
    return True


def located(wrong: ScenarioError) -> None:
    assert wrong.mistakes
    for mistake in wrong.mistakes:
        assert mistake.message
        assert len(str(mistake).splitlines()) == 1
        assert mistake.source.startswith(("t.yaml", "--set"))


def test_the_bases_are_valid() -> None:
    assert all(answer(yaml(base)) for base in BASES)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mutated_scenarios_are_planned_or_refused(data: st.DataObject) -> None:
    raw = copy.deepcopy(data.draw(st.sampled_from(BASES)))
    for _ in range(data.draw(st.integers(1, 3))):
        places = paths(raw)
        if not places:
            break
        *way, last = data.draw(st.sampled_from(places))
        holder = raw
        for part in way:
            holder = holder[part]
        action = data.draw(st.sampled_from(["replace", "remove", "rename", "copy"]))
        if action == "replace":
            holder[last] = data.draw(ODD)
        elif action == "copy":
            holder[last] = copy.deepcopy(data.draw(st.sampled_from(BASES)))
        elif action == "rename" and isinstance(holder, dict):
            holder[data.draw(st.text(max_size=12))] = holder.pop(last)
        else:
            del holder[last]
    answer(yaml(raw))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_planned_or_refused(text: str) -> None:
    answer(text)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_cut_or_changed_character_is_planned_or_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(FULL)))
    length = data.draw(st.integers(0, 40))
    answer(FULL[:at] + data.draw(st.text(max_size=5)) + FULL[at + length :])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["repeat", "network.links.*.rate", "network.hosts.h1.addresses", "traffic.0.bulk.via", "vary", "x.y",
                 "traffic.*.bulk", "network", "mptcp.endpoints.h1", "network.links.h1-s1", "title", "*", "a..b"]
            ),
            ODD,
        ),
        max_size=3,
    )
)  # fmt: skip
def test_any_option_is_planned_or_refused(options: list[tuple[str, object]]) -> None:
    answer(FULL, tuple(f"{path}={value}" for path, value in options))
