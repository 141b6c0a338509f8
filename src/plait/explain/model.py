"""The records that `plait explain --json` prints. They are a contract: scripts depend on them."""

from __future__ import annotations

from textwrap import fill
from typing import Literal

from markupsafe import Markup
from pydantic import Field

from plait.parts import Part


def share_links(capacity_bps: float | None, together_bps: float | None) -> bool:
    """Return whether a link that paths share lets them carry less at once than the sum of what each carries alone."""
    return capacity_bps is not None and together_bps is not None and together_bps < (1 - 1e-9) * capacity_bps


class Share(Part):
    """One cause: its share of the time, and its cost."""

    cause: str
    time: float
    """Share of the flow's or path's time, or of the messages, 0 to 1; the shares add up to 1."""
    cost_bps: float | None = None
    """Goodput that this time lacks at the rate of the links; null: a path has no rate, or the basis is messages."""
    where: tuple[str, ...] = ()
    """The link directions, paths or hosts that the cause affects, the most affected first."""
    reason: str | None = None
    """For `subflow-never` and `subflow-late`: a key of `reasons.REASON_TEXTS` or `reasons.LATE_TEXTS`.

    Of `head-of-line`: `queues` if the paths differ by their queues only. Of `receive-window` and `send-buffer`:
    `autotuning` if the kernel kept the buffer below its maximum; `window-scaling` if that is off."""
    since_us: int | None = None
    """The start of the first slice with this cause."""
    evidence: tuple[str, ...] = ()
    """The evidence, one sentence each."""


class PathAccount(Part):
    """Goodput and capacity of one path, and the causes that took its time."""

    path: str
    subflows: tuple[int, ...] = ()
    backup: bool = False
    """It carries data only while no other path works, and is no part of the flow's capacity."""
    goodput_bps: float | None
    """Payload that its subflows delivered, averaged over the flow's time; null if neither side counted it."""
    capacity_bps: float | None
    """Payload rate of its slowest link; null if no link has a rate."""
    shares: tuple[Share, ...]


class KernelTimes(Part):
    """The kernel's accounting (tcp_info), summed over the sender's subflows and their lifetimes, in us."""

    lifetime_us: int
    busy_us: int
    rwnd_limited_us: int
    sndbuf_limited_us: int


class Delivery(Part):
    """The fate of the messages of a stream, requests, a page or UDP; percentiles as in summary.json."""

    kind: str
    """The kind of traffic whose metrics the flow has."""
    metric: str
    """The primary metric of this kind of traffic."""
    messages: int
    lost: int
    late: int
    """Messages that took more than 1.5 times as long as the network alone takes, and more than 10 ms longer."""
    p50_us: float | None
    p95_us: float | None
    max_us: float | None
    jitter_us: float | None = None
    """Jitter of UDP packets."""
    load_us: float | None = None
    """Load time of a page, from its first connect() until its last object arrived."""
    base_us: float
    """Median of the time that the network alone takes at most for a message."""
    base_max_us: float | None = None
    """The longest of these times."""
    asked_bps: float | None
    """The rate that the source offers while it sends; null if it waits for responses."""
    kept_pace: bool
    """False: it offers more than the paths carried, and its messages waited longer and longer."""


class Moment(Part):
    """A time to mark in figures."""

    t_us: int
    cause: str
    text: str


Verdict = Literal["faster", "slower", "no effect seen", "not measured"]


class Effect(Part):
    """The effect of one change on the primary metric of one flow."""

    what: str
    fields: tuple[str, ...]
    """The changed fields in the form of `--set`."""
    cause: str | None
    """The cause that the change should remove; null for a what-if."""
    pairs: int
    """Seeds with which both trials completed."""
    metric: str = "goodput_bps"
    before: float | None = None
    """Mean of the metric in its unit; the fields that end in `_bps` are the same for goodput."""
    after: float | None = None
    before_bps: float | None
    after_bps: float | None
    difference_bps: float | None = None
    ci95: tuple[float, float] | None = None
    """Interval of the mean difference over pairs; null with one pair, or if all pairs differ by the same amount."""
    spread_bps: float | None = None
    """The greater of the standard deviations over seeds, before and after."""
    verdict: Verdict
    sentence: str
    then: str | None = None
    """The first named cause of the changed flow, in the first of its trials."""


