"""The traffic of a scenario: one class for each kind of entry, with its fields, their defaults and their bounds.

What entries mean together (the flow that another one follows, hosts that exist) is checked in `check_traffic.py`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from plait.scenario.fields.parts import (
    GROUP,
    Buffer,
    Keyword,
    Length,
    Part,
    Start,
    StartJitter,
    Transport,
    Whole,
)
from plait.scenario.fields.spans import FlowMoment, PauseLength
from plait.units import Duration, Rate, Size

REQUEST_LEAST = 8
"""A request carries the size of what it asks for, in so many bytes; a packet its number."""
PACKET_MOST = 65_507
"""What IPv4 lets a UDP packet carry."""
MAX_OBJECTS = 1000
MAX_USERS = 256


class Pause(Duration):
    """A pause, or an interval between messages: from a microsecond to an hour, to the nanosecond."""

    least = 1000
    most = 3600 * 10**9


class Packet(Size):
    """What a UDP packet carries."""

    least = REQUEST_LEAST
    most = PACKET_MOST


class RequestSize(Size):
    """The size of a request."""

    least = REQUEST_LEAST


class Unsent(Size):
    """A bound for bytes that wait in a socket."""

    least = 1
    most = 2**31 - 1


def _paths(value: object) -> object:
    """One path, or several."""
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        return [value]
    return value


class FlowSpec(Part):
    """What all entries have in common."""

    name: (
        Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] | None
    ) = None
    """Default: the kind and its number, `bulk1`."""
    from_: str = Field(alias="from")
    """The host that sends; of requests and pages, the one that asks."""
    to: str
    """The host that receives; of requests and pages, the one that answers."""
    start: Start = Start(0)
    """After the network is complete; with `after`, after that flow's end."""
    start_jitter: StartJitter = StartJitter(10_000_000)
    """Each trial starts the flow by up to so much later, as its seed says, so that repeats are no copies."""
    after: str | None = None
    """The name of an entry above, or of one of its flows: this one starts when that has ended."""
    repeat: Annotated[Whole, Field(ge=1, le=1000)] = 1
    """So many times within one trial, one after the other."""
    gap: Start = Start(0)
    """Between the end of one and the start of the next, with `repeat`."""
    count: Annotated[Whole, Field(ge=1, le=256)] = 1
    """So many flows alike, side by side."""
    users: Annotated[Whole, Field(ge=1, le=MAX_USERS)] | None = None
    """So many users who each do this; they are called user1, user2, .. throughout the scenario."""
    spread: Start = Start(0)
    """The starts of users, or of the flows of a count, are spread evenly over so long."""
    background: bool = False
    """Present, but not part of the figures of the study as a whole."""
    group: Annotated[str, Field(max_length=40, pattern=GROUP)] | None = None
    """The report tells what each flow of a group gets in the mean."""
    via: str | None = None
    """The initial path: a link of the connecting host, or the address to connect to. Default: the first."""
    paths: Annotated[list[list[str]], Field(max_length=9), BeforeValidator(_paths)] = []
    """Nodes from `from` to `to`, one after the other: the way of the initial subflow; further ones, of others. The
    name of a link may stand between two nodes."""
    bind: str | None = None
    """The address to connect from, or the link that has it."""
    connect: str | None = None
    """The address to connect to, or the link of the other host that has it."""
    send_buffer: Buffer | None = None
    receive_buffer: Buffer | None = None
    """SO_SNDBUF and SO_RCVBUF. Default: the kernel's own tuning."""
    mark: Annotated[Whole, Field(ge=1, lt=2**32)] | None = None
    """SO_MARK of both sockets, for policy rules and filters."""
    dscp: Annotated[Whole, Field(ge=0, le=63)] | None = None
    """The differentiated services code point of what both sockets send."""

    answers: ClassVar[bool] = False
    """Whether the data of interest flow back, from `to` to `from`."""

    @property
    def connects_to_sender(self) -> bool:
        """Whether `to` connects to `from`, instead of the other way around."""
        return False

    @model_validator(mode="after")
    def _one_of_many(self) -> FlowSpec:
        if self.users is not None and self.count != 1:
            raise ValueError("users and count both say how many; give one of them")
        if self.users is None and self.count == 1 and self.spread:
            raise ValueError("spread is over users, or over a count; give one of them, or leave it out")
        if self.users is not None and self.name is not None:
            raise ValueError("users are called user1, user2, ..; leave the name out")
        if self.gap and self.repeat == 1:
            raise ValueError("gap is between repetitions; give repeat as well, or leave it out")
        if self.via is not None and (self.bind is not None or self.connect is not None):
            raise ValueError("via chooses the initial path by one end; give either it, or bind and connect")
        return self


