"""Congestion controls of stock kernels."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.commands import controls
from plait.advice.changes.model import Candidate, ChangeKind
from plait.advice.situation import Situation

_CONTROLS = {"bbr": "modprobe tcp_bbr", "cubic": "", "reno": ""}
"""Congestion controls of Debian's kernels, and the command that loads each into the kernel."""


def _controls(situation: Situation) -> Iterator[Candidate]:
    for name, load in _CONTROLS.items():
        yield from controls(situation, name, f"congestion control {name} on both hosts", load)


CHANGE = ChangeKind(
    "congestion control", "a stock kernel; bbr its module", frozenset({"loss-recovery", "queue-full", "too-short"}),
    _controls,
)  # fmt: skip
