"""The case of a hunt: links, endpoints, connections and events between two hosts, as a file that repeats it.

Hosts `client` and `server` share every link. Link 0 carries the initial subflow of every connection.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from plait.errors import DataError
from plait.files import Folder
from plait.scenario.read.document import Refused, read, written
from plait.testing.hunt.kinds import KINDS

Side = Literal["client", "server"]
_Name = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,15}$")]
_Moment = Annotated[int, Field(ge=0, le=60_000)]
_Number = Annotated[int, Field(ge=0, le=7)]
MOST_EVENTS = 64


class _HuntPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HuntLink(_HuntPart):
    """A link, alike in both directions."""

    rate_mbit: int = Field(ge=1, le=1000)
    delay_ms: int = Field(ge=0, le=500)
    loss_percent: int = Field(default=0, ge=0, le=3)
    queue_packets: int = Field(default=100, ge=4, le=10_000)
    mtu: int = Field(default=1500, ge=576, le=9000)
    endpoint: Literal["subflow", "subflow fullmesh", "subflow backup", "subflow signal", "none"] = "subflow"
    """The client's endpoint; link 0 has none."""
    signal: bool = False
    """Whether the server announces its address."""
    own_port: bool = False
    """The server announces a port of its own there. With IPv6 and timestamps Linux has no space for that."""


class HuntConnection(_HuntPart):
    """A connection that the client opens. A side ends its stream once it has sent and received all, unless it holds."""

    start_ms: _Moment = 0
    up_bytes: int = Field(default=0, ge=0, le=20_000_000)
    down_bytes: int = Field(default=0, ge=0, le=20_000_000)
    early_end: bool = False
    """A side ends its stream as soon as it has sent its bytes."""
    hold: bool = False
    """Both sides keep their streams open until the end of the case, unless an event ends them."""
    read_every_ms: int = Field(default=0, ge=0, le=1000)
    """A side reads at most 64 KiB in this time, so that its window closes; 0: it reads at once."""
    write_bytes: int = Field(default=0, ge=0, le=65_521)
    """Size of each write of a side, sent without waiting for more (TCP_NODELAY); 0: all that the socket takes."""
    write_every_ms: int = Field(default=0, ge=0, le=1000)
    """The time between two writes; 0: as soon as the socket takes bytes."""
    fast_open: bool = False
    """The client's SYN has data (TCP Fast Open without a cookie)."""
    writes_at_once: bool = False
    """With `fast_open`, the server writes before the handshake has ended. Never drawn: Linux sends these bytes only
    with later ones, so the connection stands still."""
    read_by: Literal["recv", "peek", "peek_all", "splice"] = "recv"
    """How a side reads. It looks at bytes before it receives them: at what there is, or for 10 ms (MSG_WAITALL).

    `peek_all` is never drawn: Linux 6.12.117 then spins for ever in recv(), and a guest's time stands still."""


class HuntEvent(_HuntPart):
    """Something that happens; `connection`, `link` and `side` say to what."""

    at_ms: _Moment
    do: Annotated[str, Field(pattern=f"^({'|'.join(KINDS)})$")]
    connection: _Number = 0
    side: Side = "client"
    link: _Number = 0
    """The link of the subflow to destroy, of the endpoint or of the middlebox, or the link that goes down."""
    for_ms: Annotated[int, Field(ge=0, le=3000)] = 0
    """How long an event lasts, if its kind does."""


class HuntCase(_HuntPart):
    """The network, connections and events of one guest."""

    hunt: Literal[1] = 1
    """The version of the format."""
    seed: int = Field(default=1, ge=0, le=2**31)
    """The seed of the guest's random numbers."""
    scheduler: _Name = "default"
    congestion_control: _Name = "cubic"
    receive_buffer: int = Field(default=6 << 20, ge=4096, le=64 << 20)
    send_buffer: int = Field(default=4 << 20, ge=16_384, le=64 << 20)
    ipv6: bool = False
    checksums: bool = False
    """Both hosts ask for DSS checksums."""
    user_paths: bool = False
    """The client's path manager is in user space (this program), instead of the kernel's."""
    most_subflows: int = Field(default=8, ge=0, le=8)
    """The limit of subflows of both hosts' path managers."""
    links: tuple[HuntLink, ...] = Field(min_length=1, max_length=4)
    connections: tuple[HuntConnection, ...] = Field(min_length=1, max_length=8)
    events: tuple[HuntEvent, ...] = Field(default=(), max_length=MOST_EVENTS)

    @model_validator(mode="after")
    def _refers_to_what_is_there(self) -> HuntCase:
        for event in self.events:
            if event.link >= len(self.links) or event.connection >= len(self.connections):
                raise ValueError(
                    f"the event at {event.at_ms} ms refers to a link or connection that is not there"
                )
        if self.ipv6 and any(link.mtu < 1280 for link in self.links):
            raise ValueError("a link with IPv6 has an MTU of at least 1280 bytes")
        return self


def as_text(case: HuntCase, comment: str = "") -> str:
    """Return the case as YAML without defaults, below lines of comment."""
    text = written({"hunt": 1, **case.model_dump(mode="json", exclude_defaults=True)}, short_lists=True)
    return "".join(f"# {line}\n" for line in comment.splitlines()) + text


def load_case(path: Path) -> HuntCase:
    """Return the case in a file (DataError if it has none)."""
    try:
        text = Folder(path.resolve().parent).read(path.name, 1 << 16).decode()
        return HuntCase.model_validate(read(text).value)
    except OSError as error:
        raise DataError(f"reading {path}: {error.strerror}; name a file that `plait hunt` wrote") from error
    except UnicodeDecodeError as error:
        raise DataError(f"reading {path}: it is no text; name a file that `plait hunt` wrote") from error
    except Refused as error:
        raise DataError(f"reading {path}: {error}; name a file that `plait hunt` wrote") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise DataError(f"reading {path}: {place}: {first['msg']}; correct the file") from error
