"""Implement wVegas by draft-xu-mptcp-congestion-control-05, section 3: windows follow delays, once per round trip."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from coupling_rules import GAMMA, RENO, TOTAL_ALPHA, backlog, vegas_share
from coupling_sender import EQUATIONS, Behaviour, Connection, Subflow

if TYPE_CHECKING:
    from coupling_packets import Clock, Route

LEAST_WINDOW = 2.0


class VegasSubflow(Subflow):
    """A subflow whose window changes by one segment per round."""

    def __init__(self, clock: Clock, route: Route, connection: Connection) -> None:
        super().__init__(clock, route, connection)
        self.alpha = float(TOTAL_ALPHA)
        self.round_rtt = math.inf
        self.round_end = 0
        self.least_delay = math.inf

    def measure(self, sample: float) -> None:
        super().measure(sample)
        self.round_rtt = min(self.round_rtt, sample)

    def grow(self, acked: int) -> None:
        """Follow the least round-trip time at the end of a round; in slow start, grow with each ACK."""
        if self.delivered < self.round_end:
            if self.cwnd < self.ssthresh:
                self.cwnd += acked
            return
        waiting = backlog(self.cwnd, self.least_rtt, self.round_rtt)
        if self.cwnd >= self.ssthresh:
            self._avoid(waiting)
        elif waiting > GAMMA:
            self.cwnd = max(LEAST_WINDOW, min(self.cwnd, self.cwnd * self.least_rtt / self.round_rtt + 1))
            self.ssthresh = self.cwnd
        self.round_end = self.delivered + len(self.flying)
        self.round_rtt = math.inf

    def _avoid(self, waiting: float) -> None:
        if waiting >= self.alpha:
            self.alpha = vegas_share(self.connection.paths(), self)
            delay = self.round_rtt - self.least_rtt
            self.least_delay = min(self.least_delay, delay)
            if delay >= 2 * self.least_delay > 0 and len(self.connection.subflows) > 1:
                self.least_delay = math.inf
                self._set(self.cwnd * self.least_rtt / (2 * self.round_rtt))
                return
        self._set(self.cwnd + (waiting < self.alpha) - (waiting > self.alpha))

    def _set(self, window: float) -> None:
        self.cwnd = max(LEAST_WINDOW, window)
        self.ssthresh = min(self.ssthresh, self.cwnd)


class VegasConnection(Connection):
    """A connection under wVegas; a loss halves the window, as in Reno."""

    def __init__(self, behaviour: Behaviour = EQUATIONS) -> None:
        super().__init__(RENO, behaviour)

    def join(self, clock: Clock, route: Route, start: float) -> Subflow:
        """Add a subflow that starts to send at `start`."""
        return self.add(VegasSubflow(clock, route, self), start)
