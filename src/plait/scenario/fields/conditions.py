"""What a direction of a link can do to packets beyond rate and delay: jitter, loss, queue management, token buckets.

Each part has a short form, a plain quantity or a name, for what is meant most often.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from plait.scenario.fields.parts import Delay, Part, Whole
from plait.scenario.read.traces import TraceSpec
from plait.units import Packets, Queue, Rate, Ratio, Size

Distribution = Literal["uniform", "normal", "pareto", "paretonormal"]


TAIL = 23
"""By how many deviations the longest delay of a heavy-tailed distribution is above its mean."""


class Deviation(Delay):
    """A standard deviation."""

    most = 300 * 10**6


class JitterTime(Delay):
    """A spread of delays; netem keeps it in 31 bits of nanoseconds."""

    most = 2 * 10**9


class Jitter(Part):
    """By how much the delays of packets differ from `delay`, which is their mean."""

    within: JitterTime | None = None
    """Uniform within delay ± this."""
    deviation: Deviation | None = None
    """The standard deviation, for any distribution."""
    distribution: Distribution | None = None
    """Of a `deviation`. Default: normal."""
    reorder: bool = False
    """Whether a packet with a shorter delay may overtake one with a longer."""

    @model_validator(mode="after")
    def _one_measure(self) -> Jitter:
        if (self.within is None) == (self.deviation is None):
            raise ValueError(
                "jitter is either uniform within a time or has a standard deviation; write jitter: 5ms, or "
                "jitter: {deviation: 5ms, distribution: normal}"
            )
        if self.within is not None and self.distribution not in (None, "uniform"):
            raise ValueError(
                f"'within' says that the jitter is uniform, and not {self.distribution}; give its deviation instead"
            )
        return self

    def __str__(self) -> str:
        measure = f"{self.within}" if self.within is not None else f"{self.deviation} {self.named}"
        return f"{measure} with reordering" if self.reorder else measure

    @property
    def most_ns(self) -> int:
        """By how much a packet may be later than the mean."""
        return int(self.within or 0) + TAIL * int(self.deviation or 0)

    @property
    def named(self) -> Distribution:
        """The distribution."""
        return self.distribution or ("normal" if self.within is None else "uniform")


class GemodelSpec(Part):
    """The Gilbert-Elliott model with the parameters of `tc .. netem loss gemodel`."""

    p: Ratio
    """Of each packet: from the good state to the bad one."""
    r: Ratio
    """Of each packet: from the bad state back to the good one."""
    loss_bad: Annotated[Ratio, Field(alias="1-h")] = Ratio(1.0)
    """Loss in the bad state."""
    loss_good: Annotated[Ratio, Field(alias="1-k")] = Ratio(0.0)
    """Loss in the good state."""

    @model_validator(mode="after")
    def _moves(self) -> GemodelSpec:
        if not self.p + self.r:
            raise ValueError(
                "p and r are both 0%, so that the state never changes; give at least one of them"
            )
        return self

    def __str__(self) -> str:
        return f"gemodel {self.p} {self.r} {self.loss_bad} {self.loss_good}"

    @property
    def ratio(self) -> float:
        """The share of packets that are lost in the long run."""
        bad = self.p / (self.p + self.r)
        return bad * self.loss_bad + (1 - bad) * self.loss_good


class Loss(Part):
    """Random loss: of each packet on its own, or in bursts."""

    ratio: Ratio | None = None
    """The share of packets that are lost."""
    burst: Packets | None = None
    """So many packets in a row are lost on average. Default: each packet is lost or not on its own."""
    gemodel: GemodelSpec | None = None

    @model_validator(mode="after")
    def _one_model(self) -> Loss:
        if (self.ratio is None) == (self.gemodel is None):
            raise ValueError(
                "loss is either a ratio or a gemodel; write loss: 1%, loss: {ratio: 1%, burst: 4pkt}, or "
                "loss: {gemodel: {p: 1%, r: 25%}}"
            )
        if self.burst is not None and self.ratio is None:
            raise ValueError("the burst length of a gemodel is 1/r; leave 'burst' out")
        if self.burst is not None and self.ratio is not None:
            most = self.burst / (1 + self.burst)
            if self.ratio > most:
                raise ValueError(
                    f"bursts of {self.burst} with at least one packet between them lose at most {most * 100:.4g}% of "
                    "the packets; lower the ratio, or lengthen the bursts"
                )
        return self

    def __str__(self) -> str:
        if self.gemodel is not None:
            return str(self.gemodel)
        return str(self.ratio) if self.burst is None else f"{self.ratio} in bursts of {self.burst}"

    def as_gemodel(self) -> GemodelSpec | None:
        """The loss as a Gilbert-Elliott model; None when each packet is lost or not on its own.

        Every packet in the bad state is lost, and the state is left with probability r: bursts of 1/r packets on
        average, and a share p / (p + r) of packets lost.
        """
        if self.gemodel is not None or self.burst is None or not self.ratio:
            return self.gemodel
        r = 1 / self.burst
        return GemodelSpec(p=Ratio(r * self.ratio / (1 - self.ratio)), r=Ratio(r))

    @property
    def mean(self) -> float:
        """The share of packets that are lost in the long run."""
        return self.gemodel.ratio if self.gemodel is not None else float(self.ratio or 0)


class Droptail(Part):
    """No queue management: what does not fit is dropped."""


class RedSpec(Part):
    """Random early detection (Floyd and Jacobson 1993): drops at random, the more the longer the average queue."""

    min: Queue | None = None
    """Of the average queue: below it nothing is dropped."""
    max: Queue | None = None
    """Of the average queue: at it `probability` is reached."""
    probability: Ratio = Ratio(0.1)
    gentle: bool = False
    """From `max` to twice `max` the probability rises to 100 %, instead of at once."""
    points: Annotated[dict[Queue, Ratio], Field(min_length=1, max_length=8)] | None = None
    """Instead: the drop probability by the average queue, linear in between, 100 % beyond the last point."""
    weight_log: Annotated[Whole, Field(ge=0, le=16)] = 9
    """Each packet moves the average by 2^-this of the difference; 9 is 0.002, 0 makes the queue its own average."""
    ecn: bool = False
    """Marks packets that are capable of ECN, instead of dropping them."""

    @model_validator(mode="after")
    def _one_curve(self) -> RedSpec:
        straight = {"min", "max", "probability", "gentle"} & self.model_fields_set
        if self.points is not None and straight:
            raise ValueError(f"points say the whole curve; leave out {' and '.join(sorted(straight))}")
        if self.points is None and (self.min is None or self.max is None):
            raise ValueError(
                "red needs a curve; write {min: 25pkt, max: 50pkt, probability: 10%}, or "
                "{points: {25pkt: 0%, 50pkt: 10%, 100pkt: 100%}}"
            )
        if self.weight_log == 0 and self.points is None and not self.gentle:
            raise ValueError("weight_log 0 needs gentle or points: the kernel's own red always averages")
        if self.points is None and not self.probability:
            raise ValueError(
                "red with a probability of 0% drops nothing before max; give more, or leave red out"
            )
        return self


class CodelSpec(Part):
    """CoDel (RFC 8289)."""

    target: Delay = Delay(5_000_000)
    """The delay in the queue that is acceptable."""
    interval: Delay = Delay(100_000_000)
    """For so long it may be exceeded; about the longest RTT."""
    ecn: bool = False
    """Marks packets that are capable of ECN, instead of dropping them."""


class FqCodelSpec(CodelSpec):
    """FQ-CoDel (RFC 8290): CoDel in each of many queues, among which flows are distributed."""

    flows: Annotated[Whole, Field(ge=1, le=65536)] = 1024
    """So many queues."""
    quantum: Size | None = None
    """So many bytes of one queue, then the next one's turn. Default: a full frame."""
    ecn: bool = True
    """Marks packets that are capable of ECN, instead of dropping them."""


