"""The traffic of a scenario: one class for each kind of entry, with fields, defaults and bounds.

`check/traffic.py` checks entries against each other and against the network.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from plait.parts import (
    GROUP,
    Buffer,
    Keyword,
    Label,
    Length,
    Part,
    Start,
    StartJitter,
    Transport,
    Whole,
)
from plait.scenario.fields.programs import Prototyped
from plait.scenario.fields.spans import Packet, Period, RandomTime, RequestSize, Unsent
from plait.units import Rate, Size

MAX_OBJECTS = 1000
MAX_USERS = 256


def _returned(value: object) -> object:
    """Return the size for a text; `true` and `false` stay."""
    return value if isinstance(value, bool) else Size.parse(value)


def _paths(value: object) -> object:
    """Accept a single path without outer brackets."""
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        return [value]
    return value


class FlowSpec(Part):
    """Fields of all entries."""

    name: (
        Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] | None
    ) = None
    """Name of the flow. Default: its kind and number, `bulk1`."""
    label: Label | None = None
    """Text that figures, tables and sentences show instead of its name."""
    from_: str = Field(alias="from")
    """Sending host; for requests and pages the client."""
    to: str
    """Receiving host; for requests and pages the server."""
    start: Start = Start(0)
    """Start time after the network is complete; with `after`, after the end of that flow."""
    start_jitter: StartJitter = StartJitter(10_000_000)
    """Upper bound of a random start delay, which the seed of each trial determines, so that repeats differ."""
    after: str | None = None
    """Name of an entry above, or of one of its flows, whose end starts this flow."""
    rounds: Annotated[Whole, Field(ge=1, le=1000)] = 1
    """Number of times that the flow runs within a trial, one after the other."""
    round_gap: Start = Start(0)
    """Time from the end of a round to the start of the next."""
    count: Annotated[Whole, Field(ge=1, le=256)] = 1
    """Number of equal parallel flows."""
    users: Annotated[Whole, Field(ge=1, le=MAX_USERS)] | None = None
    """Number of users, each with such a flow; their names user1, user2, .. continue throughout the scenario."""
    spread: Start = Start(0)
    """Time over which the starts of users, or of `count` flows, are evenly spread."""
    background: bool = False
    """Whether the flow is background traffic, which the study's totals exclude."""
    group: Annotated[str, Field(max_length=40, pattern=GROUP)] | None = None
    """Group of flows; the report lists the mean goodput of each group's flows."""
    via: str | None = None
    """Initial path: a link of the connecting host, or the address to connect to. Default: the first."""
    paths: Annotated[list[list[str]], Field(max_length=9), BeforeValidator(_paths)] = []
    """Explicit paths as lists of nodes from `from` to `to`: the first for the initial subflow, the others for further
    subflows. The name of a link may stand between two nodes."""
    bind: str | None = None
    """Address to connect from, or its link."""
    connect: str | None = None
    """Address to connect to, or its link at the other host."""
    send_buffer: Buffer | None = None
    """Send buffer (SO_SNDBUF). Default: the kernel's autotuning."""
    receive_buffer: Buffer | None = None
    """Receive buffer (SO_RCVBUF). Default: the kernel's autotuning."""
    mark: Annotated[Whole, Field(ge=1, lt=2**32)] | None = None
    """Firewall mark of both sockets (SO_MARK), for policy rules and filters."""
    dscp: Annotated[Whole, Field(ge=0, le=63)] | None = None
    """Differentiated services code point (DSCP) of the packets of both sockets."""

    answers: ClassVar[bool] = False
    """Whether the measured data flow from `to` to `from`."""

    @property
    def connects_to_sender(self) -> bool:
        """Whether `to` connects to `from`, instead of `from` to `to`."""
        return False

    @model_validator(mode="after")
    def _one_of_many(self) -> FlowSpec:
        if self.users is not None and self.count != 1:
            raise ValueError("users and count both set the number of flows; remove one of them")
        if self.users is None and self.count == 1 and self.spread:
            raise ValueError("spread needs users or a count; add one of them, or remove spread")
        if self.users is not None and self.name is not None:
            raise ValueError("users have the names user1, user2, ..; remove the name")
        if self.users is not None and self.label is not None:
            raise ValueError("users have the names user1, user2, ..; write their labels under labels.flows")
        if self.round_gap and self.rounds == 1:
            raise ValueError("round_gap is the time between rounds; add rounds, or remove round_gap")
        if self.via is not None and (self.bind is not None or self.connect is not None):
            raise ValueError("via sets the initial path, as bind and connect do; remove via or the others")
        return self


