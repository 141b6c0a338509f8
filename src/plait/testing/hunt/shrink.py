"""Makes a failing case smaller, as long as the same invariant still fails: without parts, and with plainer values.

The order of attempts is that of Hypothesis and of delta debugging: first large parts, then single ones, then values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from plait.testing.hunt.case import HuntCase
from plait.testing.hunt.kinds import KINDS

FirstFailing = Callable[[Sequence[HuntCase]], int | None]

MOST_ATTEMPTS = 400
_PLAIN: dict[str, Any] = {
    "scheduler": "default", "congestion_control": "cubic", "receive_buffer": 6 << 20, "send_buffer": 4 << 20,
    "ipv6": False, "checksums": False, "user_paths": False,
    "most_subflows": 8,
}  # fmt: skip
_PLAIN_LINK: dict[str, Any] = {
    "loss_percent": 0, "mtu": 1500, "queue_packets": 100, "signal": False, "own_port": False,
    "endpoint": "subflow", "rate_mbit": 10, "delay_ms": 5,
}  # fmt: skip
_PLAIN_CONNECTION: dict[str, Any] = {
    "start_ms": 0, "early_end": False, "hold": False, "read_every_ms": 0, "write_bytes": 0, "write_every_ms": 0,
    "fast_open": False, "read_by": "recv",
}  # fmt: skip
_PLAIN_SIZES = (0, 1, 3000, 100_000, 1_000_000, 3_000_000)


def shrink(case: HuntCase, first_failing: FirstFailing, parallel: int) -> tuple[HuntCase, int]:
    """Return a case as small as plait finds, and the number of attempts.

    `first_failing` returns the index of the first of up to `parallel` cases that still fails, or None.
    """
    attempts = 0
    smaller = True
    while smaller and attempts < MOST_ATTEMPTS:
        smaller = False
        for attempt in (_without_events, _without_connections, _without_links, _plainer):
            position = 0
            while attempts < MOST_ATTEMPTS:
                candidates = list(attempt(case))[position : position + parallel]
                if not candidates:
                    break
                attempts += len(candidates)
                index = first_failing(candidates)
                if index is None:
                    position += parallel
                else:  # later attempts at the same place come next; earlier ones again in the next round
                    case, smaller, position = candidates[index], True, max(0, position - 1)
    return case, attempts


def _without_events(case: HuntCase) -> Iterator[HuntCase]:
    """Yield the case without half of its events, a quarter, .., and without each one."""
    count = len(case.events)
    size = count
    while size:
        for start in range(0, count, size):
            kept = (*case.events[:start], *case.events[start + size :])
            yield case.model_copy(update={"events": kept})
        size //= 2


def _without_connections(case: HuntCase) -> Iterator[HuntCase]:
    for gone in range(len(case.connections) if len(case.connections) > 1 else 0):
        yield _renumbered(case, "connections", "connection", gone)


def _without_links(case: HuntCase) -> Iterator[HuntCase]:
    for gone in reversed(range(len(case.links) if len(case.links) > 1 else 0)):
        yield _renumbered(case, "links", "link", gone)


def _renumbered(case: HuntCase, field: str, name: str, gone: int) -> HuntCase:
    parts = getattr(case, field)
    events = []
    for event in case.events:
        number = getattr(event, name)
        if not getattr(KINDS[event.do], name):
            events.append(event.model_copy(update={name: 0}))
        elif number != gone:
            events.append(event.model_copy(update={name: number - (number > gone)}))
    return case.model_copy(update={field: (*parts[:gone], *parts[gone + 1 :]), "events": tuple(events)})


def _plainer(case: HuntCase) -> Iterator[HuntCase]:
    """Yield the case with one value that is plainer."""
    for name, value in _PLAIN.items():
        if getattr(case, name) != value:
            yield case.model_copy(update={name: value})
    for i, connection in enumerate(case.connections):
        for change in _plainer_connection(connection.model_dump()):
            yield _replaced(case, "connections", i, change)
    for i, link in enumerate(case.links):
        for name, value in _PLAIN_LINK.items():
            if getattr(link, name) != value:
                yield _replaced(case, "links", i, {name: value})
    for i, event in enumerate(case.events):
        for step in (1000, 100):
            if event.at_ms % step:
                yield _replaced(case, "events", i, {"at_ms": max(step, round(event.at_ms / step) * step)})


def _plainer_connection(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ("up_bytes", "down_bytes"):
        for size in _PLAIN_SIZES:
            if size < values[name]:
                yield {name: size}
    for name, value in _PLAIN_CONNECTION.items():
        if values[name] != value:
            yield {name: value}


def _replaced(case: HuntCase, field: str, index: int, change: dict[str, Any]) -> HuntCase:
    parts = list(getattr(case, field))
    parts[index] = parts[index].model_copy(update=change)
    if field == "events":
        parts.sort(key=lambda event: event.at_ms)
    try:
        return HuntCase.model_validate(case.model_copy(update={field: tuple(parts)}).model_dump())
    except ValidationError:
        return case
