"""What a metric is: its names, its owners, how it is computed, and how tables and sentences use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from plait.traffic.kinds import JOBS

Owner = Literal["trial", "FLOW", "PATH", "PROGRAM", "GROUP", "LINK", "LAYER"]
"""The owner of a metric. All but those of the trial have the owner's name before a dot: `PATH.path_share`."""


@dataclass(frozen=True)
class TrialData:
    """The input of a metric: all flows in the foreground, or one flow, and the tables of the trial.

    Tables have the rows of a flow under `flow.carrier`, on the sides `flow.sender` and `flow.receiver`.
    """

    plan: Any
    """The trial's plan (`plait.plan.model.plan`)."""
    flows: Sequence[Any]
    """The flows that the value is about."""
    tables: Mapping[str, Any]
    """Data frames of polars by name."""
    rows: Mapping[int, Mapping[str, Any]]
    """By the id of a flow, its row of the table `flows`."""
    columns: Callable[..., list[list[Any]]]
    """By table, `flow.carrier`, side and names, columns of these rows as lists; a filter of each flow's is slow."""


@dataclass(frozen=True)
class Metric:
    """One metric of a trial, or of its flows, paths, programs, groups of flows, link directions or layers of links."""

    name: str
    """Its name without the owner. It ends in the unit; `N` is any number."""
    title: str
    """On axes and headings of figures."""
    traffic: tuple[str, ...]
    """The kinds of flows that have it; `probe` means echo requests."""
    computed: str
    """How, in a few words, or by which function of `analysis.metrics`; docs/reference/results.md has the formulas."""
    _: KW_ONLY
    compute: Callable[[TrialData], float | None] | None = None
    """Return the value; None if it could not be measured. Without a function, a family computes it."""
    form: Literal["", "percent", "count"] = ""
    """How a ratio or a number without a unit reads."""
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
    drawn: bool = True
    """Whether `figures` of a scenario can name it; other metrics are in tables, data and figures of their own."""
    over_time: bool = False
    """Whether it needs samples over time; None where one of its flows has only its last rows."""
    beside: str = ""
    """The compared metric beside which tables have its column; empty if no table has one, or every table."""
    figure: str = ""
    """The name of its figure's files. plait compares cases and studies by the metrics that have one."""
    verb: str = "has"
    """`MPTCP gives 1.9 times the goodput of TCP`."""
    superlative: str = ""
    """`the highest goodput`."""

    @property
    def speaks_for(self) -> tuple[str, ...]:
        """The kinds of flows whose headline metric it is."""
        return tuple(kind for kind, job in JOBS.items() if self.name == job.HEADLINE)

    @property
    def noun(self) -> str:
        """Its name in a sentence."""
        return self.prose or f"{self.title[0].lower()}{self.title[1:]}"

    @property
    def best(self) -> str:
        """The value of the best case."""
        return f"{self.superlative or ('highest' if self.more_is_better else 'lowest')} {self.noun}"

    @property
    def more_is_better(self) -> bool:
        """Whether a greater value is better."""
        return self.better == "more"