class ConnectionSpec(FlowSpec):
    """What all entries over TCP and MPTCP have in common."""

    transport: Transport | Annotated[list[Transport], Field(min_length=1, max_length=MAX_USERS)] | None = None
    """Default: the scenario's. A list: users, or the flows of a count, take these in turn."""
    scheduler: Keyword | None = None
    """Where the flow is MPTCP, of both sides. Default: the host's."""
    congestion_control: Keyword | None = None
    """Default: the host's."""
    nodelay: bool = False
    """TCP_NODELAY: small segments do not wait for acknowledgements (Nagle's algorithm is off)."""
    notsent_lowat: Unsent | None = None
    """TCP_NOTSENT_LOWAT: the sender waits while so many bytes are in its socket and not sent yet."""
    mss: Annotated[Whole, Field(ge=88, le=32767)] | None = None
    """TCP_MAXSEG: the greatest segment, in bytes. Of TCP only; the kernel refuses it for MPTCP."""

    @property
    def transports(self) -> tuple[Transport | None, ...]:
        """The transports that are taken in turn; None is the scenario's."""
        if isinstance(self.transport, list):
            return tuple(self.transport)
        return (self.transport,)

    @model_validator(mode="after")
    def _check_transport(self) -> ConnectionSpec:
        if isinstance(self.transport, list) and self.users is None and self.count == 1:
            raise ValueError("a list of transports is for users, or for a count; write one transport")
        if self.scheduler is not None and self.transport == "tcp":
            raise ValueError("TCP has no scheduler; leave it out, or let the flow be MPTCP")
        return self


class OneWay(ConnectionSpec):
    """What entries over a connection have in common whose data go one way."""

    reverse: bool = False
    """The receiver connects, instead of the sender."""

    @property
    def connects_to_sender(self) -> bool:
        """As `reverse` says."""
        return self.reverse


class Lasting(FlowSpec):
    """What lasts for a time."""

    duration: Length | None = None
    stop: Start | None = None
    """Instead of a duration: when it ends, from the trial's zero."""

    may_last: ClassVar[bool] = False
    """Whether it may end with the others."""

    @model_validator(mode="after")
    def _one_end(self) -> Lasting:
        count = (self.duration is not None) + (self.stop is not None)
        if count == 2 or (count == 0 and not self._has_other_end()):
            raise ValueError(f"{self._ends()}; give exactly one of them, for example duration: 10s")
        if self.stop is not None:
            if self.after is not None or self.repeat != 1:
                raise ValueError("stop is a time of the trial; with after or repeat, give a duration instead")
            if self.stop <= self.start + self.start_jitter + self.spread:
                raise ValueError("it would stop before it has started; give a later stop")
        return self

    def _has_other_end(self) -> bool:
        return self.may_last and self.background

    def _ends(self) -> str:
        return "it ends after a duration or at a time (stop)"

    def duration_us(self, start_us: int) -> int | None:
        """How long it lasts when it starts then; None when the others decide."""
        if self.duration is not None:
            return self.duration.us
        return None if self.stop is None else self.stop.us - start_us


class BulkSpec(OneWay, Lasting):
    """Sends as fast as it can for a time."""

    may_last: ClassVar[bool] = True
    bidirectional: bool = False
    """The receiver sends as well, on the same connection."""


class TransferSpec(OneWay):
    """Sends so many bytes, or a file, and is complete when the last byte was received."""

    bytes: Size | None = None
    file: str | None = None
    """A file beside the scenario's own, or an absolute path."""
    back: Size | None = None
    """So many bytes go the other way at the same time, on the same connection."""
    first: Size | None = None
    """Each side writes so many bytes, waits for `pause`, and then writes the rest."""
    pause: Pause | None = None
    """After `first`: time for further subflows to join before a side that has little to send ends its stream."""

    @model_validator(mode="after")
    def _one_content(self) -> TransferSpec:
        if (self.bytes is None) == (self.file is None):
            raise ValueError("a transfer sends either so many bytes or a file; give exactly one of them")
        if (self.first is None) != (self.pause is None):
            raise ValueError("first and pause belong together; write for example first: 100B, pause: 200ms")
        if self.first is not None and self.bytes is None:
            raise ValueError("first is of so many bytes, not of a file; give bytes instead of the file")
        for size in (self.bytes, self.back):
            if self.first is not None and size is not None and self.first >= size:
                raise ValueError(f"first is {self.first}, and {size} are sent in all; let first be less")
        return self


