"""Check events: the links exist, and are in a state in which the event has an effect; hosts have what it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plait.scenario.check.conditions import condition_mistakes
from plait.scenario.fields.conditions import Conditions
from plait.scenario.fields.events import MAX_EVENTS, Change, Happening, happenings, host_happenings
from plait.scenario.fields.host_events import EndpointChange
from plait.scenario.fields.settings import EndpointSpec
from plait.scenario.mistakes import FieldMistake, Where
from plait.scenario.model import ScenarioModel
from plait.scenario.names import LinkName, is_address
from plait.scenario.wording import nearest
from plait.units import Duration

WITHOUT_STATES = "without_states"
"""Key of pydantic's validation context: set if events are missing, so the states of links are unknown."""


def check_events(
    scenario: ScenarioModel, names: Mapping[str, LinkName], *, states_known: bool
) -> Iterator[FieldMistake]:
    """Yield every mistake in the events, in the order of time; `names` holds the links with valid names."""
    if len(scenario.events) > MAX_EVENTS:
        yield ("events",), f"there are {len(scenario.events)} events; a scenario has at most {MAX_EVENTS}"
        return
    for i, event in enumerate(scenario.events):
        if scenario.until is not None and int(event.at) > int(scenario.until):
            yield (
                ("events", i, "at"),
                f"{event.at} is after the end of the trial (until: {scenario.until}); write an earlier time",
            )
    directions = {
        name.direction(forward=forward): (key, forward)
        for key, name in names.items()
        for forward in (True, False)
    }
    states: dict[str, _LinkState] = {}
    changes = happenings(scenario.events)
    states_known &= all(change.subject in names or change.subject in directions for change in changes)
    for change in changes:
        key, forward = (
            (change.subject, None)
            if change.subject in names
            else directions.get(change.subject, (None, None))
        )
        if key is None:
            if change.subject not in scenario.network.links:
                yield _no_such_link(change, names, directions)
        elif not states_known:
            continue
        elif forward is None or change.kind in ("cut", "up"):
            state = states[key] = states.get(key) or _LinkState(scenario, key)
            yield from state.apply(change, (True, False) if forward is None else (forward,))
        else:
            side = "forward" if forward else "backward"
            right = (
                f"write cut: {change.subject}"
                if change.kind == "down"
                else f"write {key}: {{{side}: {{..}}}}"
            )
            yield (
                change.where,
                f"'{change.subject}' is one direction of {key}, but this event takes a link; {right}",
            )


def _no_such_link(
    change: Happening, links: Mapping[str, object], directions: Mapping[str, object]
) -> FieldMistake:
    names = directions if "->" in change.subject else links
    noun = "direction" if "->" in change.subject else "link"
    pair, mark, number = change.subject.partition("#")
    turned = "-".join(reversed(pair.split("-"))) + mark + number
    guess = f"did you mean '{turned}'?" if turned in names else nearest(change.subject, names)
    return change.where, f"there is no {noun} '{change.subject[:60]}'; {guess}"