class ConnectionSpec(FlowSpec):
    """Fields of all entries over TCP and MPTCP."""

    transport: Transport | Annotated[list[Transport], Field(min_length=1, max_length=MAX_USERS)] | None = None
    """Transport. Default: the scenario's. A list is assigned in turn to users, or to the flows of a count."""
    scheduler: Keyword | None = None
    """MPTCP packet scheduler of both sides. Default: the host's."""
    congestion_control: Keyword | None = None
    """Congestion control. Default: the host's."""
    nodelay: bool = False
    """Whether to disable Nagle's algorithm (TCP_NODELAY): small segments do not wait for acknowledgements."""
    notsent_lowat: Unsent | None = None
    """Unsent bytes in the socket above which the sender waits (TCP_NOTSENT_LOWAT)."""
    mss: Annotated[Whole, Field(ge=88, le=32767)] | None = None
    """Maximum segment size in bytes (TCP_MAXSEG), for TCP only; the kernel refuses it for MPTCP."""

    @property
    def transports(self) -> tuple[Transport | None, ...]:
        """The transports of the flows in turn; None is the scenario's."""
        if isinstance(self.transport, list):
            return tuple(self.transport)
        return (self.transport,)

    @model_validator(mode="after")
    def _check_transport(self) -> ConnectionSpec:
        if isinstance(self.transport, list) and self.users is None and self.count == 1:
            raise ValueError("a list of transports needs users or a count; write one transport")
        if self.scheduler is not None and self.transport == "tcp":
            raise ValueError("TCP has no packet scheduler; remove it, or write transport: mptcp")
        return self


class OneWay(ConnectionSpec):
    """Fields of entries whose data flow one way over a connection."""

    reverse: bool = False
    """Whether the receiver connects, instead of the sender."""

    @property
    def connects_to_sender(self) -> bool:
        """Whether the receiver connects: `reverse`."""
        return self.reverse


class Lasting(FlowSpec):
    """Fields of entries with a duration."""

    duration: Length | None = None
    stop: Start | None = None
    """End time since the start of the trial, instead of a duration."""

    may_last: ClassVar[bool] = False
    """Whether it may run until the other flows end."""

    @model_validator(mode="after")
    def _one_end(self) -> Lasting:
        count = (self.duration is not None) + (self.stop is not None)
        if count == 2 or (count == 0 and not self._has_other_end()):
            raise ValueError(f"{self._ends()}; write exactly one of them, for example duration: 10s")
        if self.stop is not None:
            if self.after is not None or self.rounds != 1:
                raise ValueError(
                    "stop is a time of the trial, which after and rounds do not allow; write duration instead"
                )
            if self.stop <= self.start + self.start_jitter + self.spread:
                raise ValueError("the flow would stop before its start; write a later stop")
        return self

    def _has_other_end(self) -> bool:
        return self.may_last and self.background

    def _ends(self) -> str:
        return "the flow ends after a duration or at a time (stop)"

    def duration_us(self, start_us: int) -> int | None:
        """Return the duration for a start time; None if the other flows decide the end."""
        if self.duration is not None:
            return self.duration.us
        return None if self.stop is None else self.stop.us - start_us


