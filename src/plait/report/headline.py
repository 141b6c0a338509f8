"""The result in a few sentences, numbers first: what the terminal says last and the page says first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plait.analysis.compare.factors import main_factor, network_words, other_settings, stratum
from plait.analysis.labels.cases import case_label, labels
from plait.analysis.metrics.catalogue import compared_metric, heading_of, judged_metrics, mean, primary_metric
from plait.analysis.metrics.groups import group_names
from plait.analysis.model import CaseSummary, Comparison, Leader, Summary
from plait.analysis.statistics.bootstrap import FEWEST
from plait.analysis.values import show, span
from plait.analysis.wording import capital, change, number_word, significant, within
from plait.metrics import COMPARED, columns_beside

MOST_LISTED = 4
"""Most cases of another kind than the headline's that are listed one by one."""
_SEEDS = (
    "Repeats differ in their seeds alone: tests and intervals hold for {of}, and say nothing about others."
)
_BEGIN, _END = "\N{START OF TEXT}", "\N{END OF TEXT}"
"""Marks around a number to stress."""
Phrase = tuple[str, bool]
"""A piece of a sentence, and whether it is a number to stress."""


def headline(summary: Summary) -> list[Phrase]:
    """Return the first sentence."""
    metric = primary_metric(summary)
    measured = measured_cases(summary)
    if not measured:
        return _phrases(_programs(summary) or _nothing(summary))
    text = _for_many_cases(summary, metric) if len(measured) > 2 else _for_few_cases(summary, metric)
    return _phrases(f"{text}{_without_value(summary)}")


def _stressed(text: str) -> str:
    return f"{_BEGIN}{text}{_END}"


