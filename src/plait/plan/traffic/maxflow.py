"""Maximum flow (Edmonds and Karp 1972): what a set of paths can carry together, with shared links counted once."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Arc = tuple[str, str]


def maximum_flow(capacities: Mapping[Arc, float], source: str, sink: str) -> float:
    """Return the greatest flow from `source` to `sink` over arcs with these capacities; `inf` if nothing limits it."""
    residual: dict[str, dict[str, float]] = {source: {}, sink: {}}
    for (a, b), capacity in capacities.items():
        residual.setdefault(a, {})[b] = residual.get(a, {}).get(b, 0) + capacity
        residual.setdefault(b, {}).setdefault(a, 0)
    total: float = 0
    while path := _shortest(residual, source, sink):
        arcs = list(pairwise(path))
        room = min(residual[a][b] for a, b in arcs)
        if room == inf:
            return inf
        for a, b in arcs:
            residual[a][b] -= room
            residual[b][a] += room
        total += room
    return total


def _shortest(residual: Mapping[str, Mapping[str, float]], source: str, sink: str) -> list[str]:
    """Return a path with the fewest arcs among those with residual capacity; empty if there is none."""
    before: dict[str, str] = {source: source}
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        for following, room in residual[node].items():
            if room > 0 and following not in before:
                before[following] = node
                if following == sink:
                    path = [sink]
                    while path[-1] != source:
                        path.append(before[path[-1]])
                    return path[::-1]
                waiting.append(following)
    return []
