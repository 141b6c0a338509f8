"""bandit: learns which path delivers soonest (UCB1). It needs floating point, logarithms and a table for each path."""

from __future__ import annotations

from math import log, sqrt
from typing import TYPE_CHECKING

from plait.prototype.scheduler import Scheduler

if TYPE_CHECKING:
    from plait.prototype.path import SendingPath
    from plait.prototype.segment import StreamSegment

FORGET = 0.999


class Bandit(Scheduler):
    """Each path is an arm (Auer, Cesa-Bianchi, Fischer, 2002). A quick ACK is a reward, a loss is none."""

    def __init__(self) -> None:
        self.pulls: dict[SendingPath, float] = {}
        self.rewards: dict[SendingPath, float] = {}

    def pick(self, paths: list[SendingPath], segment: StreamSegment) -> SendingPath | None:
        """Return the path with room that has the highest upper confidence bound."""
        total = max(2.0, sum(self.pulls.values()))

        def bound(path: SendingPath) -> float:
            pulls = self.pulls.get(path, 0.0) + 1e-9
            return self.rewards.get(path, 0.0) / pulls + sqrt(2 * log(total) / pulls)

        return max((path for path in paths if path.room), key=bound, default=None)

    def on_ack(self, path: SendingPath, segment: StreamSegment) -> None:
        """Reward a path by the lowest RTT of the connection over its own."""
        for member in self.pulls:
            self.pulls[member] *= FORGET
            self.rewards[member] *= FORGET
        fastest = min([member.latest_rtt for member in (*self.pulls, path)])
        self.pulls[path] = self.pulls.get(path, 0.0) + 1
        self.rewards[path] = self.rewards.get(path, 0.0) + fastest / path.latest_rtt

    def on_loss(self, path: SendingPath, segment: StreamSegment) -> None:
        """Count a pull without a reward."""
        self.pulls[path] = self.pulls.get(path, 0.0) + 1
