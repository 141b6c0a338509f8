"""The results of the analysis: the summary of a study, and the comparison of two. Contracts that scripts depend on."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from plait.analysis.labels.study_labels import StudyLabels
from plait.parts import Part


class Statistics(Part):
    """One metric over the trials of a case. Everything but `n` is null when nothing was measured."""

    n: int
    """Trials in which the metric could be measured."""
    mean: float | None = None
    median: float | None = None
    min: float | None = None
    max: float | None = None
    stdev: float | None = None
    """Sample standard deviation; null with fewer than two trials."""
    ci95: tuple[float, float] | None = None
    """95 % interval of the mean; null with fewer than two trials, and when all trials have the same value.

    Never below the least value that the metric can have."""
    quartiles: tuple[float, float] | None = None
    """The first and the third, by linear interpolation between trials."""
    interval: Literal["t", "bootstrap"] | None = None
    """Which one `ci95` is: Student's t interval, or the bootstrap interval (BCa) of skewed values; null without."""


class PublishedGoodput(Part):
    """The published goodput of a case, in bit/s."""

    goodput_bps: float | None = None
    """The sum of all flows."""
    each_bps: dict[str, float] = Field(default_factory=dict)
    """The goodput of each flow of a group, by the group's name."""


class Exclusion(Part):
    """A complete trial that means leave out."""

    trial: int
    reason: str


class CaseSummary(Part):
    """One case: its settings, its number of trials, and their metrics."""

    name: str
    settings: dict[str, Any]
    trials: int
    """Trials that were run, failed ones included."""
    failed: int
    excluded: tuple[Exclusion, ...] = ()
    """Complete trials in real time that the machine disturbed, so that no metric counts them."""
    metrics: dict[str, Statistics]
    published: PublishedGoodput | None = None
    """Null where the scenario has no published figures of this case."""
    label: str | None = Field(default=None, exclude_if=lambda label: label is None)
    """Its label, if the scenario has one."""


class Estimate(Part):
    """A number and its 95 % interval; the interval is null where it says nothing (see Statistics.ci95)."""

    value: float
    ci95: tuple[float, float] | None = None


class Comparison(Part):
    """One metric of one case against its baseline case, over the trials that share a seed."""

    case: str
    baseline: str
    metric: str
    pairs: int
    """Trials that both cases completed with the same seed."""
    difference: Estimate | None
    """Mean of case minus baseline, in the metric's unit."""
    ratio: Estimate | None
    """Mean of the case divided by mean of the baseline; null when the baseline's mean is zero."""
    identical: bool
    """Both values of every pair are equal."""
    margin: float
    """The smallest difference of interest, as a ratio: 0.01 is 1 %."""
    verdict: Literal["more", "less", "same", "unclear"]
    """`same`: the interval of the ratio is within the margin; `more` and `less` hold after Holm's correction."""
    sentence: str
    test: str | None = None
    """The test of "there is no difference", by its name; null without a spread to judge by."""
    p_value: float | None = None
    """How often chance alone would give a mean difference as large, two-sided."""
    p_holm: float | None = None
    """Corrected for the number of comparisons of this metric in the study, or in its network."""
    effect_size: float | None = None
    """Cohen's d for pairs: the mean of their differences in standard deviations of the differences."""


Stratum = dict[str, str]
"""The network: its level of each of the study's strata. Absent without strata."""


class LevelMean(Part):
    """The mean of a metric at one level of a factor, over all levels of the other factors."""

    level: str
    mean: float


class FactorEffect(Part):
    """The effect of a factor on a metric, or the interaction of two factors."""

    metric: str
    stratum: Stratum = Field(default={}, exclude_if=lambda levels: not levels)
    factors: tuple[str, ...]
    """One factor, or the two of an interaction; the settings of a `zip` are one, joined by `+`."""
    levels: tuple[LevelMean, ...]
    """Empty for an interaction."""
    seeds: int
    """Seeds that have the metric in every case."""
    test: str
    statistic: float
    """F."""
    degrees: tuple[float, float]
    """Degrees of freedom, after the correction by `epsilon`."""
    epsilon: float
    """Greenhouse and Geisser's correction for unequal covariances."""
    p_value: float
    """The p value of F, or of the sign flips that `test` names."""
    p_holm: float
    """Corrected for the number of effects on this metric, in its network."""
    margin: float
    verdict: Literal["depends", "same", "unclear"]
    """`same`: with all levels, the metric is the same within the margin."""
    partial_eta2: float
    """Share of the variance of effect and error that is the effect's."""
    sentence: str


class Leader(Part):
    """The case with the best mean of a metric, and the cases that nothing shows to be worse."""

    metric: str
    stratum: Stratum = Field(default={}, exclude_if=lambda levels: not levels)
    case: str
    same: tuple[str, ...]
    """Cases that are the same within the margin."""
    undecided: tuple[str, ...]
    """Cases whose difference from it is neither within the margin nor significant after Holm's correction."""
    margin: float


class Summary(Part):
    """summary.json."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    scenario: str
    digest: str
    cases: tuple[CaseSummary, ...]
    comparisons: tuple[Comparison, ...]
    effects: tuple[FactorEffect, ...] = ()
    """Tests along each factor of the judged metrics: main effects, and interactions of two factors."""
    leaders: tuple[Leader, ...] = ()
    """The best case of each judged metric, in each network."""
    untested: tuple[str, ...] = ()
    """Why effects of factors were not tested, a sentence each."""
    judged: tuple[str, ...] = ()
    """The metrics that the scenario judges by, the most important first; empty: the kind of traffic decides."""
    strata: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Factors whose levels are different networks: comparisons, effects and the headline stay within a level."""
    zipped: tuple[tuple[str, ...], ...] = Field(default=(), exclude_if=lambda groups: not groups)
    """Settings that change together, and are one factor."""
    labels: StudyLabels = Field(default=StudyLabels(), exclude_if=lambda labels: not labels)
    """The labels of links, paths and flows; metrics and cases keep their names."""
    published_source: str | None = None
    """Where published figures come from."""


Verdict = Literal["better", "worse", "same", "undecided", "not measured", "newly measured"]


class CaseTrials(Part):
    """One study's trials of a case."""

    trials: int
    measured: int
    """Trials in which the metric could be measured."""
    mean: float | None


class CaseComparison(Part):
    """One metric of one case in the second study against the first."""

    case: str
    settings: dict[str, Any] = Field(default_factory=dict)
    label: str | None = Field(default=None, exclude_if=lambda label: label is None)
    """The label of the case, if the scenario has one."""
    metric: str
    before: CaseTrials
    after: CaseTrials
    pairs: int | None
    """Trials of the same seed that were compared pair by pair; null when the sides were compared as a whole."""
    difference: Estimate | None
    """Second minus first, in the metric's unit."""
    ratio: Estimate | None
    """Second divided by first; null when the first is zero."""
    identical: bool
    """Both values of every pair are equal."""
    margin: float
    """The accepted change, as a ratio."""
    test: str | None
    p_value: float | None
    p_holm: float | None
    """Corrected for the number of cases tested with this metric, in its network."""
    effect_size: float | None
    verdict: Verdict
    sentence: str = ""

    @property
    def name(self) -> str:
        """The name of the case."""
        return self.case


class StudiesComparison(Part):
    """The output of `plait compare --json`."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    tolerance: float | None
    """The accepted change, as a ratio; null: that of each metric, which its `margin` has."""
    verdict: Literal["worse", "no worse"]
    sentence: str
    cases: tuple[CaseComparison, ...]
    only_first: tuple[str, ...]
    """Names of cases that only the first study has."""
    only_second: tuple[str, ...]