class Paced(Lasting):
    """What is sent at a steady pace."""

    rate: Rate | None = None
    """Of the content, without headers."""
    interval: Pause | None = None
    """Between two beginnings. Instead of a rate."""

    @model_validator(mode="after")
    def _one_pace(self) -> Paced:
        if (self.rate is None) == (self.interval is None):
            raise ValueError("the pace is a rate or an interval; give exactly one of them")
        return self

    def interval_ns(self, size: int) -> int:
        """The time between the beginnings of two messages of so many bytes."""
        if self.interval is not None:
            return int(self.interval)
        assert self.rate is not None
        return max(1, size * 8 * 10**9 // int(self.rate))


class StreamSpec(OneWay, Paced):
    """Sends messages at a steady pace; the delay of each is measured at the receiver."""

    message: Size
    """The size of a message."""


class UdpSpec(Paced):
    """Sends UDP packets at a steady pace; loss, delay and jitter are measured at the receiver."""

    packet: Packet
    """What a packet carries, without headers (IPv4: 28 bytes)."""
    back: bool = False
    """From the first packet that arrives on, the receiver sends as well: as many packets of the same size, at the same
    pace, to where that packet came from. So a router that translates lets them in."""


class RequestSpec(ConnectionSpec, Lasting):
    """Asks, and is answered, again and again over one connection; the time to each answer is measured."""

    answers: ClassVar[bool] = True
    request: RequestSize = RequestSize(100)
    """The size of a request."""
    response: Size
    """The size of an answer."""
    requests: Annotated[Whole, Field(ge=1, le=10**6)] | None = None
    """So many requests. Instead of a duration."""
    think: PauseLength | None = None
    """The pause between an answer and the next request. Default: none."""
    every: PauseLength | None = None
    """The time between requests, whether answers have come or not."""

    def _has_other_end(self) -> bool:
        return self.requests is not None

    def _ends(self) -> str:
        return "it ends after so many requests, after a duration, or at a time (stop)"

    @model_validator(mode="after")
    def _one_loop(self) -> RequestSpec:
        if self.requests is not None and (self.duration is not None or self.stop is not None):
            raise ValueError(f"{self._ends()}; give exactly one of them, for example duration: 10s")
        if self.think is not None and self.every is not None:
            raise ValueError("think is for who waits for answers, every for who does not; give one of them")
        return self


class OnOffSpec(OneWay, Lasting):
    """Sends for a while, is silent for a while, and so on."""

    on: PauseLength
    """How long it sends each time."""
    off: PauseLength
    """How long it is silent each time."""
    rate: Rate | None = None
    """While it sends. Default: as fast as it can."""
    message: Size | None = None
    """The size of a message, with a rate. Default: 1000 bytes."""

    @model_validator(mode="after")
    def _paced(self) -> OnOffSpec:
        if self.message is not None and self.rate is None:
            raise ValueError("messages need a rate; give one, or leave the message out")
        return self


def _objects(value: object) -> object:
    """`10x 20KB` among the sizes are ten objects."""
    if not isinstance(value, (list, tuple)):
        return value
    sizes: list[object] = []
    for entry in value:
        repeated = re.fullmatch(r"\s*(\d{1,4})\s*x\s+(.+)", entry) if isinstance(entry, str) else None
        sizes += [repeated[2]] * int(repeated[1]) if repeated else [entry]
    return sizes


class PageSpec(ConnectionSpec):
    """Loads a document, then the other objects of a page over parallel connections; the total time is measured."""

    answers: ClassVar[bool] = True
    objects: Annotated[
        list[Size],
        Field(min_length=1, max_length=MAX_OBJECTS),
        BeforeValidator(_objects, json_schema_input_type=list[str]),
    ]
    """Their sizes, the document first: `[50KB, 10x 20KB]`."""
    connections: Annotated[Whole, Field(ge=1, le=64)] = 6
    """So many at once; 1 loads one object after the other."""
    request: RequestSize = RequestSize(400)
    """The size of a request for an object."""


Kind = Literal["bulk", "transfer", "stream", "request", "on_off", "page", "udp"]


class Traffic(Part):
    """One entry of the traffic: exactly one of its fields."""

    bulk: BulkSpec | None = None
    transfer: TransferSpec | None = None
    stream: StreamSpec | None = None
    request: RequestSpec | None = None
    on_off: OnOffSpec | None = None
    page: PageSpec | None = None
    udp: UdpSpec | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_kind(cls, value: Any) -> Any:
        if isinstance(value, dict):
            given = [name for name in cls.model_fields if value.get(name) is not None]
            if len(given) > 1 or (not given and set(value) <= set(cls.model_fields)):
                kinds = [f"{name}: {{..}}" for name in cls.model_fields]
                raise ValueError(
                    f"an entry of the traffic is one thing; write {', '.join(kinds[:-1])} or {kinds[-1]}"
                )
        return value

    @property
    def kind(self) -> Kind:
        """The name of the field that is given."""
        kinds: tuple[Kind, ...] = get_args(Kind)
        return next(kind for kind in kinds if getattr(self, kind) is not None)

    @property
    def flow(self) -> FlowSpec:
        """The field that is given."""
        spec: FlowSpec = getattr(self, self.kind)
        return spec


class MeasureSpec(Part):
    """The part of each flow over which its steady goodput is measured."""

    from_: FlowMoment = Field(default=FlowMoment(Duration(0)), alias="from")
    """`5s`: so long after the flow's start."""
    to: FlowMoment = FlowMoment(Duration(0), before_end=True)
    """`-1s`: so long before the flow's end."""

    @model_validator(mode="after")
    def _check_order(self) -> MeasureSpec:
        same_side = self.from_.before_end == self.to.before_end
        later = (
            self.from_.offset > self.to.offset if self.to.before_end else self.from_.offset < self.to.offset
        )
        if same_side and not later:
            raise ValueError("the window ends before it begins; let to be later than from")
        return self
