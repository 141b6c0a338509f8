"""Program groups: an entry whose node is a pattern or a list stands for a program in each of these nodes.

    {name: download, node: "peer*", transport: [mptcp, tcp], run: ..}

are the plain entries `download-peer1` over MPTCP, `download-peer2` over TCP, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.scenario.generators.traffic import chosen

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_PROGRAMS = 256


def is_group(entry: Any) -> bool:
    """Return whether an entry describes several programs."""
    node = entry.get("node") if isinstance(entry, dict) else None
    return isinstance(node, list) or (isinstance(node, str) and any(sign in node for sign in "*?["))


def written_out(entry: dict[str, Any], nodes: Sequence[str]) -> list[dict[str, Any]]:
    """Return an entry for each program of a group; a list of transports applies to the programs in turn.

    Raises ValueError with the problem and the remedy.
    """
    patterns = entry["node"] if isinstance(entry["node"], list) else [entry["node"]]
    if not patterns:
        raise ValueError("the list is empty; write nodes, or a pattern such as peer*")
    names = chosen([str(pattern) for pattern in patterns], nodes, "host or router")
    if len(names) > MAX_PROGRAMS:
        raise ValueError(
            f"these are {len(names)} programs, and at most {MAX_PROGRAMS} are possible; name fewer nodes"
        )
    out = []
    for i, node in enumerate(names):
        program = {**entry, "node": node}
        if isinstance(entry.get("transport"), list) and entry["transport"]:
            program["transport"] = entry["transport"][i % len(entry["transport"])]
        if entry.get("name") is not None:
            program["name"] = f"{entry['name']}-{node}"
        out.append(program)
    return out


class Groups:
    """The programs of each group, to which later entries refer by the group's name."""

    def __init__(self) -> None:
        self._members: dict[str, list[str]] = {}

    def add(self, entry: dict[str, Any], members: Sequence[dict[str, Any]]) -> None:
        """Record the programs of a group that has a name."""
        if isinstance(entry.get("name"), str):
            self._members[entry["name"]] = [program["name"] for program in members]

    def resolved(self, entry: Any) -> Any:
        """Return the entry, with each name of a group under `after` replaced by its programs."""
        after = entry.get("after") if isinstance(entry, dict) else None
        listed = [after] if isinstance(after, str) else after
        if not isinstance(listed, list) or not any(str(name) in self._members for name in listed):
            return entry
        return {
            **entry,
            "after": [member for name in listed for member in self._members.get(str(name), [name])],
        }
