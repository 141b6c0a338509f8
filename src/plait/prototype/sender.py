"""The sending end of a connection: it cuts the stream into segments, and repeats what is lost. No sockets, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from plait.prototype.choice import Choices, SchedulerError
from plait.prototype.coupling import COUPLINGS
from plait.prototype.packets import (
    OPEN,
    OPENED,
    SEGMENT_BYTES,
    Ack,
    Open,
    Repair,
    decode,
    encode_data,
    encode_open,
    encode_repair,
)
from plait.prototype.parity import RepairSegment, block_is_full, offsets, parity
from plait.prototype.path import DEAD, SendingPath
from plait.prototype.scheduler import ConnectionView, Scheduler
from plait.prototype.segment import SentPacket, StreamSegment

OPEN_PATIENCE = 1.0
"""The wait for an answer to an OPEN, which doubles each time."""
MAX_OPENS = 8
ASK_AGAIN = 0.01
MOST_WAIT = 1.0
"""The time for which a scheduler may choose no path with nothing in flight on a path that answers."""
_BLOCK = bytes(range(251)) * 12
"""The data: byte i of the stream is i modulo 251."""


def content(sequence: int, length: int) -> bytes:
    """Return bytes of the stream."""
    begin = sequence % 251
    return _BLOCK[begin : begin + length]


class Sender:
    """The sending end. Drivers pass it datagrams and times, and send what it returns."""

    def __init__(
        self,
        paths: Sequence[SendingPath],
        scheduler: Scheduler,
        *,
        coupling: str = "none",
        connection: int = 1,
        seed: int = 0,
        trusted: bool = False,
        overrun: Callable[[str], None] | None = None,
    ) -> None:
        """Trust a scheduler of plait's. `overrun` takes the error of a call that executes too many lines."""
        self.paths = list(paths)
        self.view = ConnectionView(seed)
        self.written = 0
        """Bytes that the application has written."""
        self.acked = 0
        """Bytes that the receiver has in order."""
        self.connected_at: float | None = None
        self.window_limited = 0.0
        """Seconds for which the receiver's window held data back while a path had room."""
        self._id = connection
        self._choices = Choices(scheduler, self.view, trusted=trusted, overrun=overrun)
        self._control = COUPLINGS[coupling](self.paths)
        self._next = 0
        self._limit = 0
        self._lost: deque[StreamSegment] = deque()
        self._fresh: StreamSegment | None = None
        self._block: tuple[StreamSegment, ...] = ()
        """New segments since the last parity."""
        self._out: list[tuple[int, bytes]] = []
        self._opens: dict[int, tuple[int, float]] = {}
        self._ask: float | None = None
        self._waits_since: float | None = None
        self._limited_since: float | None = None

    @property
    def taken(self) -> int:
        """Bytes of the stream that paths carry or have carried."""
        return self._next

    @property
    def unsent(self) -> int:
        """Bytes that the application has written and no path carries; at most a window, as in a send buffer."""
        return min(self.written - self._next, self.window) if self.written > self._next else 0

    @property
    def window(self) -> int:
        """Bytes that the receiver admits beyond what it has in order."""
        return self._limit - self.acked

    @property
    def window_left(self) -> int:
        """Bytes that the receiver still admits."""
        return self._limit - self._next

    @property
    def repairs(self) -> bool:
        """Whether the scheduler asks for parities."""
        return self._choices.repairs

    def open(self, now: float) -> None:
        """Begin: open the first path; the others follow when the receiver has answered."""
        self._open(self.paths[0], now)

    def receive(self, path: int, datagram: bytes, now: float) -> None:
        """Take a datagram that arrived on `path`; ignore what does not belong to this connection."""
        packet = decode(datagram)
        if packet is None or packet.connection != self._id or packet.path != path:
            return
        if isinstance(packet, Ack):
            self._acknowledge(self.paths[path], packet, now)
        elif isinstance(packet, Open) and packet.kind == OPENED and not self.paths[path].established:
            self._opened(self.paths[path], now - packet.time, now)

    def datagrams_to_send(self, now: float) -> list[tuple[int, bytes]]:
        """Return (path, datagram) of all that may leave now. Raise SchedulerError."""
        self._expire(now)
        if self.connected_at is not None:
            for path in self.paths:
                self._empty_backlog(path, now)
            self._fill(now)
        datagrams, self._out = self._out, []
        return datagrams

    def blame(self, error: Exception) -> SchedulerError:
        """Return the error of a scheduler after which the transport raised `error`."""
        return self._choices.broke_transport(error)

    def calls_in_progress(self) -> int | None:
        """Return the number of the scheduler's call in progress; None if there is none."""
        return self._choices.calls if self._choices.busy else None

    def _empty_backlog(self, path: SendingPath, now: float) -> None:
        """Send what waits for room on a path, except what the receiver has by now."""
        while path.queue:
            if self._is_held(path.queue[0]):
                path.queue.popleft().copies -= 1
            elif path.in_flight < int(path.cwnd):
                self._send(path, path.queue.popleft(), now)
            else:
                return

    def next_timeout(self) -> float | None:
        """Return when `datagrams_to_send` is due without another datagram."""
        times = [due for _, due in self._opens.values()]
        times += [due for path in self.paths if (due := path.timeout()) is not None]
        if self._ask is not None:
            times.append(self._ask)
        return min(times, default=None)

    def _open(self, path: SendingPath, now: float) -> None:
        tries, _ = self._opens.get(path.index, (0, 0.0))
        if tries == MAX_OPENS:
            del self._opens[path.index]
            return
        self._opens[path.index] = (tries + 1, now + OPEN_PATIENCE * 2**tries)
        self._out.append((path.index, encode_open(Open(OPEN, path.index, self._id, now))))

    def _opened(self, path: SendingPath, rtt: float, now: float) -> None:
        path.first_rtt(max(rtt, 1e-6))
        self._opens.pop(path.index, None)
        if self.connected_at is None:
            self.connected_at = now
            self._limit = max(self._limit, 10 * SEGMENT_BYTES)
            for member in self.paths[1:]:
                self._open(member, now)

    def _expire(self, now: float) -> None:
        """Act on the timeouts that have come."""
        for index, (_, due) in list(self._opens.items()):
            if due <= now:
                self._open(self.paths[index], now)
        for path in self.paths:
            due_at = path.timeout()
            if due_at is None or due_at > now:
                continue
            if path.loss_is_due(now):
                self._lose(path, path.detect_losses(now), now)
            else:
                self._probe(path, now)

    def _probe(self, path: SendingPath, now: float) -> None:
        """Send a probe. The second one in a row gives up what is in flight, so that other paths can carry it."""
        path.timeouts += 1
        oldest = path.oldest()
        if path.timeouts == DEAD:
            self._control.on_timeout(path)
            self._lose(path, path.give_up(), now, reduce=False)
            self._lost.extend(segment for segment in path.queue if not isinstance(segment, RepairSegment))
            for segment in path.queue:
                segment.copies -= 1
            path.queue.clear()
        retried = oldest.segment if oldest is not None and path.timeouts < DEAD else None
        if retried is not None:
            retried.copies += 1
        self._send(path, retried, now)

    def _acknowledge(self, path: SendingPath, ack: Ack, now: float) -> None:
        in_flight = path.in_flight
        acked, lost = path.acknowledge(ack, now)
        if ack.next <= self._next:
            self.acked = max(self.acked, ack.next)
            self._limit = max(self._limit, ack.limit)
        self._ask = None
        segments = 0
        for packet in acked:
            segment = packet.segment
            if segment is None:
                continue
            segments += 1
            segment.copies -= 1
            segment.delivered = True
            if not isinstance(segment, RepairSegment):
                self._choices.on_ack(path, segment)
        self._lose(path, lost, now)
        if segments:
            self._control.on_ack(path, segments, in_flight)

    def _lose(self, path: SendingPath, lost: list[SentPacket], now: float, *, reduce: bool = True) -> None:
        if lost:
            self._ask = None
        for packet in lost:
            if reduce:
                self._control.on_loss(path, packet.sent, now)
            segment = packet.segment
            if segment is None:
                continue
            segment.copies -= 1
            if isinstance(segment, RepairSegment):
                continue
            self._choices.on_loss(path, segment)
            if not segment.copies and not self._is_held(segment):
                segment.losses += 1
                self._lost.append(segment)

    def _is_held(self, segment: StreamSegment) -> bool:
        """Return whether the receiver has a segment."""
        return segment.delivered or segment.end <= self.acked

    def _fill(self, now: float) -> None:
        """Ask the scheduler for paths while data wait and a path has room."""
        if self._ask is not None and self._ask > now:
            return
        self._ask = None
        paths = self._usable()
        view = self.view
        view.now = now
        while True:
            if not any(int(path.cwnd) > path.in_flight + len(path.queue) for path in paths):
                self._note_window(now, limited=False)
                return
            segment = self._waiting()
            if segment is None:
                self._note_window(now, limited=self.written > self._next)
                return
            view.waiting = self._untaken()
            view.window = self.window
            view.window_left = self.window_left
            chosen = self._choices.pick(paths, segment)
            if not chosen:
                self._wait(now)
                return
            self._waits_since = None
            self._place(segment, chosen, now)

    def _untaken(self) -> int:
        """Return the bytes that no path carries: new ones, and lost ones."""
        return self.written - self._next + sum(segment.length for segment in self._lost)

    def _note_window(self, now: float, *, limited: bool) -> None:
        """Add up the time for which the receiver's window held data back."""
        if self._limited_since is not None:
            self.window_limited += now - self._limited_since
        self._limited_since = now if limited else None

    def _usable(self) -> list[SendingPath]:
        """Return the paths to choose from: without backup and dead ones if there are others."""
        established = [path for path in self.paths if path.established]
        alive = [path for path in established if path.alive] or established
        return [path for path in alive if not path.backup] or alive

    def _waiting(self) -> StreamSegment | None:
        """Return the segment that is next: a lost one, or new data within the receiver's window."""
        while self._lost:
            if not self._is_held(self._lost[0]):
                return self._lost[0]
            self._lost.popleft()
        if self._fresh is None:
            length = min(SEGMENT_BYTES, self.written - self._next)
            if length <= 0 or self._next + length > self._limit:
                return None
            self._fresh = StreamSegment(self._next, length)
        return self._fresh

    def _place(self, segment: StreamSegment, chosen: Sequence[SendingPath], now: float) -> None:
        if not segment.losses:
            for path in chosen:
                path.assigned += segment.length
        if segment is not self._fresh:
            self._lost.popleft()
            self._give(segment, chosen, now)
            return
        self._fresh = None
        self._next += segment.length
        self._give(segment, chosen, now)
        if self.repairs:
            self._repair(segment, now)

    def _repair(self, segment: StreamSegment, now: float) -> None:
        """Ask the scheduler whether a parity follows a new segment."""
        self._block = (*self._block, segment)
        self.view.waiting = self._untaken()
        chosen = self._choices.repair(self._usable(), self._block)
        if chosen:
            self._give(RepairSegment(self._block), chosen, now)
        if chosen or block_is_full(self._block):
            self._block = ()

    def _give(self, segment: StreamSegment, chosen: Sequence[SendingPath], now: float) -> None:
        """Send a segment on paths; where there is no room, it waits."""
        for path in chosen:
            segment.copies += 1
            if not path.queue and path.in_flight < int(path.cwnd):
                self._send(path, segment, now)
            else:
                path.queue.append(segment)

    def _send(self, path: SendingPath, segment: StreamSegment | None, now: float) -> None:
        number = path.send(segment, now)
        if isinstance(segment, RepairSegment):
            self._out.append((path.index, self._repair_datagram(path.index, number, segment)))
            return
        sequence, length = (0, 0) if segment is None else (segment.sequence, segment.length)
        self._out.append(
            (path.index, encode_data(path.index, self._id, number, sequence, content(sequence, length)))
        )

    def _repair_datagram(self, path: int, number: int, segment: RepairSegment) -> bytes:
        first, covers, end = segment.sequence, segment.covers, segment.end
        block = [content(offset, min(SEGMENT_BYTES, end - offset)) for offset in offsets(first, covers)]
        return encode_repair(Repair(path, self._id, number, first, covers, parity(block, segment.length)))

    def _wait(self, now: float) -> None:
        """Ask again later; a scheduler that never chooses ends the connection."""
        self._note_window(now, limited=False)
        self._ask = now + ASK_AGAIN
        if any(path.in_flight for path in self.paths if path.alive):
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = now
        elif now - self._waits_since >= MOST_WAIT:
            raise self._choices.never_picks(MOST_WAIT)
