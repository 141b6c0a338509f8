"""The conditions of a link direction: rate, delay, jitter, loss, queue, queue management, token buckets.

Each part has a short form for its most common use: a quantity or a name.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from plait.parts import Delay, Part, Whole
from plait.scenario.fields.traces import TraceSpec
from plait.units import Packets, Queue, Rate, Ratio, Size, Within

Distribution = Literal["uniform", "normal", "pareto", "paretonormal"]


TAIL = 23
"""Distance of a heavy-tailed distribution's longest delay above its mean, in standard deviations."""


JITTER_MOST = 2 * 10**9
"""netem stores it as 31 bits of nanoseconds."""


class Jitter(Part):
    """Variation of the packets' delays around their mean `delay`."""

    within: Annotated[Delay, Within(most=JITTER_MOST)] | None = None
    """Half width of a uniform distribution around the delay."""
    deviation: Annotated[Delay, Within(most=300 * 10**6)] | None = None
    """Standard deviation, for any distribution."""
    distribution: Distribution | None = None
    """Distribution for a `deviation`. Default: normal."""
    reorder: bool = False
    """Whether a packet with a shorter delay may overtake one with a longer delay."""

    @model_validator(mode="after")
    def _one_measure(self) -> Jitter:
        if (self.within is None) == (self.deviation is None):
            raise ValueError(
                "jitter has either a half width (within) or a standard deviation; write jitter: 5ms, or "
                "jitter: {deviation: 5ms, distribution: normal}"
            )
        if self.within is not None and self.distribution not in (None, "uniform"):
            raise ValueError(
                f"'within' is for uniform jitter, not for {self.distribution}; write deviation instead"
            )
        return self

    def __str__(self) -> str:
        measure = f"{self.within}" if self.within is not None else f"{self.deviation} {self.named}"
        return f"{measure} with reordering" if self.reorder else measure

    @property
    def most_ns(self) -> int:
        """The largest delay above the mean, in ns."""
        return int(self.within or 0) + TAIL * int(self.deviation or 0)

    @property
    def named(self) -> Distribution:
        """The distribution, given or by default."""
        return self.distribution or ("normal" if self.within is None else "uniform")


class GemodelSpec(Part):
    """Gilbert-Elliott loss model, with the parameters of `tc .. netem loss gemodel`."""

    p: Ratio
    """Probability per packet of a change from the good state to the bad state."""
    r: Ratio
    """Probability per packet of a change from the bad state to the good state."""
    loss_bad: Annotated[Ratio, Field(alias="1-h")] = Ratio(1.0)
    """Loss ratio in the bad state."""
    loss_good: Annotated[Ratio, Field(alias="1-k")] = Ratio(0.0)
    """Loss ratio in the good state."""

    @model_validator(mode="after")
    def _moves(self) -> GemodelSpec:
        if not self.p + self.r:
            raise ValueError("p and r are both 0%, so the state never changes; raise at least one of them")
        return self

    def __str__(self) -> str:
        return f"gemodel {self.p} {self.r} {self.loss_bad} {self.loss_good}"

    @property
    def ratio(self) -> float:
        """Long-run loss ratio."""
        bad = self.p / (self.p + self.r)
        return bad * self.loss_bad + (1 - bad) * self.loss_good


class Loss(Part):
    """Random loss: independent, or in bursts."""

    ratio: Ratio | None = None
    """Loss ratio."""
    burst: Packets | None = None
    """Mean number of consecutive packets lost. Default: packets are lost independently."""
    gemodel: GemodelSpec | None = None
    """Gilbert-Elliott model, instead of a ratio."""

    @model_validator(mode="after")
    def _one_model(self) -> Loss:
        if (self.ratio is None) == (self.gemodel is None):
            raise ValueError(
                "loss is either a ratio or a gemodel; write loss: 1%, loss: {ratio: 1%, burst: 4pkt}, or "
                "loss: {gemodel: {p: 1%, r: 25%}}"
            )
        if self.burst is not None and self.ratio is None:
            raise ValueError("the burst length of a gemodel is 1/r; remove 'burst'")
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
        """Return the loss as a Gilbert-Elliott model; None for independent loss.

        The bad state loses every packet, and ends with probability r: bursts have 1/r packets on average, and the
        loss ratio is p / (p + r).
        """
        if self.gemodel is not None or self.burst is None or not self.ratio:
            return self.gemodel
        r = 1 / self.burst
        return GemodelSpec(p=Ratio(r * self.ratio / (1 - self.ratio)), r=Ratio(r))

    @property
    def mean(self) -> float:
        """Long-run loss ratio."""
        return self.gemodel.ratio if self.gemodel is not None else float(self.ratio or 0)


