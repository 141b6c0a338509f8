"""The typed result of an advice, and what its numbers show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from plait.advice.changes.model import Candidate
from plait.analysis.statistics.differences import Compared, direction, paired
from plait.analysis.statistics.intervals import describe
from plait.errors import RequestError
from plait.metrics import CATALOGUE

MARGIN = 0.03
"""A smaller change of a goal is not worth a change of a host."""
LOSS = "retransmitted_share"
"""Retransmitted bytes of all senders, as a share of what they sent."""
RTT = "rtt_median_us"
"""The median RTT under load of one line: that of all lines together jumps from the mode of one to that of another."""
Verdict = Literal["better", "worse", "same", "unclear"]


@dataclass(frozen=True)
class Gain:
    """How a candidate compares with another one over pairs of seeds."""

    ratio: float | None
    """Mean divided by the other mean; None if that is zero."""
    ci95: tuple[float, float] | None
    verdict: Verdict
    """`same`: the whole interval is within 3 %; `better` and `worse`: it is beyond 1, and the ratio beyond 3 %."""


@dataclass(frozen=True)
class Tried:
    """What one candidate did for one goal."""

    name: str
    words: str
    trials: int
    mean: float | None
    """Of the goal's metric, in its unit."""
    ci95: tuple[float, float] | None
    against_now: Gain | None
    """None for `now` itself, or if nothing was measured."""
    cause: str | None = None
    """The first cause of `plait explain`, for `now` and the best."""

    @property
    def verdict(self) -> Verdict | None:
        """How it compares with `now`; None if it does not."""
        return None if self.against_now is None else self.against_now.verdict


@dataclass(frozen=True)
class Shifted:
    """The best candidate against `now` where a line is worse than it was measured."""

    words: str
    against_now: Gain | None


@dataclass(frozen=True)
class GoalAdvice:
    """The candidates of one goal, the best one first."""

    goal: str
    metric: str
    tried: tuple[Tried, ...]
    best: str | None
    """The best of those that help; None if nothing is shown to help by more than 3 %."""
    ties: tuple[str, ...]
    """Further candidates that help, and that nothing shows to be more than 3 % worse than the best."""
    undecided: tuple[str, ...]
    """Candidates whose interval includes a gain of more than 3 %, and less."""
    shifted: tuple[Shifted, ...] = ()
    cut_short: bool = False
    """Whether the time was over before the last round."""

    def named(self, name: str) -> Tried:
        """Return what a candidate did."""
        return next(tried for tried in self.tried if tried.name == name)


@dataclass(frozen=True)
class Agreement:
    """One metric on the twin and on the real lines."""

    goal: str
    change: str
    metric: str
    twin: float | None
    """Mean; None if no trial measured it."""
    lines: float | None
    difference: float | None
    """Of the twin from the lines: relative, of LOSS in points (0.01: one percentage point)."""
    ci95: tuple[float, float] | None
    """Of two sides that are no pairs (Welch): trials of two clocks share no seed."""
    bound: float
    verdict: Literal["agree", "differ", "undecided", "not measured"]
    """`agree`: the whole interval is within the bound; `differ`: all of it is beyond."""
    line: str | None = None
    """The line of an RTT; None for other metrics."""
    lines_against_now: Gain | None = None
    """How the change compares with `now` on the lines, for the metric of the goal; None for others."""


