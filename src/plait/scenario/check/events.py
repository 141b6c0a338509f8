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
    everything = happenings(scenario.events)
    states_known &= all(one.link in names or one.link in directions for one in everything)
    for one in everything:
        key, forward = (one.link, None) if one.link in names else directions.get(one.link, (None, None))
        if key is None:
            if one.link not in scenario.network.links:
                yield _unknown(one, names, directions)
        elif not states_known:
            continue
        elif forward is None or one.kind in ("cut", "up"):
            state = states[key] = states.get(key) or _LinkState(scenario, key)
            yield from state.take(one, (True, False) if forward is None else (forward,))
        else:
            side = "forward" if forward else "backward"
            right = f"write cut: {one.link}" if one.kind == "down" else f"write {key}: {{{side}: {{..}}}}"
            yield one.where, f"'{one.link}' is one direction of {key}, and this is for links; {right}"


def _unknown(one: Happening, links: Mapping[str, object], directions: Mapping[str, object]) -> FieldMistake:
    known = directions if "->" in one.link else links
    what = "direction" if "->" in one.link else "link"
    return one.where, f"there is no {what} '{one.link[:60]}'; {nearest(one.link, known)}"


class _LinkState:
    """The state of a link, as events change it."""

    def __init__(self, scenario: ScenarioModel, key: str) -> None:
        self._link = scenario.network.links[key]
        self._key = key
        self._down: int | None = None
        self._cut: dict[bool, int] = {}
        self._now = {forward: self._link.conditions(forward=forward) for forward in (True, False)}

    def take(self, one: Happening, sides: tuple[bool, ...]) -> Iterator[FieldMistake]:
        """Changes the state; tells why the happening makes no sense in it."""
        since = self._down if one.kind == "down" else None
        if one.kind == "cut":
            since = max((self._cut[side] for side in sides if side in self._cut), default=None)
        if since is not None:
            was = "down" if one.kind == "down" else "cut"
            yield (
                one.where,
                f"{one.link} is {was} since {Duration(since)} already; bring it up first, or leave this out",
            )
        elif one.kind == "down":
            self._down = one.at
        elif one.kind == "cut":
            self._cut |= dict.fromkeys(sides, one.at)
        elif one.kind == "up":
            yield from self._up(one, sides)
        else:
            yield from self._set(one)

    def _up(self, one: Happening, sides: tuple[bool, ...]) -> Iterator[FieldMistake]:
        cut = [self._cut.pop(side) for side in sides if side in self._cut]
        was_down = len(sides) == 2 and self._down is not None
        if was_down:
            self._down = None
        if not cut and not was_down and one.where[-1] != "to":
            yield one.where, f"{one.link} is neither down nor cut at {Duration(one.at)}; leave this out"

    def _followed(self, one: Happening, given: dict[str, object], before: Conditions) -> list[FieldMistake]:
        """What a trace says is not set by events, nor is there another trace in the course of a trial."""
        found: list[FieldMistake] = []
        if "trace" in given:
            found.append(
                ((*one.where, "trace"), "a trace is followed from the start; give it under network.links")
            )
        if before.trace is not None:
            ruled = ("rate",) if before.trace.kind == "mahimahi" else ("rate", "delay", "loss")
            what = f"{self._key} follows a trace, which says its conditions; leave this out, or the trace"
            found += [((*one.where, field), what) for field in ruled if field in given]
        return found

    def _set(self, one: Happening) -> Iterator[FieldMistake]:
        assert one.change is not None  # happenings say what is set
        found: list[FieldMistake] = []
        for forward in (True, False):
            given = one.change.given(forward=forward)
            before = self._now[forward]
            after = Conditions.model_construct(
                **({n: getattr(before, n) for n in Conditions.model_fields} | given)
            )
            found += [
                ((*one.where, field), f"an event cannot take the {field} away; give another value")
                for field in ("rate", "queue")
                if field in given and given[field] is None
            ]
            found += self._followed(one, given, before)
            if "rate" in given and before.rate is None and before.trace is None:
                what = (
                    f"{self._key} has no rate that could change; give it one under network.links.{self._key} "
                    "(an event can change a rate, and not add one)"
                )
                found.append(((*one.where, "rate"), what))
            found += [((*one.where, *at), what) for at, what in condition_mistakes(after, self._link.mtu)]
            self._now[forward] = after
        if not any(one.change.given(forward=forward) for forward in (True, False)):
            found.append((one.where, "nothing is set; give a condition, such as rate: 2mbit"))
        yield from dict.fromkeys(found)
