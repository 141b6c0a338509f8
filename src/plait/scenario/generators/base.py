"""What a generator of networks is: typed parameters, and the network that follows from them as plain fields."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from plait.scenario.fields.parts import Part

if TYPE_CHECKING:
    from plait.scenario.mistakes import FieldMistake

Options = dict[str, Any]
MAX_PATHS = 9
"""Between two hosts: the kernel opens 8 subflows in addition to the initial one."""


def one_for_all(value: object) -> object:
    """Return a list for a single value, which holds for all paths."""
    return value if isinstance(value, (list, tuple, dict, Part)) or value is None else [value]


@dataclass
class Description:
    """A network as the fields of a scenario's `network` (nodes and links by name, with their options)."""

    hosts: dict[str, Options] = field(default_factory=dict)
    switches: dict[str, Options] = field(default_factory=dict)
    routers: dict[str, Options] = field(default_factory=dict)
    links: dict[str, Options] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    """Further fields of the network, such as `routing`."""

    def add_hosts(self, *names: str) -> None:
        """Declares hosts without options."""
        self.hosts |= {name: {} for name in names}

    def add_switches(self, *names: str, **options: object) -> None:
        """Declares switches, all with these options."""
        self.switches |= {name: dict(options) for name in names}

    def add_routers(self, *names: str, **options: object) -> None:
        """Declares routers, all with these options."""
        self.routers |= {name: dict(options) for name in names}

    def join(self, a: str, b: str, **conditions: object) -> str:
        """A link from a to b, a further one where they are joined already; conditions of None are left out."""
        number, name = 1, f"{a}-{b}"
        while name in self.links:
            number += 1
            name = f"{a}-{b}#{number}"
        self.links[name] = {key: _text(value) for key, value in conditions.items() if value is not None}
        return name


def _text(value: object) -> object:
    """A quantity as it is written in a file."""
    if isinstance(value, dict):
        return {key: _text(inner) for key, inner in value.items() if inner is not None}
    return value if value is None or type(value) in (str, bool, int) else str(value)


class Generator(Part):
    """The parameters of one kind of network. Every one has a default, so that a name alone gives a network."""

    SIZE: ClassVar[str]
    """The parameter on which the size depends most; it is named when the network would be too large."""
    TRAFFIC: ClassVar[list[Options]] = []
    """What crosses it where the scenario has no `traffic`; empty when nothing is usual."""

    def mistakes(self) -> list[FieldMistake]:
        """What is wrong between parameters: (path within the parameters, what is wrong; what would be right)."""
        return []

    @abstractmethod
    def count_links(self) -> int:
        """How many links there will be; asked before anything is made."""

    @abstractmethod
    def describe(self) -> Description:
        """The network. Called only without mistakes, and within the bound on links."""