@dataclass(frozen=True)
class Advice:
    """The answer: for each goal what helps, and for each candidate how to make the change."""

    scenario: str
    client: str
    server: str
    seed: int
    goals: tuple[GoalAdvice, ...]
    candidates: tuple[Candidate, ...]
    verified: tuple[Agreement, ...] = ()
    """The twin against the real lines; empty without `--verify`."""

    def candidate(self, name: str) -> Candidate:
        """Return a candidate by its name (RequestError for a pair that the search did not try)."""
        known = {candidate.name: candidate for candidate in self.candidates}
        if name not in known:
            names = ", ".join(known_name for known_name, candidate in known.items() if candidate.commands)
            raise RequestError(f"--change {name}: the search tried no such pair; there is: {names}")
        return known[name]

    @property
    def best(self) -> str | None:
        """The best candidate of the first goal for which something helps."""
        return next((goal.best for goal in self.goals if goal.best is not None), None)

    def worse_for(self, name: str) -> list[str]:
        """Return the goals for which a candidate is shown to be worse than `now` by more than 3 %."""
        return [
            goal.goal
            for goal in self.goals
            for row in goal.tried
            if row.name == name and row.verdict == "worse"
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the advice as JSON values."""
        return asdict(self)


def compared(metric: str, first: Mapping[int, float], second: Mapping[int, float]) -> Gain | None:
    """Return how `second` compares with `first`, by the seeds that both have; None without any."""
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    return gain(metric, paired([first[seed] for seed in seeds], [second[seed] for seed in seeds]))


def gain(metric: str, tested: Compared) -> Gain:
    """Return what a comparison of two sides says by a metric."""
    if tested.ratio is None:
        return Gain(None, None, "unclear")
    low, high = tested.ratio.ci95 or (tested.ratio.value, tested.ratio.value)
    is_known = tested.ratio.ci95 is not None or tested.p_value is None
    verdict: Verdict = "unclear"
    if direction(tested, None, MARGIN) == "same":
        verdict = "same"
    elif is_known and (low > 1 + MARGIN or high < 1 - MARGIN):
        exceeds = low > 1
        verdict = "better" if exceeds == (CATALOGUE[metric].better == "more") else "worse"
    return Gain(tested.ratio.value, tested.ratio.ci95, verdict)


def judged(
    goal: str,
    metric: str,
    values: Mapping[str, Mapping[int, float]],
    candidates: Sequence[Candidate],
    causes: Mapping[str, str | None],
    *,
    cut_short: bool,
    least: float = 0.0,
) -> GoalAdvice:
    """Return the advice for one goal; `values` has the metric by candidate and seed, and nothing is below `least`."""
    now = values["now"]
    rows = []
    for candidate in candidates:
        measured = values.get(candidate.name, {})
        stats = describe(list(measured.values()), least)
        against = None if candidate.name == "now" else compared(metric, now, measured)
        rows.append(
            Tried(
                candidate.name, candidate.words, len(measured), stats.mean, stats.ci95, against,
                causes.get(candidate.name),
            )
        )  # fmt: skip
    sign = -1 if CATALOGUE[metric].better == "more" else 1
    # A candidate that more seeds were spent on is known better, so it stands before one with fewer.
    rows.sort(key=lambda row: (row.name != "now", sign * row.mean if row.mean is not None else math.inf))
    helping = [row for row in rows if row.verdict == "better"]
    longest = max((row.trials for row in helping), default=0)
    finalists = [row for row in helping if row.trials == longest]
    level = [row for row in finalists if not _is_worse(metric, values[finalists[0].name], values[row.name])]
    # Of candidates that nothing shows to differ, the one with the fewest changes is advised.
    parts = {candidate.name: len(candidate.parts) for candidate in candidates}
    best = min(level, key=lambda row: parts[row.name]).name if level else None
    ties = [row.name for row in level if row.name != best]
    undecided = [row.name for row in rows if row.verdict == "unclear" and _may_help(metric, row)]
    return GoalAdvice(goal, metric, tuple(rows), best, tuple(ties), tuple(undecided), cut_short=cut_short)


def _is_worse(metric: str, best: Mapping[int, float], measured: Mapping[int, float]) -> bool:
    """Return whether a candidate is shown to be worse than another one by more than 3 %."""
    gained = compared(metric, best, measured)
    return gained is not None and gained.verdict == "worse"


def _may_help(metric: str, row: Tried) -> bool:
    against = row.against_now
    if against is None or against.ci95 is None:
        return False
    low, high = against.ci95
    return high > 1 + MARGIN if CATALOGUE[metric].better == "more" else low < 1 - MARGIN
