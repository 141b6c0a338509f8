"""Check the names of nodes, parse those of links, and find the names of varied fields."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated

from pydantic import BeforeValidator

NODE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
NODE_NAME_MAX = 32
"""In characters. plait shortens interface names to the kernel's 15, but not names of namespaces."""
RESERVED = ("wire",)
"""Namespaces that plait itself creates."""

_PARALLEL = re.compile(r"(.*)#([1-9][0-9]{0,3})", re.ASCII | re.DOTALL)


def check_node_name(name: str) -> None:
    """Raise ValueError if `name` cannot name a node."""
    if len(name) > NODE_NAME_MAX:
        raise ValueError(
            f"'{name[:NODE_NAME_MAX]}..' has {len(name)} characters; a name has at most {NODE_NAME_MAX}"
        )
    if not NODE_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a node; write a letter, then letters, digits, '-' or '_', such as h1"
        )
    if name in RESERVED:
        raise ValueError(f"'{name}' is the name of a namespace of plait; choose another name")


def _name(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError(  # noqa: TRY004  # pydantic collects ValueErrors only
            f"{str(text)[:40]} is not a name; write text that begins with a letter, such as h1"
        )
    check_node_name(text)
    return text


NodeName = Annotated[str, BeforeValidator(_name)]


@dataclass(frozen=True)
class LinkName:
    """The parts of a link's name: `h1-s1#2` is the second link between h1 and s1."""

    a: str
    b: str
    suffix: str
    """Empty, or `#2`."""

    def direction(self, *, forward: bool) -> str:
        """Return the name of a direction: `h1->s1` forward, `s1->h1` backward, with its number `h1->s1#2`."""
        source, target = (self.a, self.b) if forward else (self.b, self.a)
        return f"{source}->{target}{self.suffix}"


def read_link_name(text: str, nodes: Collection[str]) -> LinkName:
    """Split a link's name at the dash that has a declared node on either side.

    Raises ValueError if there is no such dash, or several.
    """
    numbered = _PARALLEL.fullmatch(text)
    body, suffix = (numbered[1], f"#{numbered[2]}") if numbered else (text, "")
    dashes = [i for i, c in enumerate(body) if c == "-"]
    splits = [(body[:i], body[i + 1 :]) for i in dashes]
    fitting = [LinkName(a, b, suffix) for a, b in splits if a in nodes and b in nodes]
    if len(fitting) == 1:
        if fitting[0].a == fitting[0].b:
            raise ValueError(f"'{text}' joins {fitting[0].a} to itself; name two different nodes")
        return fitting[0]
    if fitting:
        ways = " or ".join(f"{n.a} to {n.b}" for n in fitting)
        raise ValueError(f"'{text}' is ambiguous: {ways}; rename a node")
    if not splits:
        raise ValueError(f"'{text[:80]}' does not name a link; write NODE-NODE, such as h1-s1")
    raise ValueError(_unknown(splits, nodes))


def _unknown(splits: list[tuple[str, str]], nodes: Collection[str]) -> str:
    """Return which side of a link's name is not a node, for the split with most declared nodes."""
    from plait.scenario.wording import nearest

    a, b = max(splits, key=lambda pair: (pair[0] in nodes) + (pair[1] in nodes))
    missing = [side for side in (a, b) if side not in nodes]
    guess = nearest(missing[0], nodes)
    return f"no node is called '{missing[0][:40]}'; {guess or 'declare it under hosts, switches or routers'}"


def is_address(text: str) -> bool:
    """Return whether a text is an IP address without a prefix."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def varied_by(vary: object) -> set[str]:
    """Return the names of all varied fields in an unvalidated `vary`."""
    parts = vary if isinstance(vary, dict) else {}
    cases, design = parts.get("cases"), parts.get("latin_hypercube")
    nested = [parts.get("zip"), design.get("fields") if isinstance(design, dict) else None]
    nested += cases if isinstance(cases, list) else ()
    return {name for part in (parts, *nested) if isinstance(part, dict) for name in part}
