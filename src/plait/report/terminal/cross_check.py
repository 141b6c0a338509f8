"""The comparison of engines as a terminal shows it, and the explanation of the first difference."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from plait.analysis.compare.divergence import divergence
from plait.analysis.compare.engines import SETTING
from plait.analysis.values import show, with_interval
from plait.analysis.wording import MISSING, change, micros, seconds, size
from plait.dataset.trial import read_trial, trial_folder
from plait.report.terminal.summary import Screen

if TYPE_CHECKING:
    from pathlib import Path

    from plait.analysis.compare.divergence import Divergence
    from plait.analysis.compare.engines import CrossCheck, EngineDifference
    from plait.analysis.model import Estimate
    from plait.analysis.rows import CaseRows

_COLOURS = {"beyond": "red", "not measured": "red"}


def show_cross_check(check: CrossCheck, explanation: str, file: IO[str] | None = None) -> None:
    """Print the comparison of engines and the explanation to `file` [default: standard output]."""
    screen = Screen(file)
    table = Table(box=box.ASCII2 if screen.plain else box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    several = len({row.case for row in check.differences}) > 1
    columns = [*(["case"] if several else []), "metric", *_headings(check), "difference", "verdict"]
    for name in columns:
        table.add_column(
            name,
            overflow="fold",
            no_wrap=name != "case",
            justify="left" if name in ("case", "metric", "verdict") else "right",
        )
    for row in check.differences:
        cells = [
            *([row.case] if several else []),
            row.metric,
            show(row.metric, row.expected.value),
            MISSING if row.measured is None else show(row.metric, row.measured.value),
            _difference_words(row),
        ]
        if len(check.engines) > 2:
            cells.insert(2 if several else 1, row.engine)
        verdict = Text(row.verdict, style=_COLOURS.get(row.verdict, ""))
        table.add_row(*(Text(screen.text(cell)) for cell in cells), verdict)
    screen.console.print(table)
    screen.console.print()
    beyond, total = len(check.beyond), len(check.differences)
    if not total:
        screen.line("Nothing could be compared: no trial measured goodput, completion, RTT or path shares.")
    elif beyond:
        screen.line(f"{beyond} of {total} differ by more than {check.bound:.1%} or were not measured.")
        screen.line(explanation)
    else:
        screen.line(f"All {total} agree within {check.bound:.1%}.")


def _headings(check: CrossCheck) -> list[str]:
    if len(check.engines) > 2:
        return ["engine", check.engines[0], "measured"]
    return list(check.engines)


def _difference_words(row: EngineDifference) -> str:
    if row.difference is None:
        return MISSING
    if row.metric.endswith(".path_share"):
        return _interval(row.difference, lambda value: f"{100 * value:+.2f} pp")
    return _interval(row.difference, lambda value: change(1 + value))


def _interval(estimate: Estimate, words: Any) -> str:
    if estimate.ci95 is None:
        return str(words(estimate.value))
    low, high = estimate.ci95
    return f"{words(estimate.value)} ({words(low)} to {words(high)})"


def explain_first(folder: Path, cases: tuple[CaseRows, ...], check: CrossCheck) -> str:
    """Return what is known of the first difference beyond the bound; empty if there is none.

    plait compares the first trials of both engines sample by sample. Raises DataError for a damaged trial.
    """
    if not check.beyond:
        return ""
    row = check.beyond[0]
    where = f" in case {row.case}" if row.case else ""
    head = f"First difference{where}: {row.metric} is "
    head += f"{with_interval(row.metric, row.expected.value, row.expected.ci95)} on {row.reference}"
    if row.measured is None:
        return f"{head}, and no trial on {row.engine} measured it; plait run {folder} lists failed trials."
    head += f" and {with_interval(row.metric, row.measured.value, row.measured.ci95)} on {row.engine}."
    found = [_case(cases, row.case, name) for name in (row.reference, row.engine)]
    seeds = [{trial.seed: trial.index for trial in case.rows} for case in found]
    seed = min(seeds[0].keys() & seeds[1].keys())
    trials = [
        read_trial(trial_folder(folder, case.name, indices[seed]))
        for case, indices in zip(found, seeds, strict=True)
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
        others = ", ".join(f"{name}={value}" for name, value in case.settings.items() if name != SETTING)
        if others == label and case.settings.get(SETTING) == engine:
            return case
    raise LookupError(label)


def _divergence_words(part: Divergence, reference: str, engine: str, seed: int) -> str:
    one, other = part.delivered
    words = (
        f"With seed {seed}, {part.flow} differs from {seconds(part.t_us / 1e6)} on: "
        f"{size(one)} delivered on {reference}, {size(other)} on {engine}."
    )
    if not part.states[0]:
        return words
    states = [
        f"{name} has a window of {state['cwnd_segments']} segments, an RTT of {micros(state['rtt_us'])} and "
        f"{state['retransmitted_segments']} retransmissions"
        for name, state in zip((reference, engine), part.states, strict=True)
    ]
    return f"{words} Its subflow from {part.states[0]['address']} differs most there: {'; '.join(states)}."
