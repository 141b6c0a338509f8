"""Another line for the first subflow, over which a connection begins."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.commands import added, announced, interface_of, on_line
from plait.advice.changes.model import Candidate, ChangeKind, HostCommand
from plait.advice.situation import AccessLine, Situation


def _first(situation: Situation) -> Iterator[Candidate]:
    former, *others = situation.lines
    for line in others:
        flags = {**situation.endpoints, former.link: ("subflow",)}
        ends = [{"link": link, "flags": list(words)} for link, words in flags.items() if link != line.link]
        commands = [_preferred(situation, line)]
        if former.link not in situation.endpoints:
            commands.append(added(situation, former))
        yield Candidate(
            f"first-{line.word}",
            f"connections begin on {line.title}",
            {f"mptcp.endpoints.{situation.client}": ends, **announced(situation, former)},
            tuple(commands),
            first=line.link,
        )


def _preferred(situation: Situation, line: AccessLine) -> HostCommand:
    """Return a default route over a line before all others. plait changes no route itself."""
    device = interface_of(line)
    family = "-6" if situation.raw["network"].get("addresses") == "ipv6" else "-4"
    hop = (
        f'ip {family} route show default dev {device} | awk \'{{for (i = 1; i < NF; i++) if ($i == "via") {{'
    )
    hop += 'print "via", $(i + 1); exit}}\''
    metric = 1 if family == "-6" else 0
    command = f"ip {family} route prepend default $({hop}) dev {device} metric {metric}"
    return on_line(
        situation.client, line, command, f"ip {family} route delete default dev {device} metric {metric}"
    )


CHANGE = ChangeKind(
    "first line", "a default route of each line", frozenset({"initial-path-poor", "too-short"}), _first
)