class Aqm(Part):
    """Active queue management: exactly one of its fields."""

    droptail: Droptail | None = None
    red: RedSpec | None = None
    codel: CodelSpec | None = None
    fq_codel: FqCodelSpec | None = None

    @model_validator(mode="after")
    def _require_one_kind(self) -> Aqm:
        kinds = [name for name in Aqm.model_fields if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(
                "a queue is managed in one way; write aqm: codel, or aqm: {codel: {target: 5ms}}"
            )
        return self

    def __str__(self) -> str:
        return self.kind

    @property
    def kind(self) -> str:
        """The field that is given: `droptail`, `red`, `codel` or `fq_codel`."""
        return next(name for name in Aqm.model_fields if getattr(self, name) is not None)


class Bucket(Part):
    """A token bucket: bursts at full rate until it is empty, and then what flows into it."""

    baseline: Rate
    """What flows into the bucket: the rate in the long run."""
    burst: Size
    """What the bucket holds; it is full at first."""

    def __str__(self) -> str:
        return f"{self.burst} at {self.baseline}"


def _jitter(value: object) -> object:
    return value if isinstance(value, (dict, Jitter)) or value is None else {"within": value}


def _loss(value: object) -> object:
    return value if isinstance(value, (dict, Loss)) or value is None else {"ratio": value}


def _aqm(value: object) -> object:
    if isinstance(value, str):
        return {value: {}}
    if isinstance(value, dict):
        return {kind: {} if options is None else options for kind, options in value.items()}
    return value


JitterField = Annotated[Jitter, BeforeValidator(_jitter, json_schema_input_type=Delay | Jitter)]
LossField = Annotated[Loss, BeforeValidator(_loss, json_schema_input_type=Ratio | Loss)]
AqmField = Annotated[
    Aqm,
    BeforeValidator(
        _aqm, json_schema_input_type=Literal["droptail", "codel", "fq_codel"] | Aqm | dict[str, Any]
    ),
]


class Conditions(Part):
    """What a direction of a link does to packets. Not given: no limit, no delay, no loss."""

    rate: Rate | None = None
    delay: Delay | None = None
    """One way."""
    jitter: JitterField | None = None
    """Each packet's delay is uniform within delay ± jitter, or has a distribution; packets stay in order."""
    loss: LossField | None = None
    """Random loss: a ratio, bursts, or a Gilbert-Elliott model."""
    reorder: Ratio | None = None
    """The share of packets that have no delay, and so overtake those under way."""
    duplicate: Ratio | None = None
    """The share of packets that arrive twice."""
    corrupt: Ratio | None = None
    """The share of packets in which one bit is flipped."""
    queue: Queue | None = None
    """In front of the rate. Default: the greater of 100 packets and one bandwidth-delay product."""
    aqm: AqmField | None = None
    """How the queue is managed. Default: drop-tail."""
    bucket: Bucket | None = None
    """A token bucket: `rate` as long as there are tokens, then its baseline."""
    trace: TraceSpec | None = None
    """A recorded trace that the direction follows: of opportunities to deliver packets, or of rate, delay and loss."""
