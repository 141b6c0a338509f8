"""The comparison in a terminal: a table that fits 80 columns, and the result in two or three sentences."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING

from pydantic import ValidationError
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plait.analysis.metrics.catalogue import short_heading_of
from plait.analysis.model import Summary
from plait.analysis.wording import MISSING
from plait.cautions import LOUD
from plait.dataset.provenance import explain
from plait.dataset.trial import making_sense
from plait.errors import DataError, printable
from plait.files import Folder
from plait.report.headline import headline, path_counts, sentences
from plait.report.table import Row, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from plait.cautions import Caution

WIDTH = 80
LEAST_LABEL = 16
"""Characters that a case's name may take before it is folded to make room for a column."""
COLUMN_GAP = 3
PUBLISHED = "published"
FOLDED = "paths %"
"""The column whose cells may take several lines."""
MOST_CAUTIONS = 5
PLAIN = str.maketrans({"\N{EN DASH}": "-", "\N{MINUS SIGN}": "-", "\N{MULTIPLICATION SIGN}": "x"})
"""For terminals without Unicode; the plus-minus sign takes two letters and is replaced apart."""


class Screen:
    """Where results are shown to a person: of files it shows control characters, and never sends them.

    `plain` says that it has no Unicode. Colours are on a terminal only.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        console = Console(file=file or sys.stdout, highlight=False)
        self.console = Console(file=file or sys.stdout, highlight=False, width=min(console.width, WIDTH))
        self.plain = not console.encoding.lower().startswith("utf")

    def text(self, words: str) -> str:
        """Return the words as they can be shown."""
        shown = printable(words)
        return shown.translate(PLAIN).replace("\N{PLUS-MINUS SIGN}", "+-") if self.plain else shown

    def line(self, words: str, style: str = "", *, soft_wrap: bool | None = None) -> None:
        """Show words in lines of their own."""
        self.console.print(Text(self.text(words), style=style), soft_wrap=soft_wrap)


def show(study_dir: Path, cautions: Sequence[Caution] = (), file: IO[str] | None = None) -> None:
    """Print the summary of a result folder, and `cautions`, to `file` [default: standard output].

    Only a terminal shows colours.

    Raises:
        DataError: there is no summary.json in the folder, or it is damaged.
    """
    summary = read_summary(study_dir)
    with making_sense(study_dir):
        screen = Screen(file)
        cases = rows(summary)
        columns = _columns(cases)
        screen.console.print(_table(cases, columns, screen.text, ascii_only=screen.plain))
        screen.console.print()
        line = Text()
        for words, strong in headline(summary, path_counts(summary)):
            line.append(screen.text(words), style="bold" if strong else "")
        screen.console.print(line)
        for sentence in sentences(summary):
            screen.line(sentence)
        if summary.published_source is not None:
            for left_out in _left_out(cases, columns):
                screen.line(left_out)
            screen.line(f"Published: {summary.published_source}.", style="dim")
        for caution in cautions[:MOST_CAUTIONS]:
            screen.line(f"Caution: {caution.summary}", style="bold red" if caution.code in LOUD else "yellow")
        if len(cautions) > MOST_CAUTIONS:
            screen.line(f"{len(cautions) - MOST_CAUTIONS} more cautions are in the report.")
        screen.line(f"Report: {study_dir / 'report.html'}", soft_wrap=True)


def read_summary(study_dir: Path) -> Summary:
    """Return summary.json of a result folder (DataError when it is missing or not what it should be)."""
    path = study_dir / "summary.json"
    try:
        return Summary.model_validate_json(Folder(study_dir).read(path.name))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); make it with `plait report`") from error
    except ValidationError as error:
        raise DataError(f"{path}: not a summary: {explain(error)}; make it with `plait report`") from error


def _fitting(
    columns: list[tuple[str, Callable[[Row], str]]], cases: list[Row]
) -> list[tuple[str, Callable[[Row], str]]]:
    """Return the columns that fit side by side; the report has all."""
    left = WIDTH - min(max(len(row.label) for row in cases), LEAST_LABEL)
    kept = []
    for name, cell in columns:
        widest = 0 if name == FOLDED else max(len(cell(row)) for row in cases)
        left -= COLUMN_GAP + max(len(name), widest)
        if left < 0:
            break
        kept.append((name, cell))
    return kept


def _further(number: int) -> Callable[[Row], str]:
    """Return what reads one of the columns that only some kinds of traffic have."""
    return lambda row: row.more[number][1]


def _group(number: int) -> Callable[[Row], str]:
    """Return what reads the goodput of each flow of a group."""
    return lambda row: row.groups[number][1]


def _published(number: int) -> Callable[[Row], str]:
    """Return what reads the published goodput of each flow of a group."""
    return lambda row: row.groups[number][2] or MISSING


def _columns(cases: list[Row]) -> list[tuple[str, Callable[[Row], str]]]:
    """Return the columns in which anything was measured."""
    further = [(title, _further(number)) for number, (title, _) in enumerate(cases[0].more)]
    leading = cases[0].leading
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("trials", lambda row: row.trials if " of " in row.trials else MISSING),
        *further[:leading],
        (short_heading_of("completion_s"), lambda row: row.completion),
        *((group, _group(number)) for number, (group, _, _) in enumerate(cases[0].groups)),
        (short_heading_of("goodput_bps"), lambda row: row.goodput),
        (PUBLISHED, lambda row: row.published or MISSING),
        *((f"{name} {PUBLISHED}", _published(number)) for number, (name, _, _) in enumerate(cases[0].groups)),
        ("ratio", lambda row: MISSING if row.ratio == MISSING else f"\N{MULTIPLICATION SIGN}{row.ratio}"),
        (short_heading_of("efficiency"), lambda row: row.efficiency),
        *further[leading:],
        (FOLDED, lambda row: row.share_text),
        (short_heading_of("jain_index"), lambda row: row.jain),
    ]
    return [(name, cell) for name, cell in columns if any(cell(row) != MISSING for row in cases)]


def _left_out(cases: list[Row], columns: list[tuple[str, Callable[[Row], str]]]) -> list[str]:
    """Return what was published and has no room in the table, a line for each case and column."""
    kept = [name for name, _ in _fitting(columns, cases)]
    return [
        f"{row.label}: {name} {cell(row)}"
        for name, cell in columns
        if name.endswith(PUBLISHED) and name not in kept
        for row in cases
        if cell(row) != MISSING
    ]


def _table(
    cases: list[Row],
    columns: list[tuple[str, Callable[[Row], str]]],
    text: Callable[[str], str],
    *,
    ascii_only: bool,
) -> Table:
    """Return the table, without the last columns where there is no room."""
    table = Table(box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    kept = _fitting(columns, cases)
    table.add_column("case", overflow="fold", ratio=None)
    for name, _ in kept:
        table.add_column(name, justify="right", no_wrap=name != FOLDED)
    for row in cases:
        cells = [row.trials if name == "trials" else cell(row) for name, cell in kept]
        table.add_row(Text(text(row.label)), *(Text(text(cell)) for cell in cells))
    return table
