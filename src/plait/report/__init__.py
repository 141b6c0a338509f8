"""Showing it: the summary, the figures, the page and the table in the terminal, from a result folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["build"]


def build(study_dir: Path) -> None:
    """Rebuild summary.json, figures/ and report.html of the result folder `study_dir` from its data.

    Raises:
        DataError: the folder is no result folder, or a file in it is damaged.
    """
    # Imported here: a command that shows no report should not wait for the tables' library.
    from plait.report.build import build as build_now

    build_now(study_dir)
