"""The registry of the kinds of traffic: entries of a scenario, jobs of a plan, and what analyses group them by.

A new kind is a module of this folder and one of the agent (`agent/src/traffic/kinds`), and lines in their registries:
CONTRIBUTING.md has the list.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from plait.parts import Part
from plait.traffic.bulk import Bulk, BulkSpec
from plait.traffic.on_off import OnOff, OnOffSpec
from plait.traffic.page import Page, PageConnection, PageSpec
from plait.traffic.program import Connection
from plait.traffic.prototype import Prototype, PrototypeSpec
from plait.traffic.request import Request, RequestSpec
from plait.traffic.spec import FlowSpec
from plait.traffic.stream import Stream, StreamSpec
from plait.traffic.transfer import Transfer, TransferSpec
from plait.traffic.udp import Udp, UdpSpec

Kind = Literal["bulk", "transfer", "stream", "request", "on_off", "page", "udp", "prototype"]

SPECS: dict[Kind, type[FlowSpec]] = {
    "bulk": BulkSpec,
    "transfer": TransferSpec,
    "stream": StreamSpec,
    "request": RequestSpec,
    "on_off": OnOffSpec,
    "page": PageSpec,
    "udp": UdpSpec,
    "prototype": PrototypeSpec,
}
"""The entries of a scenario's traffic, by kind."""
KEYS: dict[Kind, str] = {kind: kind.replace("_", "-") for kind in SPECS}
"""The name of each kind in a scenario file, in which names of two words have a dash."""


class Traffic(Part):
    """One entry of the traffic, with exactly one of its fields."""

    bulk: BulkSpec | None = None
    transfer: TransferSpec | None = None
    stream: StreamSpec | None = None
    request: RequestSpec | None = None
    on_off: OnOffSpec | None = Field(default=None, alias="on-off")
    page: PageSpec | None = None
    udp: UdpSpec | None = None
    prototype: PrototypeSpec | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_kind(cls, value: Any) -> Any:
        if isinstance(value, dict):
            names = {*cls.model_fields, *KEYS.values()}
            given = [name for name in names if value.get(name) is not None]
            if len(given) > 1 or (not given and set(value) <= names):
                kinds = [f"{name}: {{..}}" for name in KEYS.values()]
                raise ValueError(
                    f"an entry of the traffic has exactly one kind; write {', '.join(kinds[:-1])} or {kinds[-1]}"
                )
        return value

    @property
    def kind(self) -> Kind:
        """The name of the field that is set."""
        return next(kind for kind in SPECS if getattr(self, kind) is not None)

    @property
    def key(self) -> str:
        """The name of its kind in a scenario file."""
        return KEYS[self.kind]

    @property
    def flow(self) -> FlowSpec:
        """The field that is set."""
        spec: FlowSpec = getattr(self, self.kind)
        return spec


Application = Annotated[
    Bulk | Transfer | Stream | OnOff | Request | Page | PageConnection | Udp | Prototype | Connection,
    Field(discriminator="kind"),
]
"""The jobs of a plan."""
JOBS = {job.model_fields["kind"].default: job for job in get_args(get_args(Application)[0])}
"""The jobs of a plan by the kind that the tables name."""
CONNECTIONS = tuple(kind for kind in JOBS if kind != "udp")
GREEDY = tuple(kind for kind, job in JOBS.items() if job.GREEDY)
"""The kinds of flows that take what they can get; what others get is no measure of the links."""
COMPLETED = tuple(kind for kind, job in JOBS.items() if job.COMPLETES)
"""The kinds of flows that have a completion time."""
TIMED = tuple(kind for kind, job in JOBS.items() if job.MEASURED_DELAY == "message_delay")
