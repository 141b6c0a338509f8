"""Follows one direction of a subflow through a capture: what was sent, acknowledged and received, and the RTT.

The counters are those of the kernel's `tcp_info`, whose conventions they follow: acknowledged bytes count the SYN of
the side that connects, and received ones a FIN.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter

from plait.observe.captures.packets import ACK, FIN, SYN
from plait.observe.captures.streams import Ranges

_CYCLE = 1 << 32
_END = itemgetter(0)
_MOST_UNACKED = 100_000


class Half:
    """The data from one side to the other, and the acknowledgements that return."""

    def __init__(self) -> None:
        self.base: int | None = None
        """The sequence number of the first byte after a SYN. Until it is known, that of the first segment."""
        self.from_syn = False
        self.end = 0
        """The highest sequence number sent, from `base`."""
        self.sent_bytes = 0
        self.retransmitted_bytes = 0
        self.retransmitted_segments = 0
        self.acked: int | None = None
        self.first_acked = 0
        self.received = Ranges()
        self.out_of_order_segments = 0
        self.out_of_order_bytes = 0
        self.missing_bytes = 0
        """Data that were acknowledged and that the capture lacks."""
        self.fin: int | None = None
        self.mss = 0
        """The largest payload."""
        self.window: int | None = None
        self.shift: int | None = None
        self.rtt_us: float | None = None
        self.rttvar_us = 0.0
        self.min_rtt_us: int | None = None
        self._unacked: list[list[int]] = []
        """End, time and whether it was sent again or selectively acknowledged, of segments in the order of the ends."""
        self._sacked: dict[int, int] = {}

    def place(self, seq: int) -> int:
        """Return a sequence number from `base` on, without the wrap at 2^32."""
        assert self.base is not None
        distance = (seq - self.base - self.end) % _CYCLE
        return self.end + (distance if distance < _CYCLE // 2 else distance - _CYCLE)

    def begin(self, seq: int, *, syn: bool, opens: bool) -> None:
        """Set `base` at the first segment of this direction."""
        self.base = (seq + 1) % _CYCLE if syn else seq
        self.from_syn = syn
        self.end = -1 if syn else 0
        self.first_acked = -1 if opens else 0

    def send(self, seq: int, payload: int, flags: int, t_us: int) -> tuple[int, int]:
        """Note a segment that left here or arrived here, and return the range of its data that is new here."""
        if self.base is None:
            self.begin(seq, syn=bool(flags & SYN), opens=flags & (SYN | ACK) == SYN)
        start = self.place(seq)
        syn, fin = int(bool(flags & SYN)), int(bool(flags & FIN))
        end = start + syn + payload + fin
        if not payload and not syn and not fin:
            return 0, 0
        old = max(0, min(end, self.end) - start)
        before = self.end
        self.end = max(self.end, end)
        if payload:
            self.mss = max(self.mss, min(payload, 65535))
            self.sent_bytes += payload
        if old and (payload or syn):
            self._mark_again(start, end)
            if payload:
                self.retransmitted_bytes += min(old, payload)
                self.retransmitted_segments += 1
        if end > before and len(self._unacked) < _MOST_UNACKED:
            self._unacked.append([end, t_us, 0])
        return self._receive(start + syn, payload, fin)

    def _receive(self, start: int, payload: int, fin: int) -> tuple[int, int]:
        expected = self.received.in_order
        if expected is None:
            expected = 0 if self.from_syn else start
        if payload:
            if start > expected:
                self.out_of_order_segments += 1
            if not self.received.parts:
                self.received.add(expected, expected)
            highest = self.received.parts[-1][1]
            fresh = self.received.add(start, start + payload)
            if start > expected:
                self.out_of_order_bytes += fresh
            if fin:
                self.fin = start + payload
            if fresh == payload:
                return start, start + payload
            return (max(start, highest), start + payload) if fresh else (0, 0)
        if fin:
            self.fin = start
        return 0, 0

    @property
    def received_bytes(self) -> int | None:
        """The bytes that arrived in order, a FIN included."""
        expected = self.received.in_order
        if expected is None:
            return int(self.fin == 0)
        first = 0 if self.from_syn else self.received.parts[0][0]
        return expected - first + int(self.fin == expected)

    @property
    def acked_bytes(self) -> int | None:
        """The acknowledged bytes; None before the first acknowledgement."""
        return None if self.acked is None else self.acked - self.first_acked

    @property
    def unacked_segments(self) -> int:
        """The segments that were sent and are not acknowledged."""
        return len(self._unacked)

    def _mark_again(self, start: int, end: int) -> None:
        """Mark segments that are sent again: their acknowledgements show no RTT (Karn and Partridge, 1987)."""
        place = bisect_left(self._unacked, start + 1, key=_END)
        while place < len(self._unacked) and self._unacked[place][0] <= end:
            self._unacked[place][2] |= 1
            place += 1

    def acknowledge(self, ack: int, sacked: tuple[tuple[int, int], ...], t_us: int) -> None:
        """Note an acknowledgement of this direction. The RTT samples are those of Linux's tcp_clean_rtx_queue."""
        if self.base is None:
            return
        place = self.place(ack)
        is_first = self.acked is None
        if self.acked is None:
            self.first_acked = self.first_acked if self.from_syn else place
            self.acked = self.first_acked
        if place > self.end:
            self.missing_bytes += place - self.end
            self.end = place
        expected = self.received.in_order
        if expected is not None and place > expected and self.fin != expected:
            self.received.add(expected, place)
        first = last = None
        again = False
        if place > self.acked or is_first:
            self.acked = place
            gone = bisect_left(self._unacked, place + 1, key=_END)
            for _, sent_us, state in self._unacked[:gone]:
                again = again or bool(state & 1)
                if state == 0:
                    first = sent_us if first is None else first
                    last = sent_us
            del self._unacked[:gone]
        by_sack = self._sack(sacked)
        sample = None
        if first is not None and not again:
            sample = t_us - first
        elif by_sack is not None:
            sample = t_us - by_sack
        if sample is not None and sample >= 0:
            self._add_rtt(sample, sample if last is None or again else t_us - last)

    def _sack(self, sacked: tuple[tuple[int, int], ...]) -> int | None:
        """Mark newly selectively acknowledged segments; return when the first of them was sent."""
        earliest = None
        known, self._sacked = self._sacked, {}
        for left, right in sacked:
            start, end = self.place(left), self.place(right)
            place = bisect_left(self._unacked, known.get(start, start) + 1, key=_END)
            while place < len(self._unacked) and self._unacked[place][0] <= end:
                segment = self._unacked[place]
                if segment[2] == 0:
                    earliest = segment[1] if earliest is None else min(earliest, segment[1])
                segment[2] |= 2
                place += 1
            self._sacked[start] = end
        return earliest

    def _add_rtt(self, sample: int, shortest: int) -> None:
        """Update the smoothed RTT (RFC 6298, section 2)."""
        self.min_rtt_us = shortest if self.min_rtt_us is None else min(self.min_rtt_us, shortest)
        if self.rtt_us is None:
            self.rtt_us, self.rttvar_us = float(sample), sample / 2
        else:
            self.rttvar_us += (abs(sample - self.rtt_us) - self.rttvar_us) / 4
            self.rtt_us += (sample - self.rtt_us) / 8
