"""The data of a study's page: its cases with means and intervals, its factors, metrics, cautions and scenario.

A finished study's cases come from summary.json, so that a page of 10 000 cases opens at once. Those of a study that
runs, or that has no summary, are computed from the trials that exist.
"""

from __future__ import annotations

import gc
import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from plait.advice import words as advice_words
from plait.advice.read import goals_in
from plait.advice.result import GoalAdvice
from plait.analysis.compare.factors import main_factor
from plait.analysis.judge import judged_in
from plait.analysis.labels.cases import labels
from plait.analysis.labels.study_labels import StudyLabels, labels_in
from plait.analysis.metrics.catalogue import heading_of, least_of, metric_of, title_of, unit_of
from plait.analysis.model import CaseSummary, Summary
from plait.analysis.statistics.intervals import describe
from plait.analysis.values import with_interval
from plait.analysis.wording import short_name, value_words
from plait.cache import ContentCache
from plait.cautions import ranked
from plait.dataset.provenance import explain
from plait.dataset.study_file import CaseEntry, StudyFile
from plait.dataset.trial import making_sense
from plait.errors import DataError, printable
from plait.files import MOST_BYTES, Folder
from plait.metrics import COMPARED
from plait.report.figures.axes import telling_settings
from plait.report.headline import headline, sentences
from plait.report.table import metric_order
from plait.scenario.vary.text import strata
from plait.version import __version__
from plait.view.encode import rounded_column
from plait.view.reduced import ReducedTrials

SUMMARY_BYTES = 4 << 20
"""Headlines are made of summaries up to this size when studies are listed."""
FIGURES = ContentCache("views", most=200)
"""Figures of all cases and headlines under the hash of summary.json: to parse it takes seconds for 10 000 cases."""
FORM = 2
"""Grows when `cases_view`, or the headline, has another form."""
FIGURE_FILE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})\.(svg|png|pdf|csv|parquet)")
"""Names of files that pages offer."""


class _Mean(BaseModel):
    mean: float | None
    ci95: tuple[float, float] | None


class CaseFigures(BaseModel):
    """One case in numbers: completed and failed trials, and of each metric its mean and the ends of its interval."""

    name: str
    trials: int
    failed: int
    metrics: dict[str, _Mean]


class _SummarisedCases(BaseModel):
    """The parts of summary.json that a page needs; plait makes no objects of the rest, 80 MB for 10 000 cases."""

    cases: list[CaseFigures]


def apart(folder: Path, study_file: StudyFile) -> str:
    """Return what tells a study from others of its title: the fields that its command sets, its seed and its time."""
    words = shlex.split(study_file.command)
    fields = [f"--set {value}" for word, value in pairwise(words) if word == "--set"]
    written = datetime.fromtimestamp((folder / "study.json").lstat().st_mtime, tz=UTC)
    return " \u00b7 ".join([*fields, f"seed {study_file.seed}", f"{written:%Y-%m-%d %H:%M} UTC"])


