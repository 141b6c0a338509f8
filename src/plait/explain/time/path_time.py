"""The time of one path of a flow by cause, which the modules beside this one fill."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from plait.explain.cause import Array, Places
from plait.explain.facts import PathFacts


@dataclass
class PathTime:
    """The time of one path: microseconds in each slice by cause and place, and the utilization."""

    facts: PathFacts
    utilization: Array
    """The share of the path's rate that new payload used in each slice; NaN without a rate."""
    time: dict[tuple[str, Places], Array] = field(default_factory=dict)

    def add(self, cause: str, us: Array, places: Places = ()) -> None:
        """Add time to a cause."""
        if np.any(us > 0):
            key = (cause, places)
            self.time[key] = self.time.get(key, np.zeros(len(us))) + np.maximum(us, 0)

    def move(self, source: tuple[str, Places], share: Array, cause: str, places: Places) -> None:
        """Move a share of the time of one cause and place, in each slice, to another."""
        us = self.time[source]
        self.time[source] = us * (1 - share)
        self.add(cause, us * share, places)
        if not np.any(self.time[source] > 0):
            del self.time[source]


def drained(arriving: Array, room: Array) -> Array:
    """Return what leaves a queue in each slice, at most its room; the rest waits for later slices (a fluid model)."""
    left, queued = np.zeros(len(room)), 0.0
    for i in range(len(room)):
        queued += arriving[i]
        left[i] = min(max(queued, 0.0), room[i])
        queued -= left[i]
    return left
