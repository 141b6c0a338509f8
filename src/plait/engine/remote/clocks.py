"""Offsets between the clocks of hosts, estimated from round trips.

plait asks a host for its time at t0 (on plait's clock) and has the answer at t1. The host read its clock at some moment
between them, so its offset is `answer - (t0 + t1) / 2`, with an error of at most `(t1 - t0) / 2` whatever the path does
(D. Mills, RFC 5905, section 8). The shortest round trip has the smallest bound.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Offset:
    """How far a host's clock is ahead of plait's, in ns, and the bound of the error."""

    ns: float
    error_ns: float


def offset(asked_ns: int, answer_ns: int, answered_ns: int) -> Offset:
    """Return the offset of one round trip; `asked_ns` and `answered_ns` are plait's times of question and answer."""
    return Offset(answer_ns - (asked_ns + answered_ns) / 2, (answered_ns - asked_ns) / 2)


def best(offsets: list[Offset]) -> Offset:
    """Return the offset with the smallest error. Raises ValueError without any."""
    return min(offsets, key=lambda one: one.error_ns)


@dataclass(frozen=True)
class Zero:
    """When a host's trial began, on plait's clock in ns, and the bound of the error."""

    ns: float
    error_ns: float

    @classmethod
    def of(cls, zero_ns: int, clock: Offset) -> Zero:
        """Return the zero that a host reported as `zero_ns` of its own clock."""
        return cls(zero_ns - clock.ns, clock.error_ns)

    def after_us(self, other: Zero) -> int:
        """Return by how much this zero is later than the other one, in us, rounded."""
        return round((self.ns - other.ns) / 1000)
