"""A bound of the unsent data in a socket."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.commands import sysctls
from plait.advice.changes.model import Candidate, ChangeKind
from plait.advice.situation import Situation

_UNSENT_BYTES = 131_072


def _unsent(situation: Situation) -> Iterator[Candidate]:
    key = "net.ipv4.tcp_notsent_lowat"
    if situation.sysctl(situation.server, key) is None:
        value = {key: str(_UNSENT_BYTES)}
        yield sysctls(situation, "notsent-lowat", "at most 128 KiB unsent in a socket", value)


CHANGE = ChangeKind("unsent data", "a stock kernel", frozenset({"sender-idle", "queue-full"}), _unsent)
