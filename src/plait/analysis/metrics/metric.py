"""The record of a metric, as the catalogue holds it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from plait.analysis.metrics.units import Unit
    from plait.metric_names import MetricName

Owner = Literal["trial", "FLOW", "PATH", "PROGRAM", "GROUP", "LINK"]
"""What a metric belongs to. All but those of the trial have the owner's name before a dot: `PATH.path_share`."""


@dataclass(frozen=True)
class Metric:
    """One metric of a trial, or of its flows, paths, programs, groups of flows or link directions."""

    name: MetricName
    """Without its owner; `N` stands for a number."""
    title: str
    """On axes and headings of figures."""
    unit: Unit
    traffic: tuple[str, ...]
    """The kinds of flows that have it; `probe` stands for echo requests."""
    computed: str
    """How, in a few words, or by which function of this package; docs/reference/results.md has the formulas."""
    _: KW_ONLY
    better: Literal["more", "less"] | None = None
    """None: plait passes no judgement by it."""
    owners: tuple[Owner, ...] = ("trial",)
    heading: str = ""
    """The heading of its column; empty where no table has one."""
    short: str = ""
    """A shorter heading for a terminal."""
    prose: str = ""
    """Its name in a sentence, where that is not its title in lower case."""
    least: float | None = 0.0
    """The smallest value that it can have; None without a bound."""

    @property
    def noun(self) -> str:
        """Its name in a sentence."""
        return self.prose or f"{self.title[0].lower()}{self.title[1:]}"


@dataclass(frozen=True)
class ComparedMetric(Metric):
    """A metric by which plait compares cases and studies, and which has a figure of its own."""

    _: KW_ONLY
    verb: str
    """`MPTCP gives 1.9 times the goodput of TCP`."""
    superlative: str
    """`the highest goodput`."""
    figure: str
    """The name of its figure's files."""
    columns: tuple[str, ...] = ()
    """The metrics of the same kind of traffic that stand in tables; empty where every table has its column."""
    speaks_for: tuple[str, ...] = ()
    """The kinds of flows whose headline metric it is."""

    @property
    def best(self) -> str:
        """What the best case has."""
        return f"{self.superlative} {self.noun}"

    @property
    def more_is_better(self) -> bool:
        """Whether a greater value is better."""
        return self.better == "more"
