"""The comparison of engines as a terminal shows it, and the explanation of the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from plait.analysis.compare.divergence import Divergence, divergence
from plait.analysis.compare.engines import SETTING, CrossCheck, EngineDifference
from plait.analysis.metrics.catalogue import metric_of
from plait.analysis.rows import CaseRows
from plait.analysis.values import show, with_interval
from plait.analysis.wording import MISSING, micros, seconds, size
from plait.dataset.trial import read_trial, trial_folder
from plait.errors import shell_command
from plait.report.table import Column
from plait.report.terminal.fitting import table
from plait.report.terminal.summary import Screen

_SHARE = "path_share"
_COLOURS = {"beyond": "red", "not measured": "red"}


def show_cross_check(check: CrossCheck, explanation: str, file: IO[str] | None = None) -> None:
    """Print the comparison of engines and the explanation to `file` [default: standard output]."""
    screen = Screen(file)
    by_case: dict[tuple[str, str], list[EngineDifference]] = {}
    for row in check.differences:
        by_case.setdefault((row.case, row.engine), []).append(row)
    for (case, engine), rows in by_case.items():
        if case:
            screen.line(case)
        columns = _columns(rows, check.engines[0], engine)
        width = screen.console.width
        screen.console.print(table(columns, width, screen.text, ascii_only=screen.plain))
        screen.console.print()
    _conclude(check, explanation, screen)


def _conclude(check: CrossCheck, explanation: str, screen: Screen) -> None:
    beyond, total = len(check.beyond), len(check.differences)
    if not total:
        screen.line("Nothing could be compared: no trial measured goodput, completion, RTT or path shares.")
    elif beyond:
        screen.line(f"{beyond} of {total} differ by more than {100 * check.bound:g} % or were not measured.")
        screen.line(explanation)
    else:
        screen.line(f"All {total} mean differences are within {100 * check.bound:g} %.")
    if check.uncertain:
        subject = (
            "interval of one reaches"
            if len(check.uncertain) == 1
            else f"intervals of {len(check.uncertain)} reach"
        )
        screen.line(
            f"The 95 % {subject} beyond {100 * check.bound:g} %; more trials (--repeat) would narrow it down."
        )


def _columns(rows: Sequence[EngineDifference], reference: str, engine: str) -> list[Column]:
    measured = [row.measured and show(row.metric, row.measured.value) for row in rows]
    return [
        Column(
            "metric", "metric", tuple(_metric_words(row.metric) for row in rows), folds=True, is_words=True
        ),
        Column(reference, reference, tuple(show(row.metric, row.expected.value) for row in rows)),
        Column(engine, engine, tuple(text or MISSING for text in measured)),
        Column("difference", "difference", tuple(map(_difference_words, rows))),
        Column("verdict", "verdict", tuple(row.verdict for row in rows), is_words=True, styles=_COLOURS),
    ]


def _metric_words(name: str) -> str:
    """Return the name of a metric in words: `share of h1-s1-h2`, `median round-trip time`."""
    owner, dot, last = name.rpartition(".")
    metric = metric_of(name)
    noun = last if metric is None else metric.noun
    if last == _SHARE:
        return f"share of {owner}"
    return f"{noun} of {owner}" if dot else noun


def _difference_words(row: EngineDifference) -> str:
    """Return the difference with its interval in brackets: `+0.0 % [-1.7, +1.5]`; shares differ by points (pp)."""
    if row.difference is None:
        return MISSING
    points = row.metric.rpartition(".")[2] == _SHARE
    words = [
        f"{100 * value:+z.{2 if points else 1}f}"
        for value in (row.difference.value, *(row.difference.ci95 or ()))
    ]
    value, *interval = (word.replace("-", "\N{MINUS SIGN}") for word in words)
    text = f"{value} {'pp' if points else '%'}"
    return f"{text} [{', '.join(interval)}]" if interval else text


def explain_first(folder: Path, cases: tuple[CaseRows, ...], check: CrossCheck) -> str:
    """Return what is known of the first difference beyond the bound; empty if there is none.

    plait compares the first trials of both engines sample by sample. Raises DataError for a damaged trial.
    """
    if not check.beyond:
        return ""
    row = check.beyond[0]
    case_words = f" in case {row.case}" if row.case else ""
    head = f"First difference{case_words}: {_metric_words(row.metric)} is "
    head += f"{with_interval(row.metric, row.expected.value, row.expected.ci95)} on {row.reference}"
    if row.measured is None:
        failed = shell_command("plait", "report", folder)
        return f"{head}, and no trial on {row.engine} measured it; `{failed}` lists failed trials."
    head += f" and {with_interval(row.metric, row.measured.value, row.measured.ci95)} on {row.engine}."
    case_pair = [_case(cases, row.case, name) for name in (row.reference, row.engine)]
    seeds = [{trial.seed: trial.index for trial in case.rows} for case in case_pair]
    seed = min(seeds[0].keys() & seeds[1].keys())
    trials = [
        read_trial(trial_folder(folder, case.name, indices[seed]))
        for case, indices in zip(case_pair, seeds, strict=True)
    ]
    part = divergence(trials[0].plan, trials[0].tables, trials[1].tables, check.bound)
    if part is None:
        return (
            f"{head} With seed {seed}, the samples of delivered bytes never differ by more than the bound; "
            "compare further seeds with --repeat."
        )
    return f"{head} {_divergence_words(part, row.reference, row.engine, seed)}"


def _case(cases: tuple[CaseRows, ...], label: str, engine: str) -> CaseRows:
    for case in cases:
        other_settings = ", ".join(
            f"{name}={value}" for name, value in case.settings.items() if name != SETTING
        )
        if other_settings == label and case.settings.get(SETTING) == engine:
            return case
    raise LookupError(label)


def _divergence_words(part: Divergence, reference: str, engine: str, seed: int) -> str:
    first_bytes, second_bytes = part.delivered
    words = (
        f"With seed {seed}, {part.flow} differs from {seconds(part.t_us / 1e6)} on: "
        f"{size(first_bytes)} delivered on {reference}, {size(second_bytes)} on {engine}."
    )
    if not part.states[0]:
        return words
    states = [
        f"{name} has a window of {state['cwnd_segments']} segments, an RTT of {micros(state['rtt_us'])} and "
        f"{state['retransmitted_segments']} retransmissions"
        for name, state in zip((reference, engine), part.states, strict=True)
    ]
    return f"{words} Its subflow from {part.states[0]['address']} differs most there: {'; '.join(states)}."
