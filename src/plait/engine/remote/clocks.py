"""Offsets between the clocks of hosts, estimated from round trips.

plait asks a host for its time at t0 (on plait's clock) and has the answer at t1. The host read its clock at some moment
between them, so its offset is `answer - (t0 + t1) / 2`, with an error of at most `(t1 - t0) / 2` whatever the path does
(D. Mills, RFC 5905, section 8). The shortest round trip has the smallest bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


def offset(asked_ns: int, answer_ns: int, answered_ns: int) -> tuple[float, float]:
    """Return the bound of the error of one round trip, and how far the host's clock is ahead of plait's, in ns.

    `asked_ns` and `answered_ns` are plait's times of question and answer. The least of several offsets is the best.
    """
    return (answered_ns - asked_ns) / 2, answer_ns - (asked_ns + answered_ns) / 2


@dataclass(frozen=True)
class Zero:
    """When a host's trial began, on plait's clock in ns, and the bound of the error."""

    ns: float
    error_ns: float

    @classmethod
    def reported(cls, zero_ns: int, clock: tuple[float, float]) -> Zero:
        """Return the zero that a host with the offset `clock` reported as `zero_ns` of its own clock."""
        return cls(zero_ns - clock[1], clock[0])

    def after_us(self, other: Zero) -> int:
        """Return by how much this zero is later than the other one, in us, rounded."""
        return round((self.ns - other.ns) / 1000)


def errors_us(zeros: Mapping[str, Zero]) -> dict[str, float]:
    """Return the bound of the error of each host's times, which count from the zero of the first host."""
    first = next(iter(zeros.values()))
    return {
        name: 0.0 if zero is first else round((zero.error_ns + first.error_ns) / 1000, 1)
        for name, zero in zeros.items()
    }
