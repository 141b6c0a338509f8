"""The comparison in a terminal: a table that fits 80 columns, and the result in two or three sentences."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from itertools import accumulate
from pathlib import Path
from typing import IO

from pydantic import ValidationError
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from plait.analysis.compare.factors import by_stratum
from plait.analysis.labels.cases import labels
from plait.analysis.model import Summary
from plait.analysis.wording import MISSING
from plait.cautions import Caution, by_kind
from plait.dataset.provenance import explain
from plait.dataset.trial import making_sense
from plait.errors import DataError, printable, shell_command
from plait.files import Folder
from plait.report.headline import headline, sentences
from plait.report.table import PUBLISHED, Column, chosen, factors_of, value_columns
from plait.report.terminal.fitting import fit, table

WIDTH = 80
TABLE_WIDTH = 120
"""Words are easier to read in shorter lines; a table uses a wider terminal."""
MOST_KINDS = 5
PLAIN = str.maketrans(
    {
        "\N{EN DASH}": "-",
        "\N{MINUS SIGN}": "-",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{GREEK SMALL LETTER ETA}": "eta",
        "\N{SUPERSCRIPT TWO}": "^2",
    }
)
"""For terminals without Unicode; the plus-minus sign takes two letters and is replaced apart."""


class Screen:
    """Where results are shown to a person: of files it shows control characters, and never sends them.

    `plain` says that it has no Unicode. Colours are on a terminal only.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        console = Console(file=file or sys.stdout, highlight=False)
        self.console = Console(file=file or sys.stdout, highlight=False, width=min(console.width, WIDTH))
        self.tables = Console(file=file or sys.stdout, highlight=False, width=min(console.width, TABLE_WIDTH))
        self.plain = not console.encoding.lower().startswith("utf")

    def text(self, words: str) -> str:
        """Return the words as they can be shown."""
        shown = printable(words)
        return shown.translate(PLAIN).replace("\N{PLUS-MINUS SIGN}", "+-") if self.plain else shown

    def line(self, words: str, style: str = "", *, whole: bool = False) -> None:
        """Show words in lines of their own.

        A line that is `whole`, or has a word without room, as a long path, is left to the terminal to wrap, so that
        it can be copied.
        """
        text = self.text(words)
        whole = whole or any(cell_len(word) > self.console.width for word in text.split())
        self.console.print(Text(text, style=style), soft_wrap=whole)


def show(
    study_dir: Path,
    cautions: Sequence[Caution] = (),
    file: IO[str] | None = None,
    *,
    wanted: Sequence[str] = (),
) -> None:
    """Print the summary of a result folder, and `cautions`, to `file` [default: standard output].

    Only a terminal shows colours. `wanted` names the columns of the table [default: factors, then what has room].

    Raises:
        RequestError: there is no such column.
        DataError: there is no summary.json in the folder, or it is damaged.
    """
    summary = read_summary(study_dir)
    with making_sense(study_dir):
        screen = Screen(file)
        columns = factors_of(summary) + value_columns(summary) if not wanted else chosen(summary, wanted)
        command = shell_command("plait", "report", study_dir, "--columns", "NAME,..")
        networks = by_stratum(summary.cases, summary.strata).values()
        order = [summary.cases.index(case) for network in networks for case in network]
        ends = set(accumulate(map(len, networks)))
        no_room = show_table(screen, [column.in_order(order) for column in columns], command, ends)
        screen.console.print()
        line = Text()
        for words, strong in headline(summary):
            line.append(screen.text(words), style="bold" if strong else "")
        screen.console.print(line)
        for sentence in sentences(summary):
            screen.line(sentence)
        if summary.published_source is not None:
            for unshown in _unshown_published(summary, no_room):
                screen.line(unshown)
            screen.line(f"Published: {summary.published_source}.", style="dim")
        kinds = by_kind(cautions)
        for kind in kinds[:MOST_KINDS]:
            remark = f" ({len(kind) - 1} more of this kind)" if len(kind) > 1 else ""
            style = "bold red" if kind[0].is_loud else "yellow"
            screen.line(f"Caution: {kind[0].summary}{remark}", style=style)
        if len(cautions) > len(kinds[:MOST_KINDS]):
            screen.line(f"The report lists all {len(cautions)} cautions.")
        screen.line(f"Report: {study_dir / 'report.html'}", whole=True)


def read_summary(study_dir: Path) -> Summary:
    """Return summary.json of a result folder (DataError when it is missing or not what it should be)."""
    path = study_dir / "summary.json"
    try:
        return Summary.model_validate_json(Folder(study_dir).read(path.name))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); make it with `plait report`") from error
    except ValidationError as error:
        raise DataError(f"{path}: not a summary: {explain(error)}; make it with `plait report`") from error


def _unshown_published(summary: Summary, columns: Sequence[Column]) -> list[str]:
    """Return what was published and has no room in the table, a line for each case and column."""
    words = labels(summary.cases)
    return [
        f"{words[case.name] or case.name}: {column.name} {cell}"
        for column in columns
        if column.name.endswith(PUBLISHED)
        for case, cell in zip(summary.cases, column.cells, strict=True)
        if cell != MISSING
    ]


def show_table(
    screen: Screen, columns: Sequence[Column], command: str, sections: Collection[int] = ()
) -> list[Column]:
    """Print the columns that fit, name the others and the command that chooses, and return these.

    There is a line above the rows in `sections`.
    """
    kept, no_room = fit(columns, screen.tables.width)
    screen.tables.print(
        table(kept, screen.tables.width, screen.text, ascii_only=screen.plain, sections=sections)
    )
    if no_room:
        names = ", ".join(column.name for column in no_room)
        screen.line(f"No room for: {names}. Choose columns with", style="dim")
        screen.line(f"  {command}", style="dim", whole=True)
    return no_room
