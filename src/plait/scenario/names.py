"""The names of nodes and links: which are allowed, and how a link's name is read. Pure text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

NODE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
NODE_NAME_MAX = 32
"""Characters. Interface names are cut to the kernel's 15 (see plan.topology), namespaces are not."""
RESERVED = ("wire",)
"""Namespaces that plait itself makes."""

_PARALLEL = re.compile(r"(.*)#([1-9][0-9]{0,3})", re.ASCII | re.DOTALL)


def check_node_name(name: str) -> None:
    """ValueError when `name` cannot name a node."""
    if len(name) > NODE_NAME_MAX:
        raise ValueError(
            f"'{name[:NODE_NAME_MAX]}..' has {len(name)} characters; a name has at most {NODE_NAME_MAX}"
        )
    if not NODE_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a node; a name is a letter, then letters, digits, '-' or '_', such as h1"
        )
    if name in RESERVED:
        raise ValueError(f"'{name}' is the name of plait's own namespace; choose another")


@dataclass(frozen=True)
class LinkName:
    """A link's name taken apart: `h1-s1#2` is the second link between h1 and s1."""

    a: str
    b: str
    suffix: str
    """`` or `#2`."""

    def direction(self, *, forward: bool) -> str:
        """`h1->s1` forward, `s1->h1` backward; a parallel link keeps its number: `h1->s1#2`."""
        source, target = (self.a, self.b) if forward else (self.b, self.a)
        return f"{source}->{target}{self.suffix}"


def read_link_name(text: str, nodes: Collection[str]) -> LinkName:
    """Takes a link's name apart at the dash that leaves a declared node on either side.

    Raises ValueError when there is no such dash, or several.
    """
    numbered = _PARALLEL.fullmatch(text)
    body, suffix = (numbered[1], f"#{numbered[2]}") if numbered else (text, "")
    dashes = [i for i, c in enumerate(body) if c == "-"]
    splits = [(body[:i], body[i + 1 :]) for i in dashes]
    fitting = [LinkName(a, b, suffix) for a, b in splits if a in nodes and b in nodes]
    if len(fitting) == 1:
        if fitting[0].a == fitting[0].b:
            raise ValueError(f"'{text}' joins {fitting[0].a} to itself; a link joins two different nodes")
        return fitting[0]
    if fitting:
        ways = " or ".join(f"{n.a} to {n.b}" for n in fitting)
        raise ValueError(f"'{text}' can be read as {ways}; rename a node so that only one reading is left")
    if not splits:
        raise ValueError(f"'{text[:80]}' does not name a link; write NODE-NODE, such as h1-s1")
    raise ValueError(_unknown(splits, nodes))


def _unknown(splits: list[tuple[str, str]], nodes: Collection[str]) -> str:
    """Says which side of a link's name is no node, judged by the split that knows most of it."""
    from plait.scenario.read.wording import nearest

    a, b = max(splits, key=lambda pair: (pair[0] in nodes) + (pair[1] in nodes))
    missing = [side for side in (a, b) if side not in nodes]
    guess = nearest(missing[0], nodes)
    return f"no node is called '{missing[0][:40]}'; {guess or 'declare it under hosts, switches or routers'}"


def is_address(text: str) -> bool:
    """Whether a text is an IP address, without a prefix."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
