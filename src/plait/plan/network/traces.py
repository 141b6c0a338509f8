"""Links that follow a trace: the conditions at the start, and the later steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plait.errors import FieldMistakesError
from plait.frames import frame_bytes
from plait.plan.network.model import Port
from plait.scenario.fields.conditions import Conditions, Loss
from plait.scenario.fields.links import LinkSpec
from plait.scenario.fields.network import InputFile
from plait.scenario.fields.traces import OPPORTUNITY_BYTES, Opportunities, Rows, Trace, TraceRow, TraceSpec
from plait.scenario.scenario import Scenario
from plait.units import Rate

MAX_STEPS = 20_000
"""The limit for all traces of a plan together."""


@dataclass(frozen=True)
class Followed:
    """A trace that plait has read; it replaces the scenario's description of the trace."""

    spec: TraceSpec
    facts: InputFile
    content: Trace

    @property
    def moves_delay(self) -> bool:
        """Return whether the trace changes the delay."""
        return isinstance(self.content, Rows) and "delay" in self.content.columns


@dataclass(frozen=True)
class Step:
    """New conditions of a link direction from a certain time on."""

    at: int
    """In ns of the trial."""
    port: Port
    given: dict[str, object]


def followed(scenario: Scenario, key: str, link: LinkSpec) -> LinkSpec:
    """Return the link with the conditions that its traces give at the start, for each direction.

    Raise FieldMistakesError if a file was not read, or if both the trace and the link give a condition.
    """
    both = {forward: link.conditions(forward=forward) for forward in (True, False)}
    if not any(conditions.trace for conditions in both.values()):
        return link
    sides = {}
    for forward, conditions in both.items():
        try:
            sides[forward] = _followed(scenario, conditions)
        except ValueError as wrong:
            raise FieldMistakesError((("network", "links", key), str(wrong))) from wrong
    return link.model_copy(update={"forward": sides[True], "backward": sides[False]})


def _followed(scenario: Scenario, conditions: Conditions) -> Conditions:
    spec = conditions.trace
    if spec is None:
        return conditions
    facts = scenario.files.get(spec.file)
    if facts is None or facts.trace is None:
        raise ValueError(
            f"the trace '{spec.file}' has not been read; read the scenario with plait.scenario.read.load"
        )
    content = facts.trace
    given: dict[str, object] = {"trace": Followed(spec, facts, content)}
    if isinstance(content, Opportunities):
        frames = content.rate_bps * frame_bytes(OPPORTUNITY_BYTES) // OPPORTUNITY_BYTES
        given["rate"] = Rate(max(8, frames // 8 * 8))
    else:
        twice = [name for name in content.columns if getattr(conditions, name) is not None]
        if twice:
            raise ValueError(
                f"'{spec.file}' has a column {twice[0]}, which is also given here; leave one of them out"
            )
        given |= _conditions_of(content.rows[0])
    followed_conditions = conditions.model_copy(update=given)
    if followed_conditions.queue is not None and followed_conditions.rate is None:
        raise ValueError(
            f"a link without a rate has no queue, and '{spec.file}' has no rates; give a rate as well"
        )
    return followed_conditions


def _conditions_of(row: TraceRow) -> dict[str, object]:
    conditions: dict[str, Any] = dict(row.conditions)
    if "loss" in conditions:
        conditions["loss"] = Loss.model_construct(ratio=conditions["loss"])
    return conditions


def steps(ports: list[Port], end: int) -> Iterator[Step]:
    """Yield the changes by traces until `end` ns, link by link, without the conditions at the start."""
    for port in ports:
        trace = port.conditions.trace
        if not isinstance(trace, Followed) or not isinstance(trace.content, Rows):
            continue
        before = _conditions_of(trace.content.rows[0])
        for row in trace.content.steps(end, loop=trace.spec.loop):
            given = _conditions_of(row)
            changed = {name: value for name, value in given.items() if value != before[name]}
            if row.at and changed:
                yield Step(row.at, port, changed)
            before = given
