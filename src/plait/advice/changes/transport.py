"""One line alone."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.model import Candidate, ChangeKind, HostCommand
from plait.advice.situation import Situation
from plait.engine.remote.lasting import LastingSysctl


def _single(situation: Situation) -> Iterator[Candidate]:
    yield Candidate(
        "tcp",
        f"{situation.lines[0].title} alone, without MPTCP",
        {"transport": "tcp"},
        (
            HostCommand(
                situation.client,
                "sysctl -w net.mptcp.enabled=0",
                "sysctl -w net.mptcp.enabled=1",
                LastingSysctl("net.mptcp.enabled", "0"),
            ),
        ),
    )


CHANGE = ChangeKind("transport", "a stock kernel", frozenset({"head-of-line", "shared-bottleneck"}), _single)
