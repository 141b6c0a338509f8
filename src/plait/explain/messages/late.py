"""Why messages were late or lost: each gets one cause, from what links and subflows did while it was on its way.

In this order: a link that was down, packets that were dropped, packets that waited in a queue, jitter, a farther path
of the same connection, segments that waited to be filled, and what else its sender waited for then.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plait.explain.causes import Cause
from plait.explain.history import LOOK_BACK
from plait.explain.messages.timing import one_way_us

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.explain.capacity import Network
    from plait.explain.messages.timing import Messages
    from plait.explain.states import PathTime
    from plait.plan.model.plan import Path

    Where = tuple[str, ...]
    Found = tuple[Cause, Where]

Array = np.ndarray

ENOUGH = 0.4
"""A queue, or jitter, explains a delay of which it makes up so much."""
OTHERS = 0.2
"""Others are to blame for a full queue when so much of what its link carried was theirs."""
SLOWER = 0.95
"""A link has become slower when its rate is below so much of what it was at first."""
FULL = 0.8
"""A link with less load overflowed because its queue is short."""
DELAYED_ACK_US = 40_000
"""For so long a receiver may keep an acknowledgement back (TCP_DELACK_MIN)."""
MOST = 2000
"""So many of the late messages are looked at, evenly taken."""
WAITED = frozenset(
    {
        Cause.RECEIVE_WINDOW,
        Cause.SEND_BUFFER,
        Cause.HEAD_OF_LINE,
        Cause.MEMORY_PRESSURE,
        Cause.LOSS_RECOVERY,
        Cause.QUEUE_FULL,
        Cause.TOO_SHORT,
        Cause.SCHEDULER_IDLE_PATH,
        Cause.SUBFLOW_LATE,
    }
)
"""What a sender may have waited for while it had a message to send."""


@dataclass(frozen=True)
class Way:
    """One path in use, and what its own flow did on it in each slice."""

    path: Path
    own_bytes: Array
    """Frame bytes that the flow put on it."""
    again: Array
    """Segments that were sent again, either way."""
    time: PathTime | None = None


class Suspects:
    """All that may have delayed the messages of one flow."""

    def __init__(self, network: Network, messages: Messages, ways: Sequence[Way]) -> None:
        self._net, self._messages, self._ways = network, messages, ways
        self._datagrams = messages.flow.transport == "udp"
        self._answers = messages.flow.kind in ("request", "page")
        self._last = len(network.edges) - 2

    def shares(self) -> Mapping[Found, float]:
        """The part of all messages that each cause made late, or lost."""
        hit = np.flatnonzero(self._messages.late | self._messages.lost)
        looked = hit[:: max(1, len(hit) // MOST)]
        counted = Counter(self._why(int(number)) for number in looked)
        weight = len(hit) / max(len(looked), 1) / len(self._messages.sent)
        return {found: count * weight for found, count in counted.items()}

    def _why(self, number: int) -> Found:
        begin, end = self._messages.sent[number], self._messages.received[number]
        lost = bool(np.isnan(end))
        base = self._messages.base[number]
        excess = np.inf if lost else end - begin - base
        window = self._slices(begin, begin + 2 * base if lost else end)
        suspects = (self._down, self._dropped) if lost else (
            self._down, self._dropped, self._queued, self._jittered, self._farther, self._gathered, self._waited,
        )  # fmt: skip
        for suspect in suspects:
            if found := suspect(window, float(excess)):
                return found
        return Cause.NOT_KNOWN, ()

    def _slices(self, begin: float, end: float) -> slice:
        first = int(np.searchsorted(self._net.edges, begin, side="right")) - 1
        last = int(np.searchsorted(self._net.edges, end, side="left"))
        first = min(max(first, 0), self._last)
        return slice(first, min(max(last, first + 1), self._last + 1))

    def _links(self, way: Way) -> tuple[str, ...]:
        return (*way.path.forward, *(way.path.backward if self._answers else ()))

    def _down(self, at: slice, _: float) -> Found | None:
        for way in self._ways:
            ends = (*way.path.forward, *way.path.backward)
            if np.any(self._net.down(ends)[at] > 0):
                return Cause.PATH_DOWN, (way.path.name,)
        return None

    def _dropped(self, at: slice, _: float) -> Found | None:
        """Drops on the way: of UDP all count, of TCP those of paths on which something was sent again.

        What waits for a retransmission may have been sent after the drop.
        """
        if not self._datagrams:
            at = slice(max(0, at.start - LOOK_BACK), at.stop)
        worst: tuple[float, str] = (0.0, "")
        for way in self._ways:
            if not self._datagrams and not np.any(way.again[at] > 0):
                continue
            for name in self._links(way):
                worst = max(worst, (float(self._net.dropped(name)[at].sum()), name))
        count, name = worst
        if count <= 0:
            return None
        if float(self._net.overflowed(name)[at].sum()) < 0.5 * count:
            return Cause.LOSS_RECOVERY, (name,)
        return self._filled(name, at) or (Cause.QUEUE_FULL, (name,))

    def _queued(self, at: slice, excess: float) -> Found | None:
        worst: tuple[float, str] = (0.0, "")
        for name in dict.fromkeys(name for way in self._ways for name in self._links(way)):
            waits = self._net.counter(name, "queue_bytes")
            if waits is None:
                continue
            held = np.maximum(waits[:-1], waits[1:])[at] * 8e6 / self._net.rate(name)[at]
            worst = max(worst, (float(held.max()), name))
        held_us, name = worst
        return self._filled(name, at) if name and held_us >= ENOUGH * excess else None

    def _filled(self, name: str, at: slice) -> Found | None:
        """Who or what filled a link; None where it was not full."""
        # What leaves a queue was sent up to some slices before.
        at = slice(max(0, at.start - LOOK_BACK), at.stop)
        sent = self._net.sent(name)
        rate = self._net.rate(name)[at]
        first = self._net.directions[name].rate_bps
        carried = float(sent[at].sum()) if sent is not None else 0.0
        room = float((rate * np.diff(self._net.edges)[at]).sum()) / 8e6
        for bucket, empty in self._net.emptied((name,)).items():
            if empty[at].any():
                return Cause.BUCKET_EMPTY, (bucket,)
        if first and float(rate.min()) < SLOWER * first:
            return Cause.RATE_CHANGED, (name,)
        own = sum(float(way.own_bytes[at].sum()) for way in self._ways if name in self._links(way))
        if carried and (carried - own) / carried >= OTHERS:
            return Cause.COMPETING_TRAFFIC, (name,)
        if carried < FULL * room:
            return None
        return (Cause.RATE_TOO_HIGH if self._datagrams else Cause.QUEUE_FULL), (name,)

    def _jittered(self, _: slice, excess: float) -> Found | None:
        for way in self._ways:
            names = [name for name in self._links(way) if self._net.directions[name].jitter_ns]
            if (
                sum(self._net.directions[name].jitter_ns for name in names) / 1000 >= ENOUGH * excess
                and names
            ):
                return Cause.JITTER, tuple(names)
        return None

    def _farther(self, at: slice, excess: float) -> Found | None:
        """A path of the same connection that takes longer, and carried something just then."""
        far = {way.path.name: one_way_us(self._net.plan, way.path) for way in self._ways}
        nearest = min(far.values())
        for way in self._ways:
            if way.own_bytes[at].sum() > 0 and far[way.path.name] - nearest >= ENOUGH * excess:
                return Cause.HEAD_OF_LINE, (way.path.name,)
        return None

    def _gathered(self, _: slice, excess: float) -> Found | None:
        """Nagle's algorithm: less than a segment waits until what went before is acknowledged, or for more to come."""
        flow = self._messages.flow
        if flow.transport == "udp" or flow.socket.nodelay or self._answers:
            return None
        longest = max(way.path.base_rtt_us for way in self._ways)
        return (Cause.NAGLE, (flow.sender,)) if excess <= longest + DELAYED_ACK_US else None

    def _waited(self, at: slice, _: float) -> Found | None:
        """What the sender waited for on any of its paths."""
        spent: dict[Found, float] = {}
        for way in self._ways:
            for (cause, where), us in way.time.time.items() if way.time is not None else ():
                if cause in WAITED:
                    spent[cause, where] = spent.get((cause, where), 0.0) + float(us[at].sum())
        found = max(spent, key=lambda one: spent[one], default=None)
        return found if found is not None and spent[found] > 0 else None
