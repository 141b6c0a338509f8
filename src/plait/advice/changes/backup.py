"""A line as a backup."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.commands import changed, endpoints
from plait.advice.changes.model import Candidate, ChangeKind
from plait.advice.situation import Situation


def _backups(situation: Situation) -> Iterator[Candidate]:
    for line in situation.lines[1:]:
        flags = situation.endpoints.get(line.link, ())
        if flags and "backup" not in flags:
            yield Candidate(
                f"{line.word}-backup",
                f"{line.title} as a backup",
                endpoints(situation, {line.link: (*flags, "backup")}),
                (changed(situation, line, "backup", "nobackup"),),
            )


CHANGE = ChangeKind(
    "backup", "MPTCP, Linux 5.6", frozenset({"head-of-line", "scheduler-idle-path", "last-bytes"}), _backups
)
