"""Showing it: the summary, the figures, the page and the table in the terminal, from a result folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from plait.analysis.model import Summary
from plait.cautions import Caution
from plait.files import Folder
from plait.process_pool import MOST_WORKERS, kept

__all__ = ["build"]

_TRIALS_EACH = 12
"""Trials that take about as long as the start of a worker."""
_MODULES = ("plait.results.reduce", "plait.report.render.render")
"""The modules that workers of a report import."""


def build(
    study_dir: Path,
    *,
    width_mm: float = 175.0,
    column_mm: float = 85.0,
    style: str = "plain",
    progress: Callable[[str, int, int], None] = lambda _, __, ___: None,
    on_summary: Callable[[Summary, bytes], None] = lambda _, __: None,
) -> tuple[Caution, ...]:
    """Rebuild summary.json, figures/ and report.html of the result folder `study_dir` from its data.

    Files of figures are `width_mm` wide, those for a column at most `column_mm`. Their fonts are those of the
    publisher that `style` names, if this machine has them. `progress` is called with what plait
    does, how much of it is done, and how much there is. `on_summary` is called with the summary and the content of its
    file once that is written.

    Returns what to check before trusting the result: cautions of the study, and those that the data give.

    Raises:
        DataError: the folder is no result folder, or a file in it is damaged.
    """
    with kept() as workers:
        # They import their modules while this process does.
        workers.ready(_trials_in(study_dir) // _TRIALS_EACH - 1, _MODULES)
        # Imported here: a command that shows no report should not wait for the tables' library.
        from plait.report.assemble import assemble
        from plait.report.current import keep_cautions

        cautions = assemble(study_dir, (width_mm, column_mm), style, progress, on_summary)
        keep_cautions(study_dir, (width_mm, column_mm, style), cautions)
        return cautions


def _trials_in(study_dir: Path) -> int:
    """Return how many trials a result folder has, or that it has more than any number of workers needs."""
    cases = Folder(study_dir) / "trials"
    count = 0
    with contextlib.suppress(OSError):  # whoever reads the trials says why
        for case in cases.folders():
            count += len((cases / case).folders())
            if count > _TRIALS_EACH * MOST_WORKERS:
                break
    return count