class BulkSpec(OneWay, Lasting):
    """Send as fast as possible for a duration."""

    may_last: ClassVar[bool] = True
    back: bool = False
    """Whether the receiver also sends, on the same connection."""


class TransferSpec(OneWay):
    """Send a number of bytes or a file; complete when the receiver has the last byte."""

    bytes: Size | None = None
    """Number of bytes to send."""
    file: str | None = None
    """File to send: a path relative to the scenario file, or an absolute path."""
    back: Annotated[
        Size | bool,
        BeforeValidator(_returned, json_schema_input_type=Size | bool),
        PlainSerializer(lambda value: value if isinstance(value, bool) else str(value)),
    ] = False
    """Whether the receiver also sends, at the same time and on the same connection: `true` for as many bytes, or a
    number of bytes."""
    first: Size | None = None
    """Number of bytes that each side writes before it waits for `gap` and writes the rest."""
    gap: Period | None = None
    """Time between `first` and the rest, so that further subflows can join before a side with few bytes ends its
    stream."""

    @property
    def returned(self) -> Size | None:
        """The number of bytes in the other direction; None for none."""
        if isinstance(self.back, bool):
            return self.bytes if self.back else None
        return self.back

    @model_validator(mode="after")
    def _one_content(self) -> TransferSpec:
        if (self.bytes is None) == (self.file is None):
            raise ValueError(
                "a transfer sends either a number of bytes or a file; write exactly one of bytes and file"
            )
        if self.back is True and self.bytes is None:
            raise ValueError("back: true sends as many bytes back as bytes says; with a file, write a size")
        if (self.first is None) != (self.gap is None):
            raise ValueError("first and gap need each other; write for example first: 100B, gap: 200ms")
        if self.first is not None and self.bytes is None:
            raise ValueError("first needs a number of bytes, not a file; write bytes instead of file")
        for size in (self.bytes, self.returned):
            if self.first is not None and size is not None and self.first >= size:
                raise ValueError(f"first is {self.first}, but the whole transfer has {size}; lower first")
        return self


