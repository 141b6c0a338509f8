"""A scenario under construction, and the text of its file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from plait.errors import printable
from plait.scenario.names import NODE_NAME_MAX

DURATION = "10s"


@dataclass
class Draft:
    """The parts of an imported topology."""

    title: str
    hosts: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    routers: list[str] = field(default_factory=list)
    links: list[tuple[str, str, dict[str, str], str]] = field(default_factory=list)
    """(node, node, conditions, remark)"""
    remarks: list[str] = field(default_factory=list)
    """The parts that plait could not carry over."""
    backups: list[tuple[str, str]] = field(default_factory=list)
    """(host, link) of backup subflows."""
    events: list[dict[str, str]] = field(default_factory=list)

    def link_name(self, node: str, peer: str) -> str:
        """Return the name of the next link between two nodes: `a-b`, then `a-b#2`."""
        earlier = sum({node, peer} == {a, b} for a, b, _, _ in self.links)
        return f"{node}-{peer}" if not earlier else f"{node}-{peer}#{earlier + 1}"

    def text(self) -> str:
        """Return the text of the scenario file. Words of the imported file can neither end a comment nor a line."""
        lines = [f"title: {printable(self.title, keep='')}"]
        if self.remarks:
            remarks = dict.fromkeys(printable(remark, keep="") for remark in self.remarks)
            lines += ["# Not carried over:", *(f"#   - {remark}" for remark in remarks)]
        lines.append("network:")
        for name in ("hosts", "switches", "routers"):
            if nodes := getattr(self, name):
                lines.append(f"  {name}: [{', '.join(nodes)}]")
        lines.append("  links:")
        seen: dict[frozenset[str], int] = {}
        for node, peer, conditions, remark in self.links:
            pair = frozenset((node, peer))
            seen[pair] = seen.get(pair, 0) + 1
            suffix = f"#{seen[pair]}" if seen[pair] > 1 else ""
            name = f'"{node}-{peer}{suffix}"' if suffix else f"{node}-{peer}"
            inside = ", ".join(f"{key}: {value}" for key, value in conditions.items())
            lines.append(
                f"    {name}: {{{inside}}}" + (f"  # {printable(remark, keep='')}" if remark else "")
            )
        if self.backups:
            lines.append("mptcp:\n  endpoints:")
            for host in dict.fromkeys(host for host, _ in self.backups):
                links = [
                    f'{{link: "{link}", flags: [subflow, backup]}}'
                    for backup_host, link in self.backups
                    if backup_host == host
                ]
                lines.append(f"    {host}: [{', '.join(links)}]")
        if len(self.hosts) > 1:
            lines.append("traffic:  # replace this with the traffic to measure")
            lines.append(f"  - bulk: {{from: {self.hosts[0]}, to: {self.hosts[-1]}, duration: {DURATION}}}")
            lines.append("vary:\n  transport: [tcp, mptcp]")
        return "\n".join(lines) + "\n"


def node_name(name: str) -> str:
    """Return `name` as a valid node name."""
    clean = re.sub(r"[^A-Za-z0-9_-]", "-", name)[:NODE_NAME_MAX]
    return clean if clean[:1].isalpha() else f"n{clean}"[:NODE_NAME_MAX]


def number(value: float) -> str:
    """Return a number without trailing zeros."""
    return f"{value:.9g}"