class FlowExplanation(Part):
    """The explanation of one flow: its goodput, its capacity and the causes between them."""

    flow: str
    flow_id: int
    transport: str
    background: bool = False
    """The flow does not count in the trial's metrics: as the scenario says, or a small connection of a program."""
    start_us: int
    end_us: int
    completed: bool
    goodput_bps: float | None
    capacity_bps: float | None
    """Sum of the capacities of its paths, each alone, without backups; null if a path has no rate."""
    together_bps: float | None = None
    """What these paths carry at once: less than `capacity_bps` if a link that they share is the limit."""
    first: str | None
    """The most costly named cause; null if none is large enough to be named."""
    named: tuple[str, ...]
    """All causes that are large enough to be named, the most costly first, without the refuted ones."""
    refuted: tuple[str, ...] = ()
    """Causes that would be named, but `--verify` removed them and the flow did not become faster."""
    shares: tuple[Share, ...]
    """The most costly first, and a link that the paths share after these; their times add up to 1."""
    basis: Literal["time", "messages"] = "time"
    """Whether `time` of a share is a share of the flow's time or of its messages."""
    delivery: Delivery | None = None
    """The delivery of messages of streams, requests, pages and UDP; null for a flow that sends as fast as possible."""
    paths: tuple[PathAccount, ...]
    kernel: KernelTimes | None
    moments: tuple[Moment, ...] = ()
    sentences: tuple[str, ...] = ()
    """The explanation in sentences."""
    tried: tuple[Effect, ...] = ()
    """The effects that `--verify` and `--what-if` measured."""
    untried: tuple[str, ...] = ()
    """Sentences about what `--verify` did not try, and why."""

    @property
    def attainable_bps(self) -> float | None:
        """What the links allow the flow: the capacity of its paths at once; None if a path has no rate."""
        return self.capacity_bps if self.together_bps is None else self.together_bps

    @property
    def shares_links(self) -> bool:
        """Whether a link that its paths share lets them carry less at once than the sum of what each carries alone."""
        return share_links(self.capacity_bps, self.together_bps)

    @property
    def primary_metric(self) -> tuple[str, float | None]:
        """The primary metric of the flow and its value."""
        delivery = self.delivery
        if self.basis == "time" or delivery is None:
            return "goodput_bps", self.goodput_bps
        if delivery.load_us is not None:
            return delivery.metric, delivery.load_us / 1e6
        lost = delivery.lost / delivery.messages
        return delivery.metric, lost if self.transport == "udp" else delivery.p95_us


class TrialExplanation(Part):
    """All flows of one trial."""

    case: str
    trial: int
    seed: int
    flows: tuple[FlowExplanation, ...]
    agree: int | None = None
    """Number of examined trials whose first flow has the same main cause, including this trial."""
    trials: int | None = None
    """Number of examined trials of the case."""
    sampled_flows: tuple[int, int] | None = None
    """How many flows have samples, of how many; null: all. The others have no explanation."""

    @property
    def unsampled(self) -> tuple[str, ...]:
        """Say that some flows have no samples; empty if all have."""
        of = self.sampled_flows
        return () if of is None else (f"{of[0]} of {of[1]} flows sampled; the others have no explanation.",)


class StudyExplanation(Part):
    """The document that `plait explain --json` prints."""

    schema_version: Literal[2] = Field(default=2, alias="schema")
    scenario: str
    cases: tuple[TrialExplanation, ...]
    failed: tuple[str, ...] = ()
    """Failed trials, which cannot be explained, with their reasons."""

    def __str__(self) -> str:
        """Return the sentences of each flow as text of 80 columns, case by case."""
        lines = []
        for case in self.cases:
            lines += [case.case] if len(self.cases) > 1 else []
            for flow in case.flows:
                sentences = " ".join(flow.sentences)
                lines.append(fill(sentences, 80, subsequent_indent="  "))
            lines += case.unsampled
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the sentences of each flow, case by case."""
        return Markup().join(
            Markup("<h4>{}</h4>").format(case.case)
            + Markup().join(
                Markup("<p><b>{}</b>: {}</p>").format(flow.flow, " ".join(flow.sentences))
                for flow in case.flows
            )
            + Markup().join(Markup("<p>{}</p>").format(text) for text in case.unsampled)
            for case in self.cases
        )
