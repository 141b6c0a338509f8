"""MPTCP limits that allow every endpoint its subflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plait.advice.changes.model import Candidate, ChangeKind, HostCommand
from plait.advice.situation import Situation
from plait.engine.remote.lasting import LastingLimits


def limits_of(situation: Situation, count: int) -> tuple[dict[str, Any], list[HostCommand]]:
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


def _limits(situation: Situation) -> Iterator[Candidate]:
    opening = [flags for flags in situation.endpoints.values() if {"subflow", "fullmesh"} & set(flags)]
    given = situation.raw.get("mptcp", {}).get("limits", {})
    known = [limits for host, limits in given.items() if host in (situation.client, situation.server)]
    if any(limits.get("subflows", len(opening)) < len(opening) for limits in known):
        settings, commands = limits_of(situation, len(opening))
        yield Candidate("limits", f"{len(opening)} additional subflows", settings, tuple(commands))


CHANGE = ChangeKind("limits", "MPTCP, Linux 5.6", frozenset({"subflow-never"}), _limits)
