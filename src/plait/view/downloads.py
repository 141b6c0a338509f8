"""Figures and tables of the pages as files: drawn and converted when they are asked for.

ID/figures/NAME.svg            a figure of the study, as `plait report` drew it (pdf, png, csv)
ID/cases.csv, ID/trials.csv    the cases and the trials with their metrics (parquet)
ID/C/N/goodput.svg             a figure over time of a trial (rtt, cwnd, queue, network; pdf, png)
ID/C/N/subflows.csv            a table of a trial (parquet)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from plait.analysis.labels.labelled import labelled
from plait.analysis.labels.study_labels import StudyLabels, labels_in
from plait.analysis.metrics.programs import with_connections, without_control
from plait.analysis.series import trial_series
from plait.dataset.model import ALL_TABLES
from plait.dataset.trial import Trial, making_sense, read_trial, trial_folder
from plait.files import Folder, UnfitError
from plait.report.drawing.network import coloured_paths, draw
from plait.report.figures.kinds.over_time_chart import KINDS, chart, frame_of
from plait.report.figures.marks import SCHEMA
from plait.report.render.paper import PAGE_MM, fitted
from plait.report.render.render import Drawing, draw_all
from plait.report.render.theme import LIGHT
from plait.results.long_table import table_content
from plait.view.site import OpenStudy, StudySite, UnknownPageError, case_name, finish
from plait.view.study_data import FIGURE_FILE

TYPES = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
TABLE_TYPES = ("csv", "parquet")


def download(site: StudySite, parts: Sequence[str]) -> tuple[str, str, bytes]:
    """Return the name, the media type and the content of the file at a path of the site.

    Raises:
        UnknownPageError: there is no such file.
        PlaitError: its data are damaged, or the machine cannot draw it.
    """
    match = FIGURE_FILE.fullmatch(parts[-1])
    if match is None or not all(part.isascii() for part in parts):  # Arabic digits are decimal, too
        raise UnknownPageError
    stem, suffix = match[1], match[2]
    study = site.study(parts[0])
    with making_sense(study.folder):
        content = _content(study, parts, stem, suffix)
    return f"{'-'.join((*parts[1:-1], stem))}.{suffix}", TYPES[suffix], content


def _content(study: OpenStudy, parts: Sequence[str], stem: str, suffix: str) -> bytes:
    """Return the content of a file of a study (UnknownPageError)."""
    if len(parts) == 3 and parts[1] == "figures":
        return _kept_figure(study, f"{stem}.{suffix}")
    if len(parts) == 2 and stem in {"cases", "trials"} and suffix in TABLE_TYPES:
        return table_content(study_table(study, stem), suffix)
    if len(parts) == 4 and parts[1].isdecimal() and parts[2].isdecimal() and len(parts[1] + parts[2]) < 12:
        return _of_trial(study, int(parts[1]), int(parts[2]), stem, suffix)
    raise UnknownPageError


def _kept_figure(study: OpenStudy, name: str) -> bytes:
    """Return a file of the folder's `figures`."""
    try:
        return (Folder(study.folder) / "figures").read(name)
    except (FileNotFoundError, NotADirectoryError, UnfitError) as error:
        raise UnknownPageError from error


def study_table(study: OpenStudy, name: str) -> pl.DataFrame:
    """Return the table of cases, or of trials, with a column for each factor and metric."""
    study_file = study.study_file()
    finish(study, [case.name for case in study_file.cases])
    records: list[dict[str, Any]] = []
    for case in study_file.cases:
        head = {"case": case.name, **{key: _plain(value) for key, value in case.settings.items()}}
        if name == "trials":
            records += [
                {**head, "trial": number, "seed": row.seed, "error": row.error, **row.metrics}
                for number, row in study.trials.of_case(case.name).items()
            ]
        else:
            figures = study.figures(case.name)
            values = {
                f"{metric}{ending}": value
                for metric, stats in figures.metrics.items()
                for ending, value in zip(
                    ("", "_ci95_low", "_ci95_high"), (stats.mean, *(stats.ci95 or (None, None))), strict=True
                )
            }
            records.append({**head, "trials": figures.trials, "failed": figures.failed, **values})
    return pl.DataFrame(records, infer_schema_length=None, strict=False)


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | str) else str(value)


def _of_trial(study: OpenStudy, case: int, number: int, stem: str, suffix: str) -> bytes:
    name = case_name(study.study_file(), case)
    trial = read_trial(trial_folder(study.folder, name, number))
    if trial.provenance.status != "ok":
        raise UnknownPageError
    if stem in ALL_TABLES and suffix in TABLE_TYPES:
        if stem not in trial.tables:
            raise UnknownPageError
        return table_content(trial.tables[stem], suffix)
    labels = labels_in(study.study_file().scenario)
    figures = trial_figures(trial, (stem,), labels) if suffix not in TABLE_TYPES else {}
    if stem not in figures:
        raise UnknownPageError
    return figures[stem].files[suffix]


def trial_figures(trial: Trial, names: Sequence[str], labels: StudyLabels) -> dict[str, Drawing]:
    """Return the figures of a trial as they are printed: `KINDS` over time, and the network, with these labels.

    Raises DataError and MachineError.
    """
    with making_sense(trial.folder):
        called, tables = labelled(trial.plan, trial.tables, labels)
        plan = with_connections(called, tables)
        series = trial_series(plan, tables)
        frame = frame_of([series])
        sources: dict[str, dict[str, Any] | str] = {}
        for kind in [name for name in names if name in KINDS]:
            spec = chart(series, kind, frame, legend=True)
            if spec is not None:
                sources[kind] = fitted({"$schema": SCHEMA, **spec}, PAGE_MM)
        if "network" in names:
            shown = without_control(plan)
            sources["network"] = draw(
                shown, coloured_paths(shown, series, LIGHT), LIGHT, legend=True, called=labels
            )
    return draw_all(sources)
