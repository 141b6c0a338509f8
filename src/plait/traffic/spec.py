"""The fields that entries of the traffic share: of all kinds, of connections, of those with a duration or a pace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

from pydantic import BeforeValidator, Field, model_validator

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
from plait.traffic.gaps import Period
from plait.traffic.job import FlowJob
from plait.units import Duration, Rate, Size, Within

REQUEST_LEAST = 8
"""Bytes of a request's header, which holds the size of the response, and of a packet's sequence number."""
MAX_USERS = 256


class _InputFacts(Protocol):
    """A file of this machine that was read for the scenario."""

    @property
    def name(self) -> str:
        """Its name in the trial's folder."""

    @property
    def bytes(self) -> int:
        """Its size."""

    @property
    def sha256(self) -> str:
        """Its digest."""

    @property
    def text(self) -> str | None:
        """Its text, if plait read it."""


@dataclass(frozen=True)
class SlotFacts:
    """The context of a job, besides its entry of the traffic."""

    part: int
    """0; from 1 on, related flows (see `FlowSpec.parts`)."""
    first: int
    """The flow that is part 0 of the same."""
    start_us: int
    seed: int
    """Drawn from the trial's for this flow alone."""
    files: Mapping[str, _InputFacts]
    receive_buffer_max: int
    """The largest receive buffer of the scenario's hosts in bytes."""


RequestSize = Annotated[Size, Within(least=REQUEST_LEAST)]
"""Size of a request."""

Unsent = Annotated[Size, Within(least=1, most=2**31 - 1)]
"""A limit of unsent bytes in a socket."""


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
    start: Start = Duration(0)
    """Start time after the network is complete; with `after`, after the end of that flow."""
    start_jitter: StartJitter = Duration(10_000_000)
    """Upper bound of a random start delay, which the seed of each trial determines, so that repeats differ."""
    after: str | None = None
    """Name of an entry above, or of one of its flows, whose end starts this flow."""
    rounds: Annotated[Whole, Field(ge=1, le=1000)] = 1
    """Number of times that the flow runs within a trial, one after the other."""
    round_gap: Start = Duration(0)
    """Time from the end of a round to the start of the next."""
    count: Annotated[Whole, Field(ge=1, le=256)] = 1
    """Number of equal parallel flows."""
    users: Annotated[Whole, Field(ge=1, le=MAX_USERS)] | None = None
    """Number of users, each with such a flow; their names user1, user2, .. continue throughout the scenario."""
    spread: Start = Duration(0)
    """Time over which the starts of users, or of `count` flows, are evenly spread."""
    background: bool = False
    """Whether the flow is background traffic, which the study's totals exclude."""
    group: Annotated[str, Field(max_length=40, pattern=GROUP)] | None = None
    """Group of flows; the report lists the mean goodput of each group's flows."""
    via: str | None = None
    """Initial path: a link of the connecting host, or the address to connect to. Default: the first."""
    paths: Annotated[list[list[str]], Field(max_length=9), BeforeValidator(_paths)] = []
    """Explicit paths as lists of nodes from `from` to `to`: the first for the initial subflow, the others for further
    subflows. The name of a link may be between two nodes."""
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
    SMALLEST: ClassVar[dict[str, Any]] = {}
    """The required fields of the kind, besides its ends, with small values."""

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

    @property
    def parts(self) -> int:
        """Number of flows of the plan for one flow of the entry: 2 with the other direction of its connection."""
        return 1

    @property
    def parts_share_connection(self) -> bool:
        """Whether its second part is the other direction of its connection."""
        return True

    def part_suffix(self, part: int) -> str:
        """Return the end of the name of part `part`, from 1."""
        del part
        return ".back"

    def transport_of(self, copy: int, default: str) -> str:
        """Return the transport of the flow with this index among parallel ones; `default` is the scenario's."""
        raise NotImplementedError

    def input_files(self) -> Iterator[tuple[str, str]]:
        """Yield the fields that name files of this machine, with their paths."""
        yield from ()

    def nat_remedy(self, server: str, client: str) -> str:
        """Return what lets data pass a router that translates the addresses of `server`."""
        if self.answers:
            return f"let {server} send the requests (from: {server}, to: {client})"
        return "invert reverse, so that the other side connects"

    def job(self, slot: SlotFacts) -> FlowJob:
        """Return what the flow of `slot` does. Raise FieldMistakesError for a useless file."""
        raise NotImplementedError


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

    def transport_of(self, copy: int, default: str) -> str:
        """Return its own transport, the one of its turn, or the scenario's."""
        return self.transports[copy % len(self.transports)] or default


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

    def messages_due(self, interval_ns: int, start_us: int) -> int:
        """Return the number of messages that begin within the duration."""
        lasts_us = self.duration_us(start_us)
        assert lasts_us is not None  # only a bulk flow may have none
        return -(-lasts_us * 1000 // interval_ns)
