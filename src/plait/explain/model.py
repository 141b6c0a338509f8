"""What an explanation says: the records that `plait explain --json` prints. A contract that scripts depend on."""

from __future__ import annotations

from html import escape
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from plait.explain.causes import Cause


class Record(BaseModel):
    """A closed, immutable record."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True)


class Share(Record):
    """One cause: its share of the time, and what it cost."""

    cause: Cause
    time: float
    """Share of the flow's time, 0 to 1; the shares of a flow, and of a path, add up to 1."""
    cost_bps: float | None = None
    """How much more goodput there would have been in this time at the rate of the links; null: no link has a rate."""
    where: tuple[str, ...] = ()
    """Link directions, paths or hosts that it is about, the most affected first."""
    reason: str | None = None
    """Of `subflow-never`: limit, no-endpoint, no-add-addr, no-route, join-refused, fallback, no-answer, mptcp-off."""
    since_us: int | None = None
    """When it was first seen."""
    evidence: tuple[str, ...] = ()
    """What says so, a sentence each."""


class PathAccount(Record):
    """What one path gave, of what it could have given, and where its time went."""

    path: str
    subflows: tuple[int, ...] = ()
    goodput_bps: float
    """Payload that subflows on it delivered, without what was sent again, over the flow's time."""
    capacity_bps: float | None
    """What the links of the path alone allow; null when they have no rate."""
    shares: tuple[Share, ...]


class KernelTimes(Record):
    """The kernel's own accounting, summed over the sender's subflows and their lives (tcp_info), in us."""

    lifetime_us: int
    busy_us: int
    rwnd_limited_us: int
    sndbuf_limited_us: int


class Delivery(Record):
    """What became of the messages of a flow that has a pace or asks for answers; percentiles as in summary.json."""

    metric: str
    """The metric that speaks for this kind of traffic."""
    messages: int
    lost: int
    late: int
    """They took half as long again as the network alone takes, and at least 10 ms more."""
    p50_us: float | None
    p95_us: float | None
    max_us: float | None
    jitter_us: float | None = None
    """Of UDP packets."""
    load_us: float | None = None
    """Of a page, from its first connect() until its last object was there."""
    base_us: float
    """What the network alone takes for a message, in the median."""
    asked_bps: float | None
    """What the source would send while it sends; null where it waits for answers."""
    kept_pace: bool
    """False: it sends more than was carried, and its messages waited ever longer."""


class Moment(Record):
    """Something to mark in a figure."""

    t_us: int
    cause: Cause
    text: str


Verdict = Literal["faster", "slower", "no effect seen", "not measured"]


class Effect(Record):
    """What one change did to one flow, by the metric that speaks for it."""

    what: str
    fields: tuple[str, ...]
    """As `--set` takes them."""
    cause: Cause | None
    """The cause that it was to take away; null for a what-if."""
    pairs: int
    """Seeds with which both completed."""
    metric: str = "goodput_bps"
    before: float | None = None
    """Of the metric, in its unit; the fields that end in `_bps` say the same of goodput."""
    after: float | None = None
    before_bps: float | None
    after_bps: float | None
    difference_bps: float | None = None
    ci95: tuple[float, float] | None = None
    """Of the mean difference over pairs; null with one pair, and when all pairs differ by the same."""
    spread_bps: float | None = None
    """The greater standard deviation over seeds, of before and after."""
    verdict: Verdict
    sentence: str
    then: Cause | None = None
    """What holds the changed flow back most, in the first of its trials."""


class FlowExplanation(Record):
    """Why one flow was as fast as it was."""

    flow: str
    flow_id: int
    transport: str
    background: bool = False
    """No part of the trial's figures: as the scenario says; of a program's connections, a small one."""
    start_us: int
    end_us: int
    completed: bool
    goodput_bps: float | None
    capacity_bps: float | None
    """What its paths could give together, each on its own; null when a path has no limit."""
    first: Cause | None
    """What held it back most; null when nothing did that is worth naming."""
    named: tuple[Cause, ...]
    """All causes worth naming, the dearest first."""
    shares: tuple[Share, ...]
    """The dearest first; their times add up to 1."""
    basis: Literal["time", "messages"] = "time"
    """What the shares are of: the flow's time, or its messages (those in time are `on-time`)."""
    delivery: Delivery | None = None
    """Of streams, requests, pages and UDP; null for what sends as fast as it can."""
    paths: tuple[PathAccount, ...]
    kernel: KernelTimes | None
    moments: tuple[Moment, ...] = ()
    sentences: tuple[str, ...] = ()
    """The paragraph."""
    tried: tuple[Effect, ...] = ()
    """What `--verify` and `--what-if` changed."""

    @property
    def primary_metric(self) -> tuple[str, float | None]:
        """The metric that speaks for the flow, and its value."""
        delivery = self.delivery
        if self.basis == "time" or delivery is None:
            return "goodput_bps", self.goodput_bps
        if delivery.load_us is not None:
            return delivery.metric, delivery.load_us / 1e6
        lost = delivery.lost / delivery.messages
        return delivery.metric, lost if self.transport == "udp" else delivery.p95_us


class TrialExplanation(Record):
    """All flows of one trial."""

    case: str
    trial: int
    seed: int
    flows: tuple[FlowExplanation, ...]
    agree: int | None = None
    """In how many completed trials of the case the first flow has the same cause first, this one included."""
    trials: int | None = None


class StudyExplanation(Record):
    """What `plait explain --json` prints."""

    schema_version: Literal[2] = Field(default=2, alias="schema")
    scenario: str
    cases: tuple[TrialExplanation, ...]
    failed: tuple[str, ...] = ()
    """Trials that failed and cannot be explained, with their reason."""

    def _repr_html_(self) -> str:
        """What a notebook shows: the paragraph of each flow, case by case."""
        return "".join(
            f"<h4>{escape(case.case)}</h4>"
            + "".join(
                f"<p><b>{escape(flow.flow)}</b>: {escape(' '.join(flow.sentences))}</p>"
                for flow in case.flows
            )
            for case in self.cases
        )
