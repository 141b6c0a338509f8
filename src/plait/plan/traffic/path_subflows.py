"""Check that the path manager opens a subflow on every path that a flow names."""

from __future__ import annotations

from plait.errors import FieldMistakesError
from plait.plan.mptcp.path_manager import PathManager
from plait.plan.routes.reach import Reach
from plait.plan.traffic.entries import Entry


def check_subflows(reach: Reach, entries: list[Entry], manager: PathManager) -> None:
    """Refuse paths without a subflow. Raise FieldMistakesError."""
    mistakes = []
    for entry in entries:
        opened = manager.pairs(entry.initial) if entry.uses_mptcp else [entry.initial.pair]
        for j in range(1, len(entry.spec.paths)):
            wanted = reach.explicit.named[entry.index, j]
            if not any(pair in opened for pair in wanted):
                client, server = wanted[0]
                there = ", ".join(f"{c.ip} to {s.ip}" for c, s in opened)
                message = (
                    f"the path manager opens no subflow from {client.ip} to {server.ip}, only {there}; choose "
                    "endpoints and limits that open it, or leave the path out"
                )
                mistakes.append((("traffic", entry.index, entry.key, "paths", j), message))
    if mistakes:
        raise FieldMistakesError(*mistakes)
