"""A line that carries data, and did not or as a backup only."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.commands import added, announced, changed, endpoints
from plait.advice.changes.limits import limits_of
from plait.advice.changes.model import Candidate, ChangeKind
from plait.advice.situation import Situation


def _joins(situation: Situation) -> Iterator[Candidate]:
    for line in situation.lines[1:]:
        flags = situation.endpoints.get(line.link, ())
        if flags and "backup" not in flags:
            continue
        settings = endpoints(situation, {line.link: ("subflow",)})
        commands = [changed(situation, line, "nobackup", "backup") if flags else added(situation, line)]
        settings |= announced(situation, line)
        limits, raising = limits_of(situation, len(situation.lines))
        settings |= limits
        commands += raising
        yield Candidate(f"use-{line.word}", f"{line.title} as a full path", settings, tuple(commands))


CHANGE = ChangeKind("endpoint", "MPTCP, Linux 5.6", frozenset({"subflow-never", "backup"}), _joins)
