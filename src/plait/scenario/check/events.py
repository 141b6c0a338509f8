"""What events must mean: links that exist, in a state in which the event makes sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.scenario.check.conditions import condition_mistakes
from plait.scenario.fields.conditions import Conditions
from plait.scenario.fields.events import MAX_EVENTS, happenings
from plait.scenario.read.wording import nearest
from plait.units import Duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plait.scenario.fields.events import Happening
    from plait.scenario.mistakes import FieldMistake
    from plait.scenario.model import ScenarioModel
    from plait.scenario.names import LinkName

WITHOUT_STATES = "without_states"
"""The key of pydantic's context that says: some events were left out, so the states of links are not known."""


def check_events(
    scenario: ScenarioModel, names: Mapping[str, LinkName], *, states_known: bool
) -> Iterator[FieldMistake]:
    """Every mistake in the events, in the order of time; `names` are the links whose names can be read."""
    if len(scenario.events) > MAX_EVENTS:
        yield ("events",), f"there are {len(scenario.events)} events; a scenario has at most {MAX_EVENTS}"
        return
    for i, event in enumerate(scenario.events):
        if scenario.until is not None and int(event.at) > int(scenario.until):
            yield ("events", i, "at"), f"{event.at} is after the end of the trial, until: {scenario.until}"
    directions = {
        name.direction(forward=forward): (key, forward)
        for key, name in names.items()
        for forward in (True, False)
    }
    states: dict[str, _LinkState] = {}
    changes = happenings(scenario.events)
    states_known &= all(change.link in names or change.link in directions for change in changes)
    for change in changes:
        key, forward = (
            (change.link, None) if change.link in names else directions.get(change.link, (None, None))
        )
        if key is None:
            if change.link not in scenario.network.links:
                yield _no_such_link(change, names, directions)
        elif not states_known:
            continue
        elif forward is None or change.kind in ("cut", "up"):
            state = states[key] = states.get(key) or _LinkState(scenario, key)
            yield from state.apply(change, (True, False) if forward is None else (forward,))
        else:
            side = "forward" if forward else "backward"
            right = (
                f"write cut: {change.link}" if change.kind == "down" else f"write {key}: {{{side}: {{..}}}}"
            )
            yield change.where, f"'{change.link}' is one direction of {key}, and this is for links; {right}"


def _no_such_link(
    change: Happening, links: Mapping[str, object], directions: Mapping[str, object]
) -> FieldMistake:
    names = directions if "->" in change.link else links
    noun = "direction" if "->" in change.link else "link"
    return change.where, f"there is no {noun} '{change.link[:60]}'; {nearest(change.link, names)}"


class _LinkState:
    """The state of a link, as events change it."""

    def __init__(self, scenario: ScenarioModel, key: str) -> None:
        self._link = scenario.network.links[key]
        self._key = key
        self._down: int | None = None
        self._cut: dict[bool, int] = {}
        self._now = {forward: self._link.conditions(forward=forward) for forward in (True, False)}

    def apply(self, change: Happening, sides: tuple[bool, ...]) -> Iterator[FieldMistake]:
        """Changes the state; tells why the happening makes no sense in it."""
        since = self._down if change.kind == "down" else None
        if change.kind == "cut":
            since = max((self._cut[side] for side in sides if side in self._cut), default=None)
        if since is not None:
            was = "down" if change.kind == "down" else "cut"
            yield (
                change.where,
                f"{change.link} is {was} since {Duration(since)} already; bring it up first, or leave this out",
            )
        elif change.kind == "down":
            self._down = change.at
        elif change.kind == "cut":
            self._cut |= dict.fromkeys(sides, change.at)
        elif change.kind == "up":
            yield from self._up(change, sides)
        else:
            yield from self._set(change)

    def _up(self, change: Happening, sides: tuple[bool, ...]) -> Iterator[FieldMistake]:
        cut = [self._cut.pop(side) for side in sides if side in self._cut]
        was_down = len(sides) == 2 and self._down is not None
        if was_down:
            self._down = None
        if not cut and not was_down and change.where[-1] != "to":
            yield (
                change.where,
                f"{change.link} is neither down nor cut at {Duration(change.at)}; leave this out",
            )

    def _trace_mistakes(
        self, change: Happening, values: dict[str, object], before: Conditions
    ) -> list[FieldMistake]:
        """What a trace says is not set by events, nor is there another trace in the course of a trial."""
        mistakes: list[FieldMistake] = []
        if "trace" in values:
            mistakes.append(
                ((*change.where, "trace"), "a trace is followed from the start; give it under network.links")
            )
        if before.trace is not None:
            ruled = ("rate",) if before.trace.kind == "mahimahi" else ("rate", "delay", "loss")
            message = f"{self._key} follows a trace, which says its conditions; leave this out, or the trace"
            mistakes += [((*change.where, field), message) for field in ruled if field in values]
        return mistakes

    def _set(self, change: Happening) -> Iterator[FieldMistake]:
        assert change.change is not None  # happenings say what is set
        mistakes: list[FieldMistake] = []
        for forward in (True, False):
            values = change.change.given(forward=forward)
            before = self._now[forward]
            after = Conditions.model_construct(
                **({n: getattr(before, n) for n in Conditions.model_fields} | values)
            )
            mistakes += [
                ((*change.where, field), f"an event cannot take the {field} away; give another value")
                for field in ("rate", "queue")
                if field in values and values[field] is None
            ]
            mistakes += self._trace_mistakes(change, values, before)
            if "rate" in values and before.rate is None and before.trace is None:
                message = (
                    f"{self._key} has no rate that could change; give it one under network.links.{self._key} "
                    "(an event can change a rate, and not add one)"
                )
                mistakes.append(((*change.where, "rate"), message))
            mistakes += [
                ((*change.where, *where), message)
                for where, message in condition_mistakes(after, self._link.mtu)
            ]
            self._now[forward] = after
        if not any(change.change.given(forward=forward) for forward in (True, False)):
            mistakes.append((change.where, "nothing is set; give a condition, such as rate: 2mbit"))
        yield from dict.fromkeys(mistakes)
