"""What the two sides of a flow do with their sockets: one closed record for each kind of application.

These records are part of the plan's contract (`plan.py`). A
*message* is what has a row in the table `messages`: a message of a stream, the answer to a request, an object of a
page, or a UDP packet.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from plait.parts import U64, Count, Micros, Record, Span

Transport = Literal["tcp", "mptcp", "udp", "prototype"]
"""The protocol of a flow's sockets; `prototype` is the transport of `plait.prototype`, over UDP."""
StreamTransport = Literal["tcp", "mptcp"]
Loop = Literal["closed", "open"]
Coupling = Literal["none", "lia", "olia"]
MAX_MESSAGES = 2_000_000
"""The limit for one trial. plait refuses a scenario with more; it never samples them."""


class File(Record):
    """A real file to transfer. The engine puts it into the trial's folder as `input/NAME`."""

    name: str
    bytes: Count
    sha256: str


class Gap(Record):
    """A period that recurs: always `mean_us` long, or exponentially distributed with this mean, drawn from the seed."""

    mean_us: Span
    exponential: bool = False


class Bulk(Record):
    """The sender writes as fast as it can for `duration_us`; goodput counts exactly this time.

    Without a duration it ends when every flow that has an end of its own has ended.
    """

    kind: Literal["bulk"] = "bulk"
    duration_us: Span | None


class First(Record):
    """The sender writes `bytes`, is silent for `pause_us`, and then writes the rest."""

    bytes: Count
    pause_us: Span


class Transfer(Record):
    """A transfer of `bytes` application bytes, those of the file if there is one.

    It is complete when the receiver has read the last byte.
    """

    kind: Literal["transfer"] = "transfer"
    bytes: Count
    file: File | None = None
    first: First | None = None


class Stream(Record):
    """Messages at a constant rate: message i is due i * `interval_ns` after the connection is established.

    A message that finds the socket's buffer full is late, and delays those behind it; the sender skips none.
    The stream is complete when the receiver has read the last message.
    """

    kind: Literal["stream"] = "stream"
    message_bytes: Count
    interval_ns: Span
    count: Count


class OnOff(Record):
    """The sender alternates between writing and silence, for `duration_us` from the connection on.

    With `message_bytes` and `interval_ns` it writes messages at that rate while it is on, otherwise as fast as
    it can.
    """

    kind: Literal["on_off"] = "on_off"
    on: Gap
    off: Gap
    duration_us: Span
    message_bytes: Count | None = None
    interval_ns: Span | None = None
    seed: U64 = 0


class Request(Record):
    """The receiver of the answers sends requests on one connection, and the other side answers each at once.

    `loop` closed: a request waits for the previous answer and then for the gap (None: no pause). `loop` open:
    requests are due one gap apart, whether answers have arrived or not. The flow ends with request number
    `count`, or with the last request due within `duration_us`. The first 8 bytes of every request hold the size
    of its answer.
    """

    kind: Literal["request"] = "request"
    request_bytes: int = Field(ge=8, lt=2**53)
    response_bytes: Count
    loop: Loop
    gap: Gap | None = None
    count: Count | None = None
    duration_us: Span | None = None
    seed: U64 = 0


class Page(Record):
    """The first connection of a page: it requests object 0, the document, then other objects.

    It requests only objects that no connection has requested yet.
    """

    kind: Literal["page"] = "page"
    request_bytes: int = Field(ge=8, lt=2**53)
    objects: tuple[Count, ...] = Field(min_length=1)


class PageConnection(Record):
    """A further connection of a page. It opens when the document has arrived, and requests remaining objects."""

    kind: Literal["page_connection"] = "page_connection"
    page: int = Field(ge=0)
    """The flow that is the page's first connection."""


class Udp(Record):
    """UDP packets at a constant rate: packet i leaves at the flow's start + i * `interval_ns`.

    A flow that uses the sockets of another flow (`connection`) starts when the first packet of that flow has
    arrived, and sends to the source of that packet; it fails when none arrives. The first 8 bytes of each
    packet hold its number. The flow is complete when all packets have arrived, or `drain_us` after the last
    interval: packets that have not arrived by then are lost.
    """

    kind: Literal["udp"] = "udp"
    packet_bytes: int = Field(ge=8, le=65507)
    interval_ns: Span
    count: Count
    drain_us: Micros


class Prototype(Record):
    """A connection of the multipath transport of `plait.prototype`, which one program runs over UDP.

    It sends `bytes`, or for `duration_us`, or `count` messages: one every `interval_us`, or each when the receiver
    has acknowledged the one before.
    """

    kind: Literal["prototype"] = "prototype"
    scheduler: str
    """A scheduler that plait ships, or `FILE:CLASS` of `source`."""
    source: str | None = None
    """The content of the scheduler's file."""
    coupling: Coupling
    receive_window_bytes: Count
    duration_us: Span | None = None
    bytes: Count | None = None
    message_bytes: Count | None = None
    interval_us: Span | None = None
    count: Count | None = None
    seed: U64 = 0

    @property
    def measured_as(self) -> str:
        """Return the kind of flow whose metrics it has."""
        if self.message_bytes is not None:
            return "stream"
        return "bulk" if self.bytes is None else "transfer"


class Connection(Record):
    """What programs send over a connection of their own. No plan contains it: the analysis adds what it observes."""

    kind: Literal["program"] = "program"
    program: str | None
    """The program that connected; None: unknown."""
    server_program: str | None


Application = Annotated[
    Bulk | Transfer | Stream | OnOff | Request | Page | PageConnection | Udp | Prototype | Connection,
    Field(discriminator="kind"),
]


class SocketOptions(Record):
    """The options of both sockets of a flow. None: the kernel's default, or the namespace's setting."""

    scheduler: str | None = None
    """MPTCP only. There is no socket option: the namespace has this setting while the socket is created."""
    congestion_control: str | None = None
    send_buffer: U64 | None = None
    receive_buffer: U64 | None = None
    """SO_SNDBUF and SO_RCVBUF in bytes, as passed to setsockopt."""
    mark: int | None = Field(default=None, ge=1, lt=2**32)
    """SO_MARK."""
    dscp: int | None = Field(default=None, ge=0, le=63)
    """The upper six bits of IP_TOS or IPV6_TCLASS."""
    nodelay: bool = False
    """TCP_NODELAY."""
    notsent_lowat: int | None = Field(default=None, ge=1, lt=2**32)
    """TCP_NOTSENT_LOWAT in bytes."""
    mss: int | None = Field(default=None, ge=88, le=32767)
    """TCP_MAXSEG in bytes; TCP only."""