class RedSpec(Part):
    """Random early detection (Floyd and Jacobson 1993): the drop probability rises with the average queue."""

    min: Queue | None = None
    """Average queue below which RED drops nothing."""
    max: Queue | None = None
    """Average queue at which the drop probability reaches `probability`."""
    probability: Ratio = Ratio(0.1)
    """Drop probability at an average queue of `max`."""
    gentle: bool = False
    """Whether the probability rises to 100 % between `max` and twice `max`, instead of at `max`."""
    points: Annotated[dict[Queue, Ratio], Field(min_length=1, max_length=8)] | None = None
    """Drop probability by average queue, instead of `min` and `max`: linear between points, 100 % above the last."""
    weight_log: Annotated[Whole, Field(ge=0, le=16)] = 9
    """Averaging weight 2^-weight_log per packet: 9 is 0.002; with 0 the average is the current queue."""
    ecn: bool = False
    """Whether to mark ECN-capable packets instead of dropping them."""

    @model_validator(mode="after")
    def _one_curve(self) -> RedSpec:
        straight = {"min", "max", "probability", "gentle"} & self.model_fields_set
        if self.points is not None and straight:
            raise ValueError(f"points define the whole curve; remove {' and '.join(sorted(straight))}")
        if self.points is None and (self.min is None or self.max is None):
            raise ValueError(
                "red needs a curve; write {min: 25pkt, max: 50pkt, probability: 10%}, or "
                "{points: {25pkt: 0%, 50pkt: 10%, 100pkt: 100%}}"
            )
        if self.weight_log == 0 and self.points is None and not self.gentle:
            raise ValueError(
                "weight_log 0 needs gentle or points, because the kernel's red always averages; add one of them"
            )
        if self.points is None and not self.probability:
            raise ValueError("red with a probability of 0% drops nothing below max; raise it, or remove red")
        return self

    @property
    def needs_plait_red(self) -> bool:
        """Whether only plait's own qdisc has this curve."""
        return self.gentle or self.points is not None


class CodelSpec(Part):
    """CoDel (RFC 8289)."""

    target: Delay = Delay(5_000_000)
    """Acceptable queueing delay."""
    interval: Delay = Delay(100_000_000)
    """How long the queueing delay may exceed the target; about the longest RTT."""
    ecn: bool = False
    """Whether to mark ECN-capable packets instead of dropping them."""


class FqCodelSpec(CodelSpec):
    """FQ-CoDel (RFC 8290): flows are hashed to many queues, each with CoDel."""

    flows: Annotated[Whole, Field(ge=1, le=65536)] = 1024
    """Number of queues."""
    quantum: Size | None = None
    """Bytes that a queue sends per round. Default: a full frame."""
    ecn: bool = True
    """Whether to mark ECN-capable packets instead of dropping them."""


def _without_options(options: dict[str, Any]) -> dict[str, Any]:
    if options:
        raise ValueError("drop-tail has no options; write aqm: droptail")
    return options


class Aqm(Part):
    """Active queue management: exactly one of its fields."""

    droptail: (
        Annotated[
            dict[str, Any], AfterValidator(_without_options), Field(json_schema_extra={"maxProperties": 0})
        ]
        | None
    ) = None
    """Drop-tail, which has no options: a full queue drops arriving packets."""
    red: RedSpec | None = None
    codel: CodelSpec | None = None
    fq_codel: FqCodelSpec | None = None

    @model_validator(mode="after")
    def _require_one_kind(self) -> Aqm:
        kinds = [name for name in Aqm.model_fields if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError("aqm needs exactly one kind; write aqm: codel, or aqm: {codel: {target: 5ms}}")
        return self

    def __str__(self) -> str:
        return self.kind

    @property
    def kind(self) -> str:
        """The field that is set: `droptail`, `red`, `codel` or `fq_codel`."""
        return next(name for name in Aqm.model_fields if getattr(self, name) is not None)


class Bucket(Part):
    """Token bucket: bursts at the full rate until the bucket is empty, then the baseline rate.

    Without a baseline it is that of a shaper: the link's rate fills it, and what it holds passes at once.
    """

    baseline: Rate | None = None
    """Fill rate of the bucket, which is the long-run rate. Default: the link's rate, and bursts pass at once."""
    burst: Size
    """Capacity of the bucket, which is full at first."""

    def __str__(self) -> str:
        return str(self.burst) if self.baseline is None else f"{self.burst} at {self.baseline}"


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
    """Conditions of a link direction. A missing condition means no limit, no delay or no loss."""

    rate: Rate | None = None
    """Rate limit."""
    delay: Delay | None = None
    """One-way delay."""
    jitter: JitterField | None = None
    """Delay variation: uniform within delay ± jitter, or another distribution; packets stay in order."""
    loss: LossField | None = None
    """Random loss: a ratio, bursts, or a Gilbert-Elliott model."""
    reorder: Ratio | None = None
    """Ratio of packets that skip the delay, and so overtake packets in flight."""
    duplicate: Ratio | None = None
    """Ratio of packets that arrive twice."""
    corrupt: Ratio | None = None
    """Ratio of packets in which one bit is flipped."""
    queue: Queue | None = None
    """Queue length at the rate limit. Default: the greater of 100 packets and one bandwidth-delay product."""
    aqm: AqmField | None = None
    """Active queue management. Default: drop-tail."""
    bucket: Bucket | None = None
    """Token bucket: `rate` while it has tokens, then its baseline."""
    trace: TraceSpec | None = None
    """Recorded trace that the direction follows: delivery opportunities, or rate, delay and loss."""
