"""Two result folders side by side: what they are, and the comparison as a terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from plait.analysis.compare.studies import compare_studies
from plait.analysis.judge import judged_in
from plait.analysis.metrics.catalogue import short_heading_of
from plait.analysis.model import CaseComparison, StudiesComparison
from plait.analysis.statistics.tests import ASSUMES
from plait.analysis.values import show
from plait.analysis.wording import MISSING, change
from plait.dataset.study_file import StudyFile
from plait.dataset.trial import making_sense
from plait.errors import RequestError
from plait.metrics import COMPARED, JUDGED_METRICS, is_judged, judged_metric
from plait.report.table import Column, factor_columns, picked
from plait.report.terminal.summary import Screen, show_table
from plait.results.read import read_study

MOST_SENTENCES = 12
ON_REQUEST = ("pairs", "p_holm")
"""Columns that only `--columns` shows."""
_MANY_FIELDS = 6
_COLOURS = {"worse": "red", "not measured": "red", "better": "green"}


def compare_folders(
    first: Path, second: Path, *, metrics: Sequence[str], tolerance: float | None = None
) -> tuple[StudiesComparison, list[str]]:
    """Return the comparison of two result folders, and what else is different about them, a line each.

    Without `metrics`, those decide by which the scenario of the second study judges, or else all that represent a
    kind of traffic. Without `tolerance`, the smallest difference of interest of each metric decides.

    Raises:
        RequestError: a metric cannot be judged, or there is nothing that both studies measured.
        DataError: a folder is no result folder, or damaged.
    """
    metrics = tuple(map(judged_metric, metrics))
    for metric in metrics:
        if not is_judged(metric):
            raise RequestError(
                f"--metric {metric}: it cannot be judged; these can: {', '.join(JUDGED_METRICS)}"
            )
    first_study, second_study = read_study(first), read_study(second)
    metrics = metrics or judged_in(second_study.about.scenario) or tuple(COMPARED)
    with making_sense(second):
        comparison = compare_studies(
            first_study.cases,
            second_study.cases,
            metrics=metrics,
            tolerance=tolerance,
            design=second_study.design,
        )
    if not comparison.cases:
        shares_cases = len(first_study.cases) > len(comparison.only_first)
        reason = (
            f"neither measured {', '.join(metrics)}"
            if shares_cases
            else "they have no case with the same settings"
        )
        raise RequestError(f"comparing {first} with {second}: {reason}; choose studies of the same scenario")
    with making_sense(second):
        return comparison, differences(first_study.about, second_study.about)


def differences(first_study: StudyFile, second_study: StudyFile) -> list[str]:
    """Return in what the two studies themselves differ, a line each: kernel, versions, seed, scenario."""
    facts = [
        ("scenario", first_study.heading, second_study.heading),
        ("kernel", _kernel(first_study), _kernel(second_study)),
        ("plait", first_study.plait_version, second_study.plait_version),
        ("agent", (first_study.agent_sha256 or MISSING)[:12], (second_study.agent_sha256 or MISSING)[:12]),
        ("seed", str(first_study.seed), str(second_study.seed)),
        ("repeats", str(first_study.repeat), str(second_study.repeat)),
    ]
    lines = [f"{name}: {old} then, {new} now" for name, old, new in facts if old != new]
    if first_study.scenario != second_study.scenario and first_study.heading == second_study.heading:
        lines[:0] = _changed_fields(first_study.scenario, second_study.scenario)
    return list(dict.fromkeys(lines))


def _changed_fields(first_study: object, second_study: object) -> list[str]:
    """Return a line for each field of the scenario that differs, the first few."""
    old_fields, new_fields = dict(_fields(first_study)), dict(_fields(second_study))
    changed = [
        path
        for path in {**old_fields, **new_fields}
        if old_fields.get(path, MISSING) != new_fields.get(path, MISSING)
    ]
    lines = [
        f"{path}: {old_fields.get(path, MISSING)} then, {new_fields.get(path, MISSING)} now"
        for path in changed
    ]
    further = len(lines) - _MANY_FIELDS
    return (
        lines
        if further <= 0
        else [
            *lines[:_MANY_FIELDS],
            f"and {further} more field{'s' * (further > 1)}; see scenario in each study.json",
        ]
    )


def _fields(part: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the fields of a scenario as study.json has it that hold no others, by their dotted paths."""
    inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    if not inside:
        yield path, part
    for name, value in inside:
        yield from _fields(value, f"{path}.{name}" if path else str(name))


def _kernel(study_file: StudyFile) -> str:
    identity = (study_file.kernel.identity or MISSING).removeprefix("sha256:")[:12]
    version = study_file.kernel.version or MISSING
    return version if version[:1].isalpha() else f"{version} ({identity})"  # captures show none


def show_comparison(
    comparison: StudiesComparison,
    lines: Sequence[str],
    file: IO[str] | None = None,
    *,
    wanted: Sequence[str] = (),
) -> None:
    """Print the comparison, then `lines`, then its conclusion to `file` [default: standard output].

    Only a terminal shows colours. `wanted` names the columns of the table [default: factors, then what has room].

    Raises:
        RequestError: there is no such column.
    """
    screen = Screen(file)
    known = _columns(comparison.cases)
    columns = picked(known, wanted) if wanted else [c for c in known if c.name not in ON_REQUEST]
    show_table(screen, columns, "--columns NAME,..")
    screen.console.print()
    notable = [row for row in comparison.cases if not row.identical]
    for row in sorted(notable, key=lambda row: row.verdict not in {"worse", "not measured"})[:MOST_SENTENCES]:
        screen.line(row.sentence)
    for test in dict.fromkeys(row.test for row in comparison.cases if row.test is not None):
        screen.line(f"{test[0].upper()}{test[1:]} assumes: {ASSUMES[test]}.", style="dim")
    for side, names in (("first", comparison.only_first), ("second", comparison.only_second)):
        if names:
            screen.line(f"Only in the {side} study: {', '.join(names[:5])}{', ..' * (len(names) > 5)}")
    for line in lines:
        screen.line(line)
    screen.line(comparison.sentence, style="bold")


def _heading(metric: str) -> str:
    """Return what the table of cases calls a metric; of a flow, with its name in front."""
    owner, heading = metric.rpartition(".")[0], short_heading_of(metric)
    return f"{owner}: {heading}" if owner and owner not in heading else heading


def _columns(rows: Sequence[CaseComparison]) -> list[Column]:
    """Return every column that the table can have: factors, then what changed."""
    several = len({row.metric for row in rows}) > 1
    cells: dict[str, list[str]] = {
        **({"metric": [_heading(row.metric) for row in rows]} if several else {}),
        "verdict": [row.verdict for row in rows],
        "before": [show(row.metric, row.before.mean) for row in rows],
        "after": [show(row.metric, row.after.mean) for row in rows],
        "change": [MISSING if row.ratio is None else change(row.ratio.value) for row in rows],
        "pairs": [MISSING if row.pairs is None else str(row.pairs) for row in rows],
        "p_holm": [MISSING if row.p_holm is None else f"{row.p_holm:.2g}" for row in rows],
    }
    words = {"metric", "verdict"}
    return [
        *factor_columns(rows, [row.label or row.case for row in rows]),
        *(
            Column(name, name, tuple(texts), folds=name in words, is_words=name in words, styles=_COLOURS)
            for name, texts in cells.items()
        ),
    ]
