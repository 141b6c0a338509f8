"""Check labels: what they name exists, each thing has at most one, and no two things are called the same."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from plait.scenario.mistakes import FieldMistake, Where
from plait.scenario.model import ScenarioModel
from plait.scenario.names import LinkName
from plait.scenario.wording import nearest

_BEHIND = re.compile(r"((?:#[1-9][0-9]{0,3})*)(?:~[1-9][0-9]{0,3})?$", re.ASCII)
"""The end of a path's name, after the nodes: numbers of parallel links, and of a path over the same links."""
_PART = re.compile(r"(?:\.[0-9]{1,4})*(?:\.c[0-9]{1,2}|\.back)?", re.ASCII)
"""The end of a flow's name, after the name of its entry."""


def check_labels(scenario: ScenarioModel, links: Mapping[str, LinkName]) -> Iterator[FieldMistake]:
    """Yield every mistake; `links` has the links whose names are valid. `expand` checks the names of cases."""
    network = scenario.network
    nodes: dict[str, tuple[Where, str | None]] = {
        name: (("network", kind, name, "label"), node.label)
        for kind in ("hosts", "switches", "routers")
        for name, node in getattr(network, kind).items()
    }
    of_links = {
        name: (("network", "links", name, "label"), link.label) for name, link in network.links.items()
    }
    flows = {
        entry.flow.name or f"{entry.kind}{i + 1}": (("traffic", i, entry.key, "label"), entry.flow.label)
        for i, entry in enumerate(scenario.traffic)
    }
    given = scenario.labels
    yield from _of_kind("node", nodes, "nodes", given.nodes if given else {})
    yield from _of_kind("link", of_links, "links", given.links if given else {})
    yield from _of_kind("flow", flows, "flows", _without_parts(given.flows, flows) if given else {})
    if given is None:
        return
    if not scenario.programs and not any(entry.flow.users for entry in scenario.traffic):
        yield from _unknown("flow", "flows", _without_parts(given.flows, flows), flows)
    joined = {frozenset((link.a, link.b)) for link in links.values()}
    for name in given.paths:
        if not _is_walk(name, nodes, joined):
            right = "write its nodes from the sender to the receiver, such as h1-s1-h2"
            yield ("labels", "paths", name), f"'{name[:80]}' is no path over links of this network; {right}"
        elif (named := _reversed_link(name, network.links, links)) is not None:
            right = f"a path over one link has the name of the link; write '{named}'"
            yield ("labels", "paths", name), f"no path is called '{name}'; {right}"
    yield from _alike(
        "path", {}, {name: (("labels", "paths", name), text) for name, text in given.paths.items()}
    )
    yield from _alike(
        "case", {}, {name: (("labels", "cases", name), text) for name, text in given.cases.items()}
    )


def _of_kind(
    noun: str, things: Mapping[str, tuple[Where, str | None]], kind: str, given: Mapping[str, str]
) -> Iterator[FieldMistake]:
    """Yield names that nothing has (those of flows are checked apart), and things with two labels."""
    if noun != "flow":
        yield from _unknown(noun, kind, given, things)
    labelled: dict[str, tuple[Where, str]] = {}
    for name, (where, text) in things.items():
        if text is not None and name in given:
            yield ("labels", kind, name), f"this {noun} also has the label '{text}'; remove one of them"
        if text is not None:
            labelled[name] = (where, text)
    labelled |= {name: (("labels", kind, name), text) for name, text in given.items() if name not in labelled}
    yield from _alike(noun, things, labelled)


def _unknown(
    noun: str, kind: str, given: Mapping[str, str], things: Collection[str]
) -> Iterator[FieldMistake]:
    for name in given:
        if name not in things:
            yield ("labels", kind, name), f"there is no {noun} '{name[:60]}'; {nearest(name, things)}"


def _alike(
    noun: str, names: Collection[str], labelled: Mapping[str, tuple[Where, str]]
) -> Iterator[FieldMistake]:
    """Yield labels that another thing of the kind has as its label, or as its name."""
    taken: dict[str, str] = {name: name for name in names if name not in labelled}
    for name, (where, text) in labelled.items():
        if taken.setdefault(text, name) != name:
            other = (
                f"the name of a {noun}" if taken[text] == text else f"the label of the {noun} {taken[text]}"
            )
            yield where, f"'{text}' is also {other}; choose another label"


def _without_parts(given: Mapping[str, str], flows: Collection[str]) -> dict[str, str]:
    """Return the labels without those of single flows of an entry: `bulk1.2`, `bulk1.back`."""
    return {
        name: text
        for name, text in given.items()
        if name in flows
        or not any(name.startswith(f"{flow}.") and _PART.fullmatch(name[len(flow) :]) for flow in flows)
    }


def _reversed_link(name: str, written: Collection[str], links: Mapping[str, LinkName]) -> str | None:
    """Return the name for a path that `name` calls by the ends of its only link in reverse order; None if none."""
    body, twin, number = name.partition("~")
    turned = {f"{link.b}-{link.a}{link.suffix}": key for key, link in links.items()}
    return turned[body] + twin + number if body in turned and body not in written else None


def _is_walk(name: str, nodes: Collection[str], joined: Collection[frozenset[str]]) -> bool:
    """Return whether a text is the name of a path: nodes with links between each two, and dashes between them."""
    behind = _BEHIND.search(name)
    parts = (name[: behind.start()] if behind else name).split("-")
    # Names of nodes may contain dashes: the nodes that the first parts of the text can end with, by their number.
    ends: list[set[str]] = [set() for _ in range(len(parts) + 1)]
    for stop in range(1, len(parts) + 1):
        for start in range(max(0, stop - _MOST_DASHES), stop):
            node = "-".join(parts[start:stop])
            before = ends[start]
            if node in nodes and (start == 0 or any(frozenset((other, node)) in joined for other in before)):
                ends[stop].add(node)
    return bool(ends[-1]) and "-".join(parts) not in ends[-1]


_MOST_DASHES = 33
"""Parts between dashes of a node's name, which has at most 32 letters."""
