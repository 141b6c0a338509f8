"""The base class of network generators: typed parameters, and the network as plain fields."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BeforeValidator

from plait.parts import Delay, Part
from plait.scenario.mistakes import FieldMistake

Options = dict[str, Any]
MAX_PATHS = 9
"""Most paths between two hosts: the kernel opens 8 subflows in addition to the initial one."""
MAX_LINKS = 4096
_MAX_NODES = 2 * MAX_LINKS
"""More of them need more links, because each has one."""


class TooManyLinksError(Exception):
    """The network would have more than MAX_LINKS links."""


def one_for_all(value: object) -> object:
    """Return a list for a single value, which holds for all paths."""
    return value if isinstance(value, (list, tuple, dict, Part)) or value is None else [value]


Delays = Annotated[list[Delay], BeforeValidator(one_for_all, json_schema_input_type=Delay | list[Delay])]
T = TypeVar("T")


def of_path(values: Sequence[T], i: int) -> T:
    """Return the value of path i."""
    return values[0] if len(values) == 1 else values[i]


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
        """Add hosts without options. Raises TooManyLinksError."""
        self.hosts |= {name: {} for name in names}
        if len(self.hosts) > _MAX_NODES:
            raise TooManyLinksError

    def add_switches(self, *names: str, **options: object) -> None:
        """Add switches, all with these options."""
        self.switches |= {name: dict(options) for name in names}

    def add_routers(self, *names: str, **options: object) -> None:
        """Add routers, all with these options."""
        self.routers |= {name: dict(options) for name in names}

    def join(self, a: str, b: str, **conditions: object) -> None:
        """Add a link from a to b, or a further one, without conditions that are None. Raises TooManyLinksError."""
        if len(self.links) == MAX_LINKS:
            raise TooManyLinksError
        number, name = 1, f"{a}-{b}"
        while name in self.links:
            number += 1
            name = f"{a}-{b}#{number}"
        self.links[name] = {key: _text(value) for key, value in conditions.items() if value is not None}


def numbered(name: str, count: int, first: int = 1) -> list[str]:
    """Return the names `h1`, `h2`, .. of nodes. Raises TooManyLinksError."""
    if count > _MAX_NODES:
        raise TooManyLinksError
    return [f"{name}{number}" for number in range(first, first + count)]


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

    def not_for_each(self, count: int, things: str, *lists: str) -> list[FieldMistake]:
        """Return a mistake for each of these parameters with neither a single value nor one for each thing."""
        return [
            ((name,), f"there are {given} values for {count} {things}; write one for each, or a single one")
            for name in lists
            if isinstance(values := getattr(self, name), list) and (given := len(values)) not in (1, count)
        ]

    @abstractmethod
    def describe(self) -> Description:
        """Return the network, for parameters without mistakes. Raises TooManyLinksError."""
