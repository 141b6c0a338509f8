"""The network of a scenario, and the facts of its input files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from plait.parts import Part, names_of, optional
from plait.scenario.fields.links import LinkSpec
from plait.scenario.fields.nodes import Families, Host, Router, RoutingSpec, Switch
from plait.scenario.fields.traces import Trace
from plait.scenario.names import NodeName


class NetworkSpec(Part):
    """Hosts, switches, routers, and the links between them."""

    hosts: Annotated[dict[NodeName, Host], names_of(Host), Field(min_length=2)]
    switches: Annotated[dict[NodeName, Switch], names_of(Switch)] = {}
    routers: Annotated[dict[NodeName, Router], names_of(Router)] = {}
    routing: RoutingSpec = RoutingSpec()
    addresses: Families = "ipv4"
    """Family of derived addresses. `dual`: both on every link; otherwise explicit addresses decide on their segment."""
    links: Annotated[
        dict[str, LinkSpec],
        Field(min_length=1),
        BeforeValidator(optional, json_schema_input_type=dict[str, LinkSpec | None]),
    ]
    """Links by the names of their two nodes, `h1-s1`; further links between the same nodes are `h1-s1#2`, .."""


@dataclass(frozen=True)
class InputFile:
    """A file of this machine that a transfer sends, a program reads, or a link follows as a trace."""

    name: str
    """Its name inside a trial; unique within the scenario."""
    path: Path
    bytes: int
    sha256: str
    trace: Trace | None = None
    """Its content, if it is a trace."""
    text: str | None = None
    """Its content, if it is the file of a scheduler."""
