"""A line that carries data, and did not or as a backup only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from plait.advice.changes.commands import added, changed, endpoints
from plait.advice.changes.model import Candidate, ChangeKind, HostCommand
from plait.engine.remote.lasting import LastingLimits

if TYPE_CHECKING:
    from plait.advice.situation import Situation


def _joins(situation: Situation) -> Iterator[Candidate]:
    for line in situation.lines[1:]:
        flags = situation.endpoints.get(line.link, ())
        if flags and "backup" not in flags:
            continue
        settings = endpoints(situation, {line.link: ("subflow",)})
        commands = [changed(situation, line, "nobackup", "backup") if flags else added(situation, line)]
        mptcp = situation.raw.get("mptcp", {})
        announced = mptcp.get("endpoints", {}).get(situation.server)
        is_direct = line.link.startswith(f"{situation.server}-") or line.link.split("#")[0].endswith(
            f"-{situation.server}"
        )
        if is_direct and announced is not None and line.link not in {item.get("link") for item in announced}:
            settings[f"mptcp.endpoints.{situation.server}"] = [
                *announced,
                {"link": line.link, "flags": ["signal"]},
            ]
        count = len(situation.lines)
        for host, limits in mptcp.get("limits", {}).items():
            if min(limits.get("subflows", count), limits.get("add_addr_accepted", count)) < count:
                settings[f"mptcp.limits.{host}"] = {"subflows": count, "add_addr_accepted": count}
                commands.append(
                    HostCommand(
                        host,
                        f"ip mptcp limits set subflows {count}",
                        f"ip mptcp limits set subflows {int(limits.get('subflows', 2))}",
                        LastingLimits(subflows=count),
                    )
                )
        yield Candidate(f"use-{line.word}", f"{line.title} as a full path", settings, tuple(commands))


CHANGE = ChangeKind("endpoint", "MPTCP, Linux 5.6", frozenset({"subflow-never", "backup"}), _joins)