def _phrases(text: str) -> list[Phrase]:
    """Return the pieces of a text, of which every second one is `_stressed`."""
    pieces = re.split(f"[{_BEGIN}{_END}]", text)
    return [(piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece]


def _paths(case: CaseSummary) -> int | None:
    """Return how many paths the flow of a case can use; None for several flows, or where its shares are unknown."""
    several = any(name.endswith(".goodput_bps") for name in case.metrics)
    return (not several and sum(name.endswith(".path_share") for name in case.metrics)) or None


def _for_few_cases(summary: Summary, metric: str) -> str:
    """Return the sentence for one or two cases: the value of each, and the change."""
    measured, names = measured_cases(summary), labels(summary.cases)
    is_usual = metric in {"goodput_bps", "completion_s"}
    text = "" if is_usual else f"{compared_metric(metric).title}: "  # the unit alone is ambiguous
    values: list[str] = []
    for case in measured:
        words = _with_paths(
            names[case.name] if case.settings or case.label else "",
            _paths(case) if case.label is None else None,
            metric,
        )
        words = words if text or values else f"{words[0].upper()}{words[1:]}"
        values.append(f"{words} {_stressed(show(metric, mean(case, metric)))}{_further_values(case, metric)}")
    text += "; ".join(values)
    last = measured[-1].name
    comparison = next((c for c in summary.comparisons if (c.case, c.metric) == (last, metric)), None)
    if comparison is not None and comparison.verdict == "same":
        text += f": {_stressed(f'the same {within(comparison.margin)}')}"
    elif comparison is not None and comparison.ratio is not None:
        undecided = ", undecided" if comparison.verdict == "unclear" else ""
        text += f": {_stressed(change(comparison.ratio.value))}{undecided}"
    efficiency = mean(measured[-1], "efficiency")
    if efficiency is not None:
        text += f"; {_stressed(show('efficiency', efficiency))} of what the links allow"
    several = any(name.endswith(".goodput_bps") for case in measured for name in case.metrics)
    return f"{text}, all flows together." if several and is_usual else f"{text}."


def _completed(case: CaseSummary) -> int:
    return case.trials - case.failed - len(case.excluded)


def _nothing(summary: Summary) -> str:
    """Return the sentence where no case has a value."""
    if any(_completed(case) for case in summary.cases):
        return "No trial has a value: nothing was measured."
    return "No trial was completed: nothing was measured."


def _without_value(summary: Summary) -> str:
    """Return the sentence about cases whose trials were completed, but whose flows were not."""
    names = labels(summary.cases)
    lacking = [
        names[case.name]
        for case in summary.cases
        if _completed(case) and all(mean(case, metric) is None for metric in COMPARED)
    ]
    return f" No trial of {_listed(lacking)} has a value." if lacking else ""


def _further_values(case: CaseSummary, metric: str) -> str:
    """Return what else was measured of the kind of traffic that `metric` represents: " (delay p95 41.0 ms, ..)"."""
    further = [
        f"{heading_of(metric_name)} {show(metric_name, mean(case, metric_name))}"
        for metric_name in columns_beside(compared_metric(metric))
        if metric_name != metric and mean(case, metric_name) is not None
    ]
    return f" ({', '.join(further)})" if further else ""


def _programs(summary: Summary) -> str:
    """Return how long programs ran, where nothing else was measured; nothing where none ended by itself."""
    ending = ".duration_s"
    ran = [
        f"{name.removesuffix(ending)} ran for {_stressed(show('duration_s', stats.mean))}"
        for case in summary.cases[:1]
        for name, stats in case.metrics.items()
        if name.endswith(ending) and stats.mean is not None
    ]
    return f"Programs alone were measured: {'; '.join(ran)}." if ran else ""


def sentences(summary: Summary) -> list[str]:
    """Return what follows the headline: the comparisons in words, at most three of them, and what failed."""
    metric = primary_metric(summary)
    groups = _groups(summary)
    ordered = sorted(_notable(summary), key=lambda comparison: comparison.metric != metric)
    tested = [
        effect.sentence
        for effect in summary.effects
        if len(effect.factors) == 1 or effect.verdict == "depends"
    ]
    lines = [
        *groups,
        *tested,
        *_undecided(summary),
        *summary.untested,
        *(comparison.sentence for comparison in ordered),
    ]
    lines += _caveat(summary) if tested else []
    lines += _other_metrics(summary, metric) + _partly_measured(summary)
    failed = sum(case.failed for case in summary.cases)
    total = sum(case.trials for case in summary.cases)
    if failed:
        lines.append(f"{failed} of {total} trials failed and are not part of any figure.")
    excluded = sum(len(case.excluded) for case in summary.cases)
    if excluded:
        lines.append(f"The machine disturbed {excluded} of {total} trials; they are not part of any figure.")
    return lines


def _undecided(summary: Summary) -> list[str]:
    """Return that no comparison is decided, for each metric of which a test of a factor says that it depends on it."""
    lines = []
    for metric in dict.fromkeys(effect.metric for effect in summary.effects if effect.verdict == "depends"):
        if {c.verdict for c in summary.comparisons if c.metric == metric} == {"unclear"}:
            noun = compared_metric(metric).noun
            lines.append(f"These tests take all levels together; no comparison of two cases decides {noun}.")
    return lines


def _other_metrics(summary: Summary, metric: str) -> list[str]:
    """Return the metrics of the cases without the main metric: their traffic is of another kind."""
    names = labels(summary.cases)
    unmeasured = [case for case in summary.cases if mean(case, metric) is None]
    lines = []
    for metric_name, record in COMPARED.items():
        measured = [case for case in unmeasured if mean(case, metric_name) is not None]
        unmeasured = [case for case in unmeasured if case not in measured]
        values = [
            f"{names[case.name] or 'mean of all trials'} {show(metric_name, mean(case, metric_name))}"
            for case in measured
        ]
        if values:
            further_cases = (
                f", and {len(values) - MOST_LISTED} further cases" if len(values) > MOST_LISTED else ""
            )
            lines.append(f"{record.title}: {', '.join(values[:MOST_LISTED])}{further_cases}.")
    return lines


def _caveat(summary: Summary) -> list[str]:
    """Return what tests along factors do not show: seeds are no sample of networks, and few have no shape."""
    seeds = min(effect.seeds for effect in summary.effects)
    normal = f" With {seeds} seeds they assume normal values." if seeds < FEWEST else ""
    return [_SEEDS.format(of="these networks" if summary.strata else "this network") + normal]


def _partly_measured(summary: Summary) -> list[str]:
    """Return the judged metrics that some completed trials of a case lack, so that its mean is of the others."""
    names = labels(summary.cases)
    lines = []
    for metric in judged_metrics(summary):
        counts = []
        for case in summary.cases:
            measured = case.metrics[metric].n if metric in case.metrics else 0
            if 0 < measured < _completed(case):
                counts.append(f"{measured} of {_completed(case)} trials ({names[case.name] or 'all'})")
        if counts:
            noun = compared_metric(metric).noun
            lines.append(f"The mean {noun} is of {_listed(counts)}; the others have no value.")
    return lines


def _groups(summary: Summary) -> list[str]:
    """Return what each flow of a group of flows gets, from the case where it is least to that where it is most."""
    names = labels(summary.cases)
    lines = []
    for group, metric in group_names(name for case in summary.cases for name in case.metrics).items():
        ranked = sorted(
            (case for case in summary.cases if mean(case, metric) is not None),
            key=lambda case: mean(case, metric) or 0.0,
        )
        if len(ranked) > 1:
            least, best_case = ranked[0], ranked[-1]
            low, high = (show(metric, mean(case, metric)) for case in (least, best_case))
            values = f"{low} ({names[least.name]}) to {high} ({names[best_case.name]})"
            lines.append(f"Each flow of {group} gets {values if low != high else f'{low} in every case'}.")
    return lines


def measured_cases(summary: Summary) -> list[CaseSummary]:
    """Return the cases in which something was measured of what the study is about."""
    metric = primary_metric(summary)
    return [case for case in summary.cases if mean(case, metric) is not None]


def _for_many_cases(summary: Summary, metric: str) -> str:
    """Return the sentences for more than two cases: the best one of each network, and the range of the ratios."""
    leaders = [leader for leader in summary.leaders if leader.metric == metric]
    lines = [_best(summary, leader) for leader in leaders[:MOST_LISTED]]
    lines = lines or [f"{_range(summary.cases, metric)}."]
    if len(leaders) > MOST_LISTED:
        lines.append(f"The table has {len(leaders) - MOST_LISTED} further networks.")
    compared = [c for c in matched(summary) if c.metric == metric and c.ratio is not None]
    ratios = [c.ratio.value for c in compared if c.ratio is not None]
    if len(ratios) > 1 and any(c.verdict != "same" for c in compared):
        low, high = significant(min(ratios)), significant(max(ratios))
        times = _stressed(low if low == high else f"{low} to {high}")
        noun = compared_metric(metric).noun
        lines.append(f"Against {_what_ratios_are_of(summary)}: {times} times the {noun}.")
    return " ".join(lines)


def _range(cases: Sequence[CaseSummary], metric: str, network: str = "") -> str:
    """Return the sentence where nothing was compared: the least and the greatest mean, without a winner."""
    means = [value for case in cases if (value := mean(case, metric)) is not None]
    head = f"{network}{capital(number_word(len(means)))} cases: {compared_metric(metric).noun}"
    return f"{head} {_stressed(span(metric, min(means), max(means)))}"


def _best(summary: Summary, leader: Leader) -> str:
    """Return the sentence about the best case of a network, and about those that are the same or may be as good."""
    metric = leader.metric
    network = f"{network_words(leader.stratum)}: " if leader.stratum else ""
    levels = tuple(leader.stratum.values())
    cases = {case.name: case for case in measured_cases(summary) if stratum(case, summary.strata) == levels}
    names = labels([_without_settings(case, summary.strata) for case in cases.values()])
    noun, count = compared_metric(metric).noun, number_word(len(cases))
    values = [
        value for name in (leader.case, *leader.same) if (value := mean(cases[name], metric)) is not None
    ]
    shown = _stressed(span(metric, min(values), max(values)))
    if len(cases) > 1 and len(leader.same) == len(cases) - 1:
        equal = "" if len(set(values)) == 1 else f" {within(leader.margin)}"
        return f"{capital(f'{network}All {count} cases have the same {noun}{equal}, ')}{shown}."
    if leader.undecided and len(leader.same) + len(leader.undecided) == len(cases) - 1:
        doubt = f"the trials do not decide which has the {compared_metric(metric).best}"
        return f"{_range(list(cases.values()), metric, network)}; {doubt}."
    best = _listed([names[name] for name in (leader.case, *leader.same)])
    head = f"{network}Of {count} cases, {best} {'have' if leader.same else 'has'} the {compared_metric(metric).best}, "
    if len(cases) == 1:  # the only one of its network
        head = f"{network}The {noun} is "
    text = f"{head}{shown}"
    efficiency = mean(cases[leader.case], "efficiency")
    if leader.same:
        text += f" (the same {within(leader.margin)})"
    elif efficiency is not None:
        text += f" ({_stressed(show('efficiency', efficiency))} of what the links allow)"
    if leader.undecided:
        rest = _listed([names[name] for name in leader.undecided])
        differ = "differs" if len(leader.undecided) == 1 else "differ"
        text += f"; the trials do not decide whether {rest} {differ} from {'them' if leader.same else 'it'}"
    return f"{text}."


def _without_settings(case: CaseSummary, strata: Sequence[str]) -> CaseSummary:
    """Return a case without the settings that the sentence has named."""
    remaining = {name: value for name, value in case.settings.items() if name not in strata}
    return case.model_copy(update={"settings": remaining})


def _listed(words: Sequence[str]) -> str:
    """Return "a, b and c", or "a, 1; b, 2; and c, 3"; of many, the first, and the number of the others."""
    if len(words) > MOST_LISTED:
        words = [*words[: MOST_LISTED - 1], f"{number_word(len(words) - MOST_LISTED + 1)} others"]
    mark = ";" if any("," in word for word in words) else ","
    last = " and " if mark == "," else "; and "
    return last.join([f"{mark} ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def matched(summary: Summary) -> list[Comparison]:
    """Return the comparisons of cases that differ in the main factor alone; all of them when there is none such."""
    return _alike(summary) or list(summary.comparisons)


def _alike(summary: Summary) -> list[Comparison]:
    factor = main_factor(summary.cases, summary.strata)
    constant = {case.name: other_settings(case, factor, summary.zipped) for case in summary.cases}
    return [c for c in summary.comparisons if constant[c.case] == constant[c.baseline]]


def _what_ratios_are_of(summary: Summary) -> str:
    """Return what the ratios are over."""
    if _alike(summary):
        return f"{_baselines(summary)} with the same settings otherwise"
    bases = {
        comparison.baseline for comparison in summary.comparisons
    }  # of a Latin hypercube, in which nothing stays the same
    return labels(summary.cases)[bases.pop()] if len(bases) == 1 else "their baselines"


def _baselines(summary: Summary) -> str:
    """Return what is compared with: "TCP" when that is the baselines' choice of the main factor."""
    factor = main_factor(summary.cases, summary.strata)
    cases = {case.name: case for case in summary.cases}
    if factor is None:
        return "their baselines"
    chosen = {
        cases[c.baseline].label or case_label("", {factor: cases[c.baseline].settings.get(factor)})
        for c in matched(summary)
    }
    return chosen.pop() if len(chosen) == 1 else "their baselines"


def _notable(summary: Summary) -> list[Comparison]:
    """Return the comparisons worth words: all of few, else those with the extreme ratios of the main metric."""
    if len(matched(summary)) <= 3:
        return matched(summary)
    metric = primary_metric(summary)
    ranked = sorted(
        (c for c in matched(summary) if c.metric == metric and c.ratio is not None),
        key=lambda c: c.ratio.value if c.ratio is not None else 0.0,
    )
    return [ranked[-1], ranked[0]] if len(ranked) > 1 else ranked


def _with_paths(label: str, count: int | None, metric: str) -> str:
    """Return "single path TCP", "two paths MPTCP"; without a label, "two paths", or what is measured."""
    if count is None:
        return label or (
            "mean of all trials"
            if metric not in {"goodput_bps", "completion_s"}
            else compared_metric(metric).noun
        )
    return f"{'single path' if count == 1 else f'{number_word(count)} paths'} {label}".rstrip()
