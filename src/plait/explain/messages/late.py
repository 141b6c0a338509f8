"""Find the cause of each late or lost message from the links and subflows while the message was in flight.

The causes are tested in this order: a link was down, the receiver had no memory, packets were dropped, packets waited
in a queue, jitter, a path of the same connection with a higher delay, what its sender waited for with whole segments,
the rules of kinds of cause (`late_rule`), and what its sender waited for at all. A wait explains a delay only if it
is a large part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from plait.explain.capacity import NetworkTimeline
from plait.explain.cause import Array, Cause, Places
from plait.explain.causes import ANY_SEGMENTS, LATE_RULES, WHOLE_SEGMENTS
from plait.explain.facts import FlowFacts, LateMessage
from plait.explain.messages.timing import Messages, one_way_us
from plait.explain.time.history import LOOK_BACK
from plait.explain.time.path_time import PathTime
from plait.plan.model.plan import Path

Attribution = tuple[str, Places]


EXPLAINS = 0.4
"""A queue, jitter, another path or a wait explains a delay if it makes up at least this share of the excess."""
OTHERS_SHARE = 0.2
"""Competing traffic explains a full queue if it made up at least this share of what the link carried."""
SLOWER = 0.95
"""A link has become slower when its rate is below this share of its initial rate."""
FULL = 0.8
"""Below this load a link overflowed because its queue is short."""
MAX_EXAMINED = 2000
"""At most this many late or lost messages are examined, evenly spaced."""


@dataclass(frozen=True)
class PathUse:
    """The bytes and retransmissions of the flow on one of its paths in each slice."""

    path: Path
    own_bytes: Array
    """Frame bytes that the flow sent over it."""
    retransmitted_segments: Array
    """Segments that were retransmitted, in either direction."""


@dataclass(frozen=True)
class Carrier:
    """One of the connections that may have carried a message: its facts, and the time of each of its paths."""

    facts: FlowFacts
    times: Sequence[PathTime]

    def carried(self, begin_us: float, end_us: float) -> bool:
        """Return whether its sender sent something between two times."""
        return any(self._within(path.growth("sent_bytes"), begin_us, end_us) > 0 for path in self.facts.paths)

    def waits_us(self, begin_us: float, end_us: float) -> Mapping[Attribution, float]:
        """Return the time that its sender spent on each cause between two times, over all its paths."""
        spent: dict[Attribution, float] = {}
        for path_time in self.times:
            if path_time.facts.planned is not None and path_time.facts.subflows:
                for key, us in path_time.time.items():
                    spent[key] = spent.get(key, 0.0) + self._within(us, begin_us, end_us)
        return spent

    def stood_us(self, begin_us: float, end_us: float) -> float:
        """Return how long its receiver had no memory between two times."""
        return self._within(np.diff(self.facts.edges) * self.facts.memory_full, begin_us, end_us)

    def _within(self, amounts: Array, begin_us: float, end_us: float) -> float:
        """Return what of the amounts of all slices falls between two times."""
        if not np.ndim(amounts):
            return 0.0
        total = np.concatenate(([0.0], np.cumsum(amounts)))
        first, last = np.interp([begin_us, end_us], self.facts.edges, total)
        return float(last - first)


class LateMessages:
    """The late and lost messages of one flow, and what may have caused them."""

    def __init__(
        self,
        network: NetworkTimeline,
        messages: Messages,
        path_uses: Sequence[PathUse],
        connections: Sequence[Carrier] = (),
    ) -> None:
        """`connections`: those of a flow of TCP or MPTCP, its own first."""
        self._net, self._messages, self._path_uses = network, messages, path_uses
        self._connections = connections
        self._datagrams = messages.flow.transport == "udp"
        self._answers = messages.flow.application.ANSWERS
        self._last_slice = len(network.edges) - 2

    def shares(self) -> Mapping[Attribution, float]:
        """Return the share of all messages that each cause made late or lost."""
        affected = np.flatnonzero(self._messages.late | self._messages.lost)
        examined = affected[:: max(1, len(affected) // MAX_EXAMINED)]
        counts = Counter(self._attribute(int(number)) for number in examined)
        weight = len(affected) / max(len(examined), 1) / len(self._messages.sent)
        return {attribution: count * weight for attribution, count in counts.items()}

    def _attribute(self, number: int) -> Attribution:
        begin, end = self._messages.sent[number], self._messages.received[number]
        lost = bool(np.isnan(end))
        base = self._messages.base[number]
        excess = np.inf if lost else end - begin - base
        window = self._slices(begin, begin + 2 * base if lost else end)
        tests = (
            self._path_down,
            self._memory,
            self._drops,
            self._queue,
            self._jitter,
            self._farther_path,
            partial(self.sender_waited, WHOLE_SEGMENTS),
            self._kinds,
            partial(self.sender_waited, ANY_SEGMENTS),
        )
        for test in tests[:3] if lost else tests:
            if attribution := test(window, float(excess)):
                return attribution
        return Cause.NOT_KNOWN, ()

    def _slices(self, begin: float, end: float) -> slice:
        first = int(np.searchsorted(self._net.edges, begin, side="right")) - 1
        last = int(np.searchsorted(self._net.edges, end, side="left"))
        first = min(max(first, 0), self._last_slice)
        return slice(first, min(max(last, first + 1), self._last_slice + 1))

    def _links(self, path_use: PathUse) -> tuple[str, ...]:
        return (*path_use.path.forward, *(path_use.path.backward if self._answers else ()))

    def _path_down(self, slices: slice, _: float) -> Attribution | None:
        for path_use in self._path_uses:
            ends = (*path_use.path.forward, *path_use.path.backward)
            if np.any(self._net.down_shares(ends)[slices] > 0):
                return Cause.PATH_DOWN, (path_use.path.name,)
        return None

    def _memory(self, slices: slice, excess: float) -> Attribution | None:
        """Return the receiver as the cause if it stood still without memory for the greater part of the delay."""
        span, carriers = self._carriers(slices)
        stood_us = min((connection.stood_us(*span) for connection in carriers), default=0.0)
        is_cause = np.isfinite(excess) and stood_us and stood_us >= EXPLAINS * excess
        return (Cause.RECEIVE_MEMORY, (carriers[0].facts.receiver,)) if is_cause else None

    def _carriers(self, slices: slice) -> tuple[tuple[float, float], Sequence[Carrier]]:
        """Return the time of some slices, and the connections that may have carried a message then.

        The table `messages` does not say which connection carried an object of a page, so a wait explains its delay
        only if each of them waited.
        """
        span = float(self._net.edges[slices.start]), float(self._net.edges[slices.stop])
        if len(self._connections) < 2:
            return span, self._connections
        return span, [connection for connection in self._connections if connection.carried(*span)]

    def _drops(self, slices: slice, _: float) -> Attribution | None:
        """Return a drop as the cause: any drop for UDP; for TCP a drop on a path with retransmissions.

        A TCP message may wait for the retransmission of a segment that was dropped before the message was sent.
        """
        if not self._datagrams:
            slices = slice(max(0, slices.start - LOOK_BACK), slices.stop)
        worst: tuple[float, str] = (0.0, "")
        for path_use in self._path_uses:
            if not self._datagrams and not np.any(path_use.retransmitted_segments[slices] > 0):
                continue
            for name in self._links(path_use):
                worst = max(worst, (float(self._net.dropped(name)[slices].sum()), name))
        count, name = worst
        if count <= 0:
            return None
        if float(self._net.overflowed(name)[slices].sum()) < 0.5 * count:
            return Cause.LOSS_RECOVERY, (name,)
        return self._full_link(name, slices) or (Cause.QUEUE_FULL, (name,))

    def _queue(self, slices: slice, excess: float) -> Attribution | None:
        worst: tuple[float, str] = (0.0, "")
        for name in dict.fromkeys(name for path_use in self._path_uses for name in self._links(path_use)):
            queued = self._net.counter(name, "queue_bytes")
            if queued is None:
                continue
            waiting_us = np.maximum(queued[:-1], queued[1:])[slices] * 8e6 / self._net.rate(name)[slices]
            worst = max(worst, (float(waiting_us.max()), name))
        longest_us, name = worst
        return self._full_link(name, slices) if name and longest_us >= EXPLAINS * excess else None

    def _full_link(self, name: str, slices: slice) -> Attribution | None:
        """Return who or what filled a link; None if it was not full."""
        # Packets that leave the queue may have been sent some slices before.
        slices = slice(max(0, slices.start - LOOK_BACK), slices.stop)
        sent = self._net.sent(name)
        rate = self._net.rate(name)[slices]
        initial_rate = self._net.directions[name].rate_bps
        carried = float(sent[slices].sum()) if sent is not None else 0.0
        room = float((rate * np.diff(self._net.edges)[slices]).sum()) / 8e6
        for bucket, empty in self._net.empty_buckets((name,)).items():
            if empty[slices].any():
                return Cause.BUCKET_EMPTY, (bucket,)
        if initial_rate and float(rate.min()) < SLOWER * initial_rate:
            return Cause.RATE_CHANGED, (name,)
        own_bytes = sum(
            float(path_use.own_bytes[slices].sum())
            for path_use in self._path_uses
            if name in self._links(path_use)
        )
        if carried and (carried - own_bytes) / carried >= OTHERS_SHARE:
            return Cause.COMPETING_TRAFFIC, (name,)
        if carried < FULL * room:
            return None
        return (Cause.RATE_TOO_HIGH if self._datagrams else Cause.QUEUE_FULL), (name,)

    def _jitter(self, slices: slice, excess: float) -> Attribution | None:
        """Return the jitter of a path that carried data at that time, unless its higher delay explains more."""
        for path_use, farther_us in zip(self._path_uses, self._farther_us(), strict=True):
            names = [name for name in self._links(path_use) if self._net.directions[name].jitter_ns]
            jitter_us = sum(self._net.directions[name].jitter_ns for name in names) / 1000
            explains = jitter_us >= max(EXPLAINS * excess, farther_us)
            if names and explains and path_use.own_bytes[slices].sum() > 0:
                return Cause.JITTER, tuple(names)
        return None

    def _farther_us(self) -> list[float]:
        """Return by how much the delay of each path exceeds that of the nearest one."""
        delays = [one_way_us(self._net.plan, path_use.path) for path_use in self._path_uses]
        return [delay - min(delays) for delay in delays]

    def _farther_path(self, slices: slice, excess: float) -> Attribution | None:
        """Return another path of the connection that has a higher delay and carried data at that time.

        It is not to blame if it carried the data because the nearest path had failed.
        """
        farther = self._farther_us()
        nearest = int(np.argmin(farther))
        for path_use, farther_us in zip(self._path_uses, farther, strict=True):
            if path_use.own_bytes[slices].sum() > 0 and farther_us >= EXPLAINS * excess:
                if self._has_not_recovered(self._path_uses[nearest], slices):
                    return Cause.PATH_DOWN, (self._path_uses[nearest].path.name,)
                return Cause.HEAD_OF_LINE, (path_use.path.name,)
        return None

    def _has_not_recovered(self, path_use: PathUse, slices: slice) -> bool:
        """Return whether a path was down before, and has carried nothing but retransmissions since."""
        ends = (*path_use.path.forward, *path_use.path.backward)
        down = np.flatnonzero(self._net.down_shares(ends)[: slices.stop] > 0)
        if not len(down):
            return False
        since = slice(int(down[-1]) + 1, slices.stop)
        is_new = path_use.retransmitted_segments[since] == 0
        return not np.any(path_use.own_bytes[since][is_new] > 0)

    def _kinds(self, _: slice, excess: float) -> Attribution | None:
        """Return the first kind of cause whose own rule explains the message."""
        if not self._connections:
            return None
        all_excess = (self._messages.delay - self._messages.base)[self._messages.late]
        longest_rtt = max((path_use.path.base_rtt_us for path_use in self._path_uses), default=0.0)
        message = LateMessage(self._connections[0].facts, excess, all_excess, longest_rtt)
        found = ((cause, rule(message)) for cause, rule in LATE_RULES.items())
        return next(((cause, places) for cause, places in found if places), None)

    def sender_waited(self, causes: frozenset[str], slices: slice, excess: float) -> Attribution | None:
        """Return the one of `causes` for which the sender waited longest on its paths, if it explains the delay."""
        span, carriers = self._carriers(slices)
        waits = [connection.waits_us(*span) for connection in carriers]
        known = [key for key in waits[0] if key[0] in causes] if waits else []
        spent = {key: min(wait.get(key, 0.0) for wait in waits) for key in known}
        attribution = max(spent, key=lambda key: spent[key], default=None)
        return attribution if attribution is not None and spent[attribution] > EXPLAINS * excess else None