def cases_in_summary(folder: Path, study_file: StudyFile) -> dict[str, Any] | None:
    """Return the figures of all cases as summary.json has them (see `cases_view`), through the cache.

    Returns None if it does not exist or is of other cases.

    Raises:
        DataError: it is damaged.
    """
    try:
        content = Folder(folder).read("summary.json", MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read ({error.strerror}); run `plait report`") from error
    names = [entry.name for entry in study_file.cases]

    def figures() -> dict[str, Any] | None:
        cases = _SummarisedCases.model_validate_json(content).cases
        return cases_view(cases) if [case.name for case in cases] == names else None

    try:
        return _kept(names, content, figures)
    except ValidationError as error:
        raise DataError(f"{folder / 'summary.json'}: {explain(error)}; run `plait report`") from error


def _kept(
    subject: object, content: bytes, compute: Callable[[], dict[str, Any] | None]
) -> dict[str, Any] | None:
    """Return what follows from `content`, of summary.json, from the cache or `compute`; `subject` says what it is."""
    hashed = hashlib.sha256(json.dumps([__version__, FORM, subject]).encode())
    hashed.update(content)
    kept = FIGURES.get(hashed.hexdigest())
    if kept is None:
        with _without_cycle_search():
            kept = json.dumps(compute()).encode()
        FIGURES.put(hashed.hexdigest(), kept)
        FIGURES.prune()
    view: dict[str, Any] | None = json.loads(kept)
    return view


def keep_views(summary: Summary, content: bytes) -> None:
    """Keep in the cache what pages show of a summary; `content` is that of summary.json."""
    _kept([case.name for case in summary.cases], content, lambda: cases_view(summary.cases))
    _kept("result", content, lambda: _result_of(summary))


@contextmanager
def _without_cycle_search() -> Iterator[None]:
    """Stop the search for reference cycles while many small objects are made: it takes longer than making them."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            gc.enable()


def case_so_far(trials: ReducedTrials, case: str) -> CaseFigures:
    """Return the figures of a case from the trials that were reduced."""
    rows = trials.of_case(case).values()
    completed = [row for row in rows if row.error is None]
    names = dict.fromkeys(name for row in completed for name in row.metrics)
    metrics = {}
    for name in names:
        stats = describe([row.metrics.get(name) for row in completed], least_of(name))
        if stats.mean is not None:
            metrics[name] = _Mean(mean=stats.mean, ci95=stats.ci95)
    failed = len(rows) - len(completed)
    return CaseFigures(name=case, trials=len(rows), failed=failed, metrics=metrics)


def metric_view(name: str, labels: StudyLabels) -> dict[str, Any]:
    """Return how a page names a metric and shows its values."""
    record = metric_of(name)
    owner = labels.metric_owner(name.rpartition(".")[0])
    heading = heading_of(name) if metric_of(name) is not None else title_of(name, labels)
    return {
        "name": name,
        "title": title_of(name, labels),
        "heading": f"{owner}: {heading}" if owner and owner not in heading else heading,
        "unit": unit_of(name).kind,
        "better": record.better if record is not None else None,
    }


def ordered_metrics(names: Sequence[str], judged: Sequence[str] = ()) -> tuple[str, list[str], list[str]]:
    """Return the primary metric, the metrics that have a column at first, and all of them in order.

    `judged` are the metrics that the scenario names, the most important first.
    """
    asked = [name for name in judged if name in names]
    usual = next((name for name in COMPARED if name in names), names[0] if names else "goodput_bps")
    first = asked or [usual]
    leading = metric_order(names, first)
    rest = sorted(set(names) - set(leading), key=lambda name: ("." in name, name not in COMPARED, name))
    return first[0], leading, [*leading, *rest]


def factors_view(cases: Sequence[CaseEntry]) -> list[dict[str, Any]]:
    """Return each field that varies: its name, its values in words, and the value of each case by position."""
    views = []
    keys = list(dict.fromkeys(key for case in cases for key in case.settings))
    short = [short_name(key) for key in keys]
    for key in keys:
        words = [value_words(case.settings[key]) if key in case.settings else "" for case in cases]
        values = list(dict.fromkeys(words))
        place = {value: number for number, value in enumerate(values)}
        name = short_name(key, 2 if short.count(short_name(key)) > 1 else 1)
        views.append({"key": key, "name": name, "values": values, "of": [place[word] for word in words]})
    return views


def cases_view(cases: Sequence[CaseFigures | CaseSummary]) -> dict[str, Any]:
    """Return the figures of all cases in columns, which are shorter than rows."""
    measured = (name for case in cases for name, stats in case.metrics.items() if stats.mean is not None)
    columns = {name: np.full((3, len(cases)), np.nan) for name in dict.fromkeys(measured)}
    for place, case in enumerate(cases):
        for name, stats in case.metrics.items():
            if stats.mean is not None:
                columns[name][:, place] = (stats.mean, *(stats.ci95 or (np.nan, np.nan)))
    return {
        "trials": [case.trials for case in cases],
        "failed": [case.failed for case in cases],
        "metrics": {name: [rounded_column(row) for row in column] for name, column in columns.items()},
    }


def study_view(study_id: str, name: str, study_file: StudyFile, figures: dict[str, Any]) -> dict[str, Any]:
    """Return everything that the page of a study shows at once; `figures` are those of `cases_view`."""
    primary, leading, names = ordered_metrics(list(figures["metrics"]), judged_in(study_file.scenario))
    called = labels_in(study_file.scenario)
    named = labels(study_file.cases, called.cases)
    return {
        "id": study_id,
        "folder": name,
        **facts_view(study_file),
        "cases": [case.name for case in study_file.cases],
        "labels": [named[case.name] or "all trials" for case in study_file.cases],
        "labelled": bool(study_file.cases) and all(case.name in called.cases for case in study_file.cases),
        "factors": factors_view(study_file.cases),
        "telling": telling_settings(study_file.cases),
        "strata": list(strata(study_file.scenario)),
        "main": main_factor(study_file.cases, strata(study_file.scenario)),
        "baseline": next(
            (i for i, case in enumerate(study_file.cases) if case.name == study_file.baseline), 0
        ),
        "primary": primary,
        "leading": leading,
        "metrics": [metric_view(metric, called) for metric in names],
        "figures": figures,
        "cautions": [
            {"text": c.summary, "code": c.code, "remedy": c.remedy or "", "loud": c.is_loud}
            for c in ranked(study_file.cautions)
        ],
        "scenario": study_file.scenario,
        "scenarioText": json.dumps(study_file.scenario, indent=2, ensure_ascii=False),
    }


def facts_view(study_file: StudyFile) -> dict[str, Any]:
    """Return what a study is, in words."""
    return {
        "title": study_file.heading,
        "scenarioName": study_file.name or "",
        "description": (study_file.description or "").strip(),
        "command": study_file.command,
        "seed": study_file.seed,
        "repeat": study_file.repeat,
        "kernel": study_file.kernel.title or "",
        "engine": study_file.engine or "",
        "plait": study_file.plait_version,
        "caseCount": len(study_file.cases),
    }


def figure_names(folder: Path) -> list[dict[str, Any]]:
    """Return the figures that `plait report` drew, by name, with the formats in which each exists."""
    try:
        files = (Folder(folder) / "figures").names()
    except OSError:
        return []
    formats: dict[str, list[str]] = {}
    for name in files:
        match = FIGURE_FILE.fullmatch(name)
        if match is not None:
            formats.setdefault(match[1], []).append(match[2])
    order = ("svg", "pdf", "png", "csv")
    return [
        {"name": name, "formats": [kind for kind in order if kind in kinds]}
        for name, kinds in formats.items()
        if "svg" in kinds
    ]


def result_view(folder: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any] | None:
    """Return the headline and the sentences below it from summary.json; None without one, or if it is too large."""
    try:
        content = Folder(folder).read("summary.json", most_bytes)
    except OSError:
        return None

    def result() -> dict[str, Any] | None:
        try:
            summary = Summary.model_validate_json(content)
        except ValidationError:
            return None
        return _result_of(summary)

    with making_sense(folder / "summary.json"):
        return _kept("result", content, result)


def _result_of(summary: Summary) -> dict[str, Any]:
    return {
        "headline": [[text, stressed] for text, stressed in headline(summary)],
        "sentences": sentences(summary),
        "digest": summary.digest,
    }


_ROUND = re.compile(r"(?P<goal>[a-z]+)-(worse-)?[0-9]+")


def advice_view(folder: Path) -> dict[str, Any] | None:
    """Return the advice on the goal of a round: its candidates in words, and sentences.

    The folder above the round has the advice. Returns None if the study is no round of an advice that has ended, and
    only the problem if the advice is damaged.
    """
    match = _ROUND.fullmatch(folder.name)
    if match is None:
        return None
    try:
        goals = goals_in(Folder(folder.parent))
    except DataError as error:
        return {"problem": str(error)}
    goal = next((goal for goal in goals if goal.goal == match["goal"]), None)
    return None if goal is None else _goal_view(goal, [other for other in goals if other is not goal])


def _goal_view(goal: GoalAdvice, others: list[GoalAdvice]) -> dict[str, Any]:
    rows = [
        {
            "name": printable(row.name),
            "words": printable(row.words),
            "best": row.name == goal.best,
            "value": with_interval(goal.metric, row.mean, row.ci95),
            "against": advice_words.against(row.against_now),
            "trials": row.trials,
        }
        for row in goal.tried
    ]
    return {
        "goal": goal.goal,
        "metric": title_of(goal.metric),
        "rows": rows,
        "sentences": [
            printable(sentence) for sentence in advice_words.sentences(goal, others, rows=len(rows))
        ],
    }
