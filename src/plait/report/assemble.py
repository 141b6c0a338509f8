"""Builds everything that a result folder shows, from its data: summary.json, figures/ and report.html."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from plait.analysis.compare.summary import summarise
from plait.analysis.gaps import collected, noted, part
from plait.analysis.judge import judged_in, unmeasured
from plait.analysis.labels.study_labels import labels_in
from plait.analysis.model import Summary
from plait.cautions import Caution
from plait.dataset.trial import making_sense
from plait.errors import DataError
from plait.files import Folder
from plait.report.cached import kept_summary
from plait.report.figures.kind import FigureRequest
from plait.report.figures.selection import wanted
from plait.report.figures.study_figures import DrawnFigure, case_figures, figure_data, static_figures
from plait.report.page.page import page
from plait.report.render.render import Drawing, begin, draw_all, script
from plait.report.representatives import representatives
from plait.results.read import StudyData, read_study


def assemble(
    study_dir: Path,
    widths_mm: tuple[float, float],
    style: str,
    progress: Callable[[str, int, int], None],
    on_summary: Callable[[Summary, bytes], None],
) -> tuple[Caution, ...]:
    """See `plait.report.build`."""
    with making_sense(study_dir), collected() as gaps:
        study = read_study(study_dir, partial(progress, "reading trials"))
        begin()
        summary = summary_of(study)
        content = summary_text(summary).encode()
        write(Folder(study.folder), "summary.json", content)
        on_summary(summary, content)
        cautions = _write_rest(study, summary, widths_mm, style, partial(progress, "drawing figures"))
        return (*gaps.values(), *cautions)


def _write_rest(
    study: StudyData,
    summary: Summary,
    widths_mm: tuple[float, float],
    style: str,
    progress: Callable[[int, int], None],
) -> tuple[Caution, ...]:
    result_folder = Folder(study.folder)
    shown = representatives(study, summary)
    asked = part("figures that the scenario asks for", lambda: wanted(study, summary), [])
    cases = part("figures of cases", lambda: case_figures(study, summary, shown), {})
    drawings = draw_all(
        static_figures(study, summary, shown, *widths_mm, style=style, cases=cases), widths_mm[0], progress
    )
    data = part("data of figures", lambda: figure_data(drawings, study, summary, shown), {})
    empty = part("check for empty figures", lambda: _empty(asked, cases), [])
    study = replace(study, cautions=(*study.cautions, *unmeasured(summary), *empty))
    write(result_folder, "report.html", page(study, summary, shown, script(), cases).encode())
    _write_figures(result_folder / "figures", drawings, data)
    return study.cautions


def _write_figures(figures: Folder, drawings: Mapping[str, Drawing], data: Mapping[str, str]) -> None:
    for name, drawing in drawings.items():
        for suffix, content in drawing.files.items():
            write(figures, f"{name}.{suffix}", content)
    for name, text in data.items():
        write(figures, f"{name}.csv", text.encode())
    _remove_others(figures, set(drawings))


def _remove_others(figures: Folder, drawn: set[str]) -> None:
    """Remove figures of an earlier state of the data: they would contradict the report beside them."""
    try:
        for name in figures.names():
            stem, _, suffix = name.rpartition(".")
            if suffix in {"svg", "png", "pdf", "csv"} and stem and stem not in drawn:
                figures.remove(name)
    except OSError as error:
        raise DataError(
            f"{error.filename}: cannot be removed ({error.strerror}); remove it by hand"
        ) from error


def _empty(asked: Sequence[FigureRequest], drawn: Mapping[str, DrawnFigure]) -> list[Caution]:
    """Return the figures that the scenario asks for and for which there are no data."""
    failed = " ".join(caution.message for caution in noted())
    return [
        Caution(
            code="FIGURE_EMPTY",
            message=f"figure {request.name} is empty: no data of {request.metric} for kind {request.kind}",
            remedy="see in summary.json which metrics were measured, and which fields vary in several steps",
        )
        for request in asked
        if request.name not in drawn and f"figure {request.name}:" not in failed
    ]


def read_partly(folder: Path) -> StudyData:
    """Return the study in `folder`, without metrics that an analysis could not compute; cautions name these.

    Raises:
        DataError: the folder is no result folder, or a file in it is damaged.
    """
    with collected() as gaps:
        study = read_study(folder)
    return replace(study, cautions=(*gaps.values(), *study.cautions))


def summary_of(study: StudyData) -> Summary:
    """Return the summary of a study."""
    return kept_summary(study, lambda: _summary_of(study))


def _summary_of(study: StudyData) -> Summary:
    study_file = study.about
    return summarise(
        study.cases,
        scenario=study_file.name or study_file.heading,
        digest=study.digest,
        baseline=study_file.baseline,
        published=study.published,
        judged=judged_in(study_file.scenario),
        design=study.design,
        labels=labels_in(study_file.scenario),
    )


def summary_text(summary: Summary) -> str:
    """Return the text of summary.json."""
    return summary.model_dump_json(indent=1) + "\n"


def write(folder: Folder, name: str, content: bytes) -> None:
    """Write one file of the report; a reader sees the old one or the new one, never a half.

    Raises:
        DataError: it cannot be written.
    """
    try:
        folder.write(name, content)
    except OSError as error:
        raise DataError(
            f"{folder}/{name}: cannot be written ({error.strerror}); check space and permissions, then `plait report`"
        ) from error