class _LinkState:
    """The state of a link, which events change."""

    def __init__(self, scenario: ScenarioModel, key: str) -> None:
        self._link = scenario.network.links[key]
        self._key = key
        self._down: int | None = None
        self._cut: dict[bool, int] = {}
        self._now = {forward: self._link.conditions(forward=forward) for forward in (True, False)}

    def apply(self, change: Happening, sides: tuple[bool, ...]) -> Iterator[FieldMistake]:
        """Change the state, and yield why the change is impossible in it."""
        since = self._down if change.kind == "down" else None
        if change.kind == "cut":
            since = max((self._cut[side] for side in sides if side in self._cut), default=None)
        if since is not None:
            was = "down" if change.kind == "down" else "cut"
            yield (
                change.where,
                f"{change.subject} is {was} since {Duration(since)} already; bring it up first, or remove this event",
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
                f"{change.subject} is neither down nor cut at {Duration(change.at)}; remove this event",
            )

    def _trace_mistakes(
        self, change: Happening, values: dict[str, object], before: Conditions
    ) -> list[FieldMistake]:
        """Return mistakes of events that set what a trace sets, or that set a trace."""
        mistakes: list[FieldMistake] = []
        if "trace" in values:
            mistakes.append(
                (
                    (*change.where, "trace"),
                    "a link follows its trace from the start; write it under network.links",
                )
            )
        if before.trace is not None:
            ruled = ("rate",) if before.trace.kind == "mahimahi" else ("rate", "delay", "loss")
            message = f"{self._key} follows a trace, which sets this condition; remove one of them"
            mistakes += [((*change.where, field), message) for field in ruled if field in values]
        return mistakes

    def _set(self, change: Happening) -> Iterator[FieldMistake]:
        assert isinstance(change.detail, Change)  # as `happenings` fills it in
        mistakes: list[FieldMistake] = []
        for forward in (True, False):
            values = change.detail.given(forward=forward)
            before = self._now[forward]
            after = before.model_copy(update=values)
            mistakes += [
                ((*change.where, field), f"an event cannot remove the {field}; write a value")
                for field in ("rate", "queue")
                if field in values and values[field] is None
            ]
            mistakes += self._trace_mistakes(change, values, before)
            if "rate" in values and before.rate is None and before.trace is None:
                message = (
                    f"{self._key} has no rate, and an event can only change a rate; "
                    f"add one under network.links.{self._key}"
                )
                mistakes.append(((*change.where, "rate"), message))
            mistakes += [
                ((*change.where, *where), message)
                for where, message in condition_mistakes(after, self._link.mtu)
            ]
            self._now[forward] = after
        if not any(change.detail.given(forward=forward) for forward in (True, False)):
            mistakes.append((change.where, "the event sets nothing; add a condition, such as rate: 2mbit"))
        yield from dict.fromkeys(mistakes)


def check_host_events(scenario: ScenarioModel, links_of: Mapping[str, set[str]]) -> Iterator[FieldMistake]:
    """Yield mistakes that need no addresses: unknown nodes and links, and endpoints that the kernel does not manage."""
    hosts, nodes = scenario.network.hosts, {**scenario.network.hosts, **scenario.network.routers}
    for change in host_happenings(scenario.events):
        names, kind = (nodes, "host or router") if change.kind == "sysctls" else (hosts, "host")
        if change.subject not in names:
            field = change.where[:4]
            yield field, f"no {kind} is called '{change.subject[:40]}'; {nearest(change.subject, names)}"
        elif change.kind != "sysctls" and scenario.mptcp.subflows_per_path > 1:
            yield (
                change.where[:3],
                "with subflows_per_path plait opens all subflows at the beginning; remove one of the two",
            )
        elif change.kind in ("remove", "change", "add"):
            yield from _endpoint_mistakes(change, links_of.get(change.subject, set()))


def _endpoint_mistakes(change: Happening, links: set[str]) -> Iterator[FieldMistake]:
    """Yield mistakes in the link or the address of an endpoint."""
    if isinstance(change.detail, str):
        if change.detail not in links and not is_address(change.detail):
            guess = nearest(change.detail, links)
            message = f"{change.subject} has no link '{change.detail[:40]}', nor is that an address; {guess}"
            yield change.where, message
        return
    assert isinstance(change.detail, (EndpointChange, EndpointSpec))
    yield from endpoint_mistakes(change.subject, change.detail, change.where, links)


def endpoint_mistakes(
    host: str, endpoint: EndpointChange | EndpointSpec, here: Where, links: set[str]
) -> Iterator[FieldMistake]:
    """Yield mistakes in the link or the address of an endpoint of a host with these links."""
    if endpoint.link is not None and endpoint.link not in links:
        yield (*here, "link"), f"{host} has no link '{endpoint.link[:40]}'; {nearest(endpoint.link, links)}"
    if endpoint.address is not None and not is_address(endpoint.address):
        message = f"'{endpoint.address[:40]}' is not an address; write for example 10.0.1.1"
        yield (*here, "address"), message
