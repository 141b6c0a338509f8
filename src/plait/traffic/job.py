"""The interface of a job in a plan, with the defaults that most kinds of traffic use.

A job is what the two sides of a flow do with their sockets; each kind has a record of its own. A *message* is what
has a row in the table `messages`: a message of a stream, the answer to a request, an object of a page, or a UDP
packet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, Protocol, Self

from plait.parts import Record

PATIENCE_US = 60_000_000
"""Added to the expected duration of a job before the trial ends."""
UNLIMITED_BPS = 10_000_000_000
"""The rate of a flow that no link limits."""


class _Way(Protocol):
    """A path of a flow, as far as jobs depend on it."""

    @property
    def base_rtt_us(self) -> float:
        """Round-trip time of empty links in us."""


class PlannedFlow(Protocol):
    """A flow of a plan, as far as jobs depend on it."""

    @property
    def paths(self) -> Sequence[_Way]:
        """The paths that the flow may use, the initial one first."""

    @property
    def ideal_rate_bps(self) -> int | None:
        """The rate that the links allow; None: no limit."""

    @property
    def connection(self) -> int | None:
        """The flow whose connection or sockets this one shares."""


Tool = tuple[Literal["iperf3", "netperf"], str]
"""A common program that does about the same as a job, with the options that say how much it sends."""


class FlowJob(Record):
    """The base of all jobs."""

    MEASURED_DELAY: ClassVar[str | None] = None
    """The start of the names of the metrics of its messages' delays, such as `message_delay`."""
    HEADLINE: ClassVar[str] = "goodput_bps"
    """The metric that a flow of this kind is about. `completion_s` needs `COMPLETES`."""
    NOUNS: ClassVar[tuple[str, str]] = ("messages", "Message delay")
    """The words of sentences for its messages, and for their delay."""
    GREEDY: ClassVar[bool] = False
    """Whether it always has data to send, so that the links limit its goodput."""
    COMPLETES: ClassVar[bool] = False
    """Whether it has an end that matters, so that it has a completion time."""
    PACED: ClassVar[bool] = False
    """Whether its messages are due at times that it sets itself, so that it can fall behind."""
    ANSWERS: ClassVar[bool] = False
    """Whether its data answer requests: the side that receives them knows when it asked."""

    @property
    def measured_as(self) -> str:
        """The kind of flow whose metrics it has."""
        kind: str = getattr(self, "kind")  # noqa: B009  # each kind declares it as a literal of its own
        return kind

    @property
    def input_files(self) -> tuple[str, ...]:
        """The names of the files in the trial's folder that it reads."""
        return ()

    @property
    def sends_ns(self) -> int | None:
        """For how long it offers data, in ns; None: until all data have arrived, or until the other flows end."""
        return None

    @property
    def ends_us(self) -> int | None:
        """How long after its start no packet of it is on the way, in us; None as for `sends_ns`."""
        return None if self.sends_ns is None else self.sends_ns // 1000

    @property
    def page_flow(self) -> int | None:
        """The id of the flow that this one continues; None for a job of its own."""
        return None

    @property
    def certain_bytes(self) -> int:
        """The bytes that it certainly sends."""
        return 0

    @property
    def certain_bps(self) -> float:
        """Its constant sending rate in bit/s; 0 if congestion control decides the rate."""
        return 0

    @property
    def offered_bps(self) -> float | None:
        """The rate at which messages are due, in bit/s; None if only the messages show it, or if it has none."""
        return None

    def messages(self, flow: PlannedFlow) -> int:
        """Return the maximum number of messages."""
        del flow
        return 0

    def longest_us(self, flow: PlannedFlow) -> int:
        """Return the longest duration in us: the expected one, and ample time for delays."""
        raise NotImplementedError

    def frames(self, flow: PlannedFlow, rate_bps: float, payload: int, frame: int) -> float:
        """Return about how many data frames it sends at `rate_bps`, with `payload` bytes in each `frame` bytes."""
        del flow, rate_bps, payload, frame
        return 0.0

    def unseeded(self) -> Self:
        """Return the job with seed 0 if it draws no random number."""
        return self

    def seeded_from(self, planned: Record) -> Record:
        """Return this job of a certain seed, with what the seed does not change from the job as planned."""
        del planned
        return self

    def by_hand(self, names: Sequence[str]) -> Iterator[str | Tool]:
        """Yield remarks and tools that approximate the job by hand; `names` are those of all flows by id."""
        del names
        yield from ()


def rate_bps(flow: PlannedFlow) -> float:
    """Return the rate to expect of a flow at worst, in bit/s."""
    return (flow.ideal_rate_bps or UNLIMITED_BPS) / 10


def largest_rtt_us(flow: PlannedFlow) -> float:
    """Return the largest base RTT of a flow's paths in us."""
    return max(path.base_rtt_us for path in flow.paths)
