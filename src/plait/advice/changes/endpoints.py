"""Endpoints and limits of MPTCP, and the line on which connections begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plait.advice.changes.commands import added, announced, changed, endpoints, interface_of, on_line
from plait.advice.changes.model import Candidate, HostCommand
from plait.advice.situation import AccessLine, Situation
from plait.engine.remote.lasting import LastingLimits


def backups(situation: Situation) -> Iterator[Candidate]:
    """Yield each further line as a backup."""
    for line in situation.lines[1:]:
        flags = situation.endpoints.get(line.link, ())
        if flags and "backup" not in flags:
            yield Candidate(
                f"{line.word}-backup",
                f"{line.title} as a backup",
                endpoints(situation, {line.link: (*flags, "backup")}),
                (changed(situation, line, "backup", "nobackup"),),
            )


def full_paths(situation: Situation) -> Iterator[Candidate]:
    """Yield each line that carries data, and did not or as a backup only."""
    for line in situation.lines[1:]:
        flags = situation.endpoints.get(line.link, ())
        if flags and "backup" not in flags:
            continue
        settings = endpoints(situation, {line.link: ("subflow",)})
        commands = [changed(situation, line, "nobackup", "backup") if flags else added(situation, line)]
        settings |= announced(situation, line)
        limits, raising = _raised(situation, len(situation.lines))
        settings |= limits
        commands += raising
        yield Candidate(f"use-{line.word}", f"{line.title} as a full path", settings, tuple(commands))


def higher_limits(situation: Situation) -> Iterator[Candidate]:
    """Yield limits that allow every endpoint its subflow."""
    opening = [flags for flags in situation.endpoints.values() if {"subflow", "fullmesh"} & set(flags)]
    given = situation.raw.get("mptcp", {}).get("limits", {})
    known = [limits for host, limits in given.items() if host in (situation.client, situation.server)]
    if any(limits.get("subflows", len(opening)) < len(opening) for limits in known):
        settings, commands = _raised(situation, len(opening))
        yield Candidate("limits", f"{len(opening)} additional subflows", settings, tuple(commands))


def _raised(situation: Situation, count: int) -> tuple[dict[str, Any], list[HostCommand]]:
    """Return settings and commands that let both hosts have `count` additional subflows; none if they may already."""
    settings, commands = dict[str, Any](), list[HostCommand]()
    for host, limits in situation.raw.get("mptcp", {}).get("limits", {}).items():
        if min(limits.get("subflows", count), limits.get("add_addr_accepted", count)) < count:
            settings[f"mptcp.limits.{host}"] = {"subflows": count, "add_addr_accepted": count}
        if limits.get("subflows", count) < count:
            commands.append(
                HostCommand(
                    host,
                    f"ip mptcp limits set subflows {count}",
                    f"ip mptcp limits set subflows {int(limits.get('subflows', 2))}",
                    LastingLimits(subflows=count),
                )
            )
    return settings, commands


def first_lines(situation: Situation) -> Iterator[Candidate]:
    """Yield each other line for the first subflow, over which a connection begins."""
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
