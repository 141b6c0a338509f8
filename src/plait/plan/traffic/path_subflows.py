"""Check that the path manager opens a subflow on every path that a flow names."""

from __future__ import annotations

from plait.errors import refuse_fields
from plait.plan.structure import Structure


def check_subflows(shape: Structure) -> None:
    """Refuse paths without a subflow. Raise FieldMistakesError."""
    mistakes = []
    for entry in shape.entries:
        opened = shape.manager.pairs(entry.initial) if entry.uses_mptcp else [entry.initial.pair]
        for j in range(1, len(entry.spec.paths)):
            wanted = shape.routing.reach.explicit.named[entry.index, j]
            if not any(pair in opened for pair in wanted):
                client, server = wanted[0]
                there = ", ".join(f"{c.ip} to {s.ip}" for c, s in opened)
                message = (
                    f"the path manager opens no subflow from {client.ip} to {server.ip}, only {there}; choose "
                    "endpoints and limits that open it, or leave the path out"
                )
                mistakes.append((("traffic", entry.index, entry.key, "paths", j), message))
    refuse_fields(mistakes)
