"""The labels of a study: what people call its nodes, links, paths, flows and cases.

Names stay the identity: data columns, options and summary.json have names. Everything that people read asks here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from plait.label_text import label_problem

ARROW = "->"
ByName = Annotated[dict[str, str], Field(exclude_if=lambda labels: not labels)]


class StudyLabels(BaseModel):
    """Labels by name; a thing without a label is called by its name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: ByName = {}
    links: ByName = {}
    paths: ByName = {}
    flows: ByName = {}
    """By the name of an entry of the traffic, or of one of its flows."""
    cases: ByName = {}

    def __bool__(self) -> bool:
        """Return whether anything has a label."""
        return any((self.nodes, self.links, self.paths, self.flows, self.cases))

    def node(self, name: str) -> str:
        """Return what to call a host, switch or router."""
        return self.nodes.get(name, name)

    def link(self, name: str) -> str:
        """Return what to call a link."""
        return self.links.get(name, name)

    def path(self, name: str) -> str:
        """Return what to call a path; one over a single link has the name of this link, and its label."""
        return self._paths.get(name, name)

    def flow(self, name: str) -> str:
        """Return what to call a flow: `Backup`, and `Backup 2` for the second of an entry with that label."""
        if name in self.flows:
            return self.flows[name]
        for entry, label in self.flows.items():
            if name.startswith(f"{entry}."):
                return f"{label} {name[len(entry) + 1 :].replace('.', ' ')}"
        return name

    def direction(self, link: str, name: str, source: str, target: str) -> str:
        """Return what to call one direction of a link: `Wi-Fi (phone->ap)`; `h1->s1` without labels."""
        ends = f"{self.node(source)}{ARROW}{self.node(target)}"
        if link in self.links:
            return f"{self.links[link]} ({ends})"
        return ends + name.removeprefix(f"{source}{ARROW}{target}") if ends != name else name

    def metric_owner(self, owner: str) -> str:
        """Return what to call the part before a metric's name: a flow, a path, a flow and its path, or a direction."""
        if owner in self._paths or owner in self.flows:
            return self._paths.get(owner) or self.flows[owner]
        for flow in sorted(self._flow_names(owner), key=len, reverse=True):
            return f"{self.flow(flow)}: {self.path(owner[len(flow) + 1 :])}"
        source, arrow, target = owner.partition(ARROW)
        return self.direction("", owner, source, target.partition("#")[0]) if arrow else self.flow(owner)

    @property
    def _paths(self) -> Mapping[str, str]:
        return {**self.links, **self.paths}

    def _flow_names(self, owner: str) -> Iterable[str]:
        """Return beginnings of a text that a path with a label follows."""
        return (owner.removesuffix(f".{path}") for path in self._paths if owner.endswith(f".{path}"))


def labels_in(scenario: object) -> StudyLabels:
    """Return the labels in the scenario of study.json; texts that can be no label are left out, as strangers' are."""
    if not isinstance(scenario, dict):
        return StudyLabels()
    network = _mapping(scenario.get("network"))
    nodes = [
        item for kind in ("hosts", "switches", "routers") for item in _mapping(network.get(kind)).items()
    ]
    written = {
        kind: _mapping(_mapping(scenario.get("labels")).get(kind)) for kind in StudyLabels.model_fields
    }
    return StudyLabels(
        nodes=_texts([*_field_labels(nodes), *written["nodes"].items()]),
        links=_texts([*_field_labels(_mapping(network.get("links")).items()), *written["links"].items()]),
        paths=_texts(written["paths"].items()),
        flows=_texts([*_field_labels(_entries(scenario.get("traffic"))), *written["flows"].items()]),
        cases=_texts(written["cases"].items()),
    )


def _entries(traffic: object) -> Iterable[tuple[object, object]]:
    """Yield the name and the fields of each entry of the traffic."""
    for number, entry in enumerate(traffic if isinstance(traffic, list) else (), 1):
        for kind, fields in _mapping(entry).items():
            yield (_mapping(fields).get("name") or f"{kind}{number}", fields)


def _field_labels(things: Iterable[tuple[object, object]]) -> Iterable[tuple[object, object]]:
    return ((name, _mapping(fields).get("label")) for name, fields in things)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _texts(pairs: Iterable[tuple[object, object]]) -> dict[str, str]:
    return {
        name: text
        for name, text in pairs
        if isinstance(name, str) and isinstance(text, str) and label_problem(text) is None
    }
