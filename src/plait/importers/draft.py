"""A scenario under construction, and the text of its file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
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
    endpoints: list[tuple[str, str, list[str]]] = field(default_factory=list)
    """(host, link, flags)"""
    sysctls: dict[str, dict[str, str]] = field(default_factory=dict)
    """By host."""
    congestion_control: str = ""
    observations: list[str] = field(default_factory=list)
    """What the sockets and counters of a report say."""
    traffic: str = ""
    """An entry, or the default if empty."""

    def link_name(self, node: str, peer: str) -> str:
        """Return the name of the next link between two nodes: `a-b`, then `a-b#2`."""
        earlier = sum({node, peer} == {a, b} for a, b, _, _ in self.links)
        return f"{node}-{peer}" if not earlier else f"{node}-{peer}#{earlier + 1}"

    def text(self) -> str:
        """Return the text of the scenario file. Words of the imported file can neither end a comment nor a line."""
        lines = [f"title: {printable(self.title, keep='')}"]
        for heading, comments in (
            ("Not carried over:", self.remarks),
            ("The report shows:", self.observations),
        ):
            if comments:
                unique = dict.fromkeys(printable(comment, keep="") for comment in comments)
                lines += [f"# {heading}", *(f"#   - {comment}" for comment in unique)]
        lines += ["network:", *self._nodes(), "  links:"]
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
        if self.endpoints:
            lines.append("mptcp:\n  endpoints:")
            for host in dict.fromkeys(host for host, _, _ in self.endpoints):
                links = [
                    f'{{link: "{link}", flags: [{", ".join(flags)}]}}'
                    for owner, link, flags in self.endpoints
                    if owner == host
                ]
                lines.append(f"    {host}: [{', '.join(links)}]")
        if self.congestion_control:
            lines.append(f"tcp: {{congestion_control: {self.congestion_control}}}")
        if len(self.hosts) > 1:
            bulk = f"bulk: {{from: {self.hosts[0]}, to: {self.hosts[-1]}, duration: {DURATION}}}"
            lines.append(
                "traffic:" if self.traffic else "traffic:  # replace this with the traffic to measure"
            )
            lines += [f"  - {self.traffic or bulk}", "vary:\n  transport: [tcp, mptcp]"]
        return "\n".join(lines) + "\n"

    def _nodes(self) -> Iterator[str]:
        """Yield the lines of the nodes, with the options of those that have some."""
        for name in ("hosts", "switches", "routers"):
            nodes: list[str] = getattr(self, name)
            if not self.sysctls.keys() & nodes:
                yield from [f"  {name}: [{', '.join(nodes)}]"] if nodes else []
                continue
            yield f"  {name}:"
            for node in nodes:
                settings = ", ".join(
                    f"{key}: {json.dumps(value)}" for key, value in self.sysctls.get(node, {}).items()
                )
                yield f"    {node}: {{{f'sysctls: {{{settings}}}' if settings else ''}}}"


def node_name(name: str) -> str:
    """Return `name` as a valid node name."""
    clean = re.sub(r"[^A-Za-z0-9_-]", "-", name)[:NODE_NAME_MAX]
    return clean if clean[:1].isalpha() else f"n{clean}"[:NODE_NAME_MAX]


def number(value: float) -> str:
    """Return a number without trailing zeros."""
    return f"{value:.9g}"
