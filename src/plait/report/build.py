"""Builds everything that a result folder shows, from its data: summary.json, figures/ and report.html."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.summarise import summarise
from plait.errors import DataError
from plait.report.study import read_study

if TYPE_CHECKING:
    from pathlib import Path

    from plait.analysis.model import Summary
    from plait.report.study import StudyData


def build(study_dir: Path) -> None:
    """See `plait.report.build`."""
    study = read_study(study_dir)
    summary = summary_of(study)
    write(study_dir / "summary.json", summary.model_dump_json(indent=1) + "\n")


def summary_of(study: StudyData) -> Summary:
    """Return the summary of a study."""
    name = study.about.name or study.about.heading
    return summarise(study.cases, scenario=name, digest=study.digest, baseline=study.about.baseline)


def write(path: Path, text: str) -> None:
    """Write one file of the report; a reader sees the old one or the new one, never a half.

    Raises:
        DataError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(
            f"{path}: cannot be written ({error.strerror}); check space and permissions, then `plait report`"
        ) from error