class Paced(Lasting):
    """Fields of entries that send at a constant rate."""

    rate: Rate | None = None
    """Rate of the payload, without headers."""
    every: Period | None = None
    """Time from the start of a message to the start of the next, instead of a rate."""

    @model_validator(mode="after")
    def _one_pace(self) -> Paced:
        if (self.rate is None) == (self.every is None):
            raise ValueError(
                "the flow needs a rate, or every (the time between messages); write exactly one of them"
            )
        return self

    def interval_ns(self, size: int) -> int:
        """Return the time between the starts of two messages of `size` bytes."""
        if self.every is not None:
            return int(self.every)
        assert self.rate is not None
        return max(1, size * 8 * 10**9 // int(self.rate))


class PrototypeSpec(Prototyped, Lasting):
    """Send over the multipath transport in user space, to try a packet scheduler; complete when all data arrived."""

    every: Period | None = None
    """Time from the start of a message to the start of the next. Default: a message follows when the receiver has
    acknowledged the one before."""

    def _has_other_end(self) -> bool:
        return self.bytes is not None or self.messages is not None

    def _ends(self) -> str:
        return "the flow ends after a number of bytes or messages, after a duration, or at a time (stop)"

    @model_validator(mode="after")
    def _one_content(self) -> PrototypeSpec:
        timed = self.duration is not None or self.stop is not None
        if (self.bytes is not None) + (self.messages is not None) + timed != 1:
            raise ValueError(f"{self._ends()}; write exactly one of them, for example duration: 10s")
        if self.message is None and (self.messages is not None or self.every is not None):
            raise ValueError("messages and every need the size of a message; write for example message: 10KB")
        if self.message is not None and self.messages is None:
            raise ValueError("message needs the number of messages; write for example messages: 100")
        for field in ("send_buffer", "receive_buffer", "mark", "dscp"):
            if getattr(self, field) is not None:
                raise ValueError(f"the prototype does not set {field}; remove it")
        return self


class StreamSpec(OneWay, Paced):
    """Send messages at a constant rate, and measure the delay of each at the receiver."""

    message: Size
    """Size of a message."""


class UdpSpec(Paced):
    """Send UDP packets at a constant rate, and measure loss, delay and jitter at the receiver."""

    packet: Packet
    """Payload of a packet, without headers (IPv4: 28 bytes)."""
    back: bool = False
    """Whether the receiver also sends: from its first received packet on, as many packets of the same size at the same
    rate, to the source of that packet. So they pass a NAT."""


class RequestSpec(ConnectionSpec, Lasting):
    """Send requests over one connection, and measure the time to each response."""

    answers: ClassVar[bool] = True
    request: RequestSize = RequestSize(100)
    """Size of a request."""
    response: Size
    """Size of a response."""
    requests: Annotated[Whole, Field(ge=1, le=10**6)] | None = None
    """Number of requests, instead of a duration."""
    gap: RandomTime | None = None
    """Time from a response to the next request (closed loop). Default: none."""
    every: RandomTime | None = None
    """Time from a request to the next, which does not wait for responses (open loop)."""

    def _has_other_end(self) -> bool:
        return self.requests is not None

    def _ends(self) -> str:
        return "the flow ends after a number of requests, after a duration, or at a time (stop)"

    @model_validator(mode="after")
    def _one_loop(self) -> RequestSpec:
        if self.requests is not None and (self.duration is not None or self.stop is not None):
            raise ValueError(f"{self._ends()}; write exactly one of them, for example duration: 10s")
        if self.gap is not None and self.every is not None:
            raise ValueError("gap follows a response, every does not wait for it; remove one of them")
        return self


class OnOffSpec(OneWay, Lasting):
    """Send and pause alternately."""

    on: RandomTime
    """Length of each sending period."""
    off: RandomTime
    """Length of each silent period."""
    rate: Rate | None = None
    """Rate in sending periods. Default: as fast as possible."""
    message: Size | None = None
    """Size of a message, with a rate. Default: 1000 bytes."""

    @model_validator(mode="after")
    def _paced(self) -> OnOffSpec:
        if self.message is not None and self.rate is None:
            raise ValueError("message needs a rate; add a rate, or remove message")
        return self


def _objects(value: object) -> object:
    """Return the sizes with `10x 20KB` replaced by ten entries."""
    if not isinstance(value, (list, tuple)):
        return value
    sizes: list[object] = []
    for entry in value:
        repeated = re.fullmatch(r"\s*(\d{1,4})\s*x\s+(.+)", entry) if isinstance(entry, str) else None
        sizes += [repeated[2]] * int(repeated[1]) if repeated else [entry]
    return sizes


class PageSpec(ConnectionSpec):
    """Load a document, then the other objects of a page over parallel connections, and measure the total time."""

    answers: ClassVar[bool] = True
    objects: Annotated[
        list[Size],
        Field(min_length=1, max_length=MAX_OBJECTS),
        BeforeValidator(_objects, json_schema_input_type=list[str]),
    ]
    """Sizes of the objects, the document first: `[50KB, 10x 20KB]`."""
    connections: Annotated[Whole, Field(ge=1, le=64)] = 6
    """Number of parallel connections; 1 loads the objects in sequence."""
    request: RequestSize = RequestSize(400)
    """Size of a request for an object."""


Kind = Literal["bulk", "transfer", "stream", "request", "on_off", "page", "udp", "prototype"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
KEYS: dict[Kind, str] = {kind: kind.replace("_", "-") for kind in _KINDS}
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
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @property
    def key(self) -> str:
        """The name of its kind in a scenario file."""
        return KEYS[self.kind]

    @property
    def flow(self) -> FlowSpec:
        """The field that is set."""
        spec: FlowSpec = getattr(self, self.kind)
        return spec
