"""What the two sides of a flow do with their sockets: a closed record for each kind of application.

Part of the plan's contract (`model.py`); `agent/src/plan/applications.rs` reads the same. A *message* is what has a
row in the table `messages`: a message of a stream, an answer to a request, an object of a page, a UDP packet.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from plait.plan.model.record import Count, Micros, Record

MAX_MESSAGES = 2_000_000
"""Of one trial. What would have more is refused, never thinned out."""


class File(Record):
    """A real file to transfer: the engine puts it into the trial's folder as `input/NAME`."""

    name: str
    bytes: int = Field(ge=1)
    sha256: str


class Gap(Record):
    """How long something lasts each time: always `mean_us`, or exponentially distributed about it, by the seed."""

    mean_us: Count
    exponential: bool = False


class Bulk(Record):
    """The sender writes as fast as it can for `duration_us`; goodput is counted over exactly this time.

    Without a duration it ends when every flow has ended that has an end of its own.
    """

    kind: Literal["bulk"] = "bulk"
    duration_us: Count | None


class First(Record):
    """The sender writes so many bytes, is silent for `pause_us`, and then writes the rest."""

    bytes: Count
    pause_us: Count


class Transfer(Record):
    """So many application bytes, those of the file when there is one; complete when the receiver has read the last."""

    kind: Literal["transfer"] = "transfer"
    bytes: Count
    file: File | None = None
    first: First | None = None


class Stream(Record):
    """Messages at a steady pace: message i is due i * `interval_ns` after the connection is established.

    A message that finds its socket full is late, and so are those behind it; none is left out. Complete when the
    receiver has read the last.
    """

    kind: Literal["stream"] = "stream"
    message_bytes: Count
    interval_ns: Count
    count: Count


class OnOff(Record):
    """The sender writes for a time, is silent for a time, and so on, for `duration_us` from the connection on.

    With `message_bytes` and `interval_ns` it writes messages at that pace while it is on, else as fast as it can.
    """

    kind: Literal["on_off"] = "on_off"
    on: Gap
    off: Gap
    duration_us: Count
    message_bytes: Count | None = None
    interval_ns: Count | None = None
    seed: int = Field(default=0, ge=0, lt=2**53)


class Request(Record):
    """The receiver of the answers asks, again and again on one connection, and the other side answers at once.

    `loop` closed: each request waits for the answer to the one before, and then for the gap (none: no pause).
    `loop` open: requests are due a gap apart, whether answers have come or not. It ends with `count` requests, or with
    the first that would be after `duration_us`. Every request begins with the size of its answer, in 8 bytes.
    """

    kind: Literal["request"] = "request"
    request_bytes: int = Field(ge=8)
    response_bytes: Count
    loop: Literal["closed", "open"]
    gap: Gap | None = None
    count: Count | None = None
    duration_us: Count | None = None
    seed: int = Field(default=0, ge=0, lt=2**53)


class Page(Record):
    """The first connection of a page: it asks for object 0, the document, then for what is not asked for yet."""

    kind: Literal["page"] = "page"
    request_bytes: int = Field(ge=8)
    objects: tuple[Count, ...] = Field(min_length=1)


class PageConnection(Record):
    """A further connection of a page: opened when the document has arrived, it asks for what is not asked for yet."""

    kind: Literal["page_connection"] = "page_connection"
    page: int = Field(ge=0)
    """The flow that is the page's first connection."""


class Udp(Record):
    """UDP packets at a steady pace: packet i leaves at the flow's start + i * `interval_ns`.

    A flow that uses the sockets of another one (`connection`) starts when the first packet of that has arrived, and
    sends to where it came from; when none arrives it fails.
    Each begins with its number, in 8 bytes. Complete when all have arrived, or `drain_us` after the last interval:
    what has not arrived by then is lost.
    """

    kind: Literal["udp"] = "udp"
    packet_bytes: int = Field(ge=8, le=65507)
    interval_ns: Count
    count: Count
    drain_us: Micros


class Connection(Record):
    """What programs send over a connection of their own. Never planned: the analysis adds what it sees."""

    kind: Literal["program"] = "program"
    program: str | None
    """The one that connected; None: not known."""
    server_program: str | None


Application = Annotated[
    Bulk | Transfer | Stream | OnOff | Request | Page | PageConnection | Udp | Connection,
    Field(discriminator="kind"),
]


class SocketOptions(Record):
    """What a flow asks of both its sockets. None: the kernel's own choice, or the namespace's settings decide."""

    scheduler: str | None = None
    """Of MPTCP only. There is no socket option: the namespace's setting is this one while the socket is made."""
    congestion_control: str | None = None
    send_buffer: int | None = None
    receive_buffer: int | None = None
    """SO_SNDBUF, SO_RCVBUF in bytes as passed to setsockopt."""
    mark: int | None = Field(default=None, ge=1, lt=2**32)
    """SO_MARK."""
    dscp: int | None = Field(default=None, ge=0, le=63)
    """The upper six bits of IP_TOS or IPV6_TCLASS."""
    nodelay: bool = False
    """TCP_NODELAY."""
    notsent_lowat: int | None = Field(default=None, ge=1)
    """TCP_NOTSENT_LOWAT in bytes."""
    mss: int | None = Field(default=None, ge=88, le=32767)
    """TCP_MAXSEG in bytes; of TCP only."""
