"""The base class of network generators: typed parameters, and the network as plain fields."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from plait.parts import Part
from plait.scenario.mistakes import FieldMistake

Options = dict[str, Any]
MAX_PATHS = 9
"""Most paths between two hosts: the kernel opens 8 subflows in addition to the initial one."""


def one_for_all(value: object) -> object:
    """Return a list for a single value, which holds for all paths."""
    return value if isinstance(value, (list, tuple, dict, Part)) or value is None else [value]


@dataclass
class Description:
    """A network as fields of a scenario's `network`: nodes and links by name, with their options."""

    hosts: dict[str, Options] = field(default_factory=dict)
    switches: dict[str, Options] = field(default_factory=dict)
    routers: dict[str, Options] = field(default_factory=dict)
    links: dict[str, Options] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    """Further fields of the network, such as `routing`."""

    def add_hosts(self, *names: str) -> None:
        """Add hosts without options."""
        self.hosts |= {name: {} for name in names}

    def add_switches(self, *names: str, **options: object) -> None:
        """Add switches, all with these options."""
        self.switches |= {name: dict(options) for name in names}

    def add_routers(self, *names: str, **options: object) -> None:
        """Add routers, all with these options."""
        self.routers |= {name: dict(options) for name in names}

    def join(self, a: str, b: str, **conditions: object) -> str:
        """Add a link from a to b, or a further one, without conditions that are None; return its name."""
        number, name = 1, f"{a}-{b}"
        while name in self.links:
            number += 1
            name = f"{a}-{b}#{number}"
        self.links[name] = {key: _text(value) for key, value in conditions.items() if value is not None}
        return name


def _text(value: object) -> object:
    """Return a quantity as a file holds it."""
    if isinstance(value, dict):
        return {key: _text(inner) for key, inner in value.items() if inner is not None}
    return value if value is None or type(value) in (str, bool, int) else str(value)


class Generator(Part):
    """The parameters of one kind of network. Each has a default, so the name alone defines a network."""

    SIZE: ClassVar[str]
    """The parameter that determines the size; messages name it if the network is too large."""
    TRAFFIC: ClassVar[list[Options]] = []
    """The default traffic of a scenario without `traffic`; empty for none."""

    def mistakes(self) -> list[FieldMistake]:
        """Return the mistakes of parameters against each other, by the path of a parameter."""
        return []

    @abstractmethod
    def count_links(self) -> int:
        """Return the number of links, before `describe` builds any."""

    @abstractmethod
    def describe(self) -> Description:
        """Return the network. Only for parameters without mistakes, and within the bound on links."""
