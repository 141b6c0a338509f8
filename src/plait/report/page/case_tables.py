"""The tables of the page with a row for each case, or for each flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.compare.factors import by_stratum
from plait.analysis.metrics.catalogue import heading_of
from plait.analysis.wording import MISSING, capital
from plait.report.page.tables import BarSegment, Cell, Column, Table
from plait.report.page.template import fill
from plait.report.render.theme import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from markupsafe import Markup

    from plait.analysis.model import Summary
    from plait.report.table import Row


@dataclass(frozen=True)
class TableSection:
    """A section of the page with tables."""

    id: str
    title: str
    note: str
    tables: tuple[tuple[str, Table], ...]
    """Each with its label; a table that is alone may have none."""
    more: str = ""


def cases(rows: Sequence[Row], summary: Summary) -> Markup:
    """Return the section with a table of the cases of each network.

    Columns in which nothing was measured are left out.
    """
    tables = []
    by_name = {row.name: row for row in rows}
    for levels, members in by_stratum(summary.cases, summary.strata).items():
        own = [by_name[case.name] for case in members]
        columns = _columns(own, {name.replace("_", " ") for name in summary.strata})
        kept = [(column, cell) for column, cell in columns if any(cell(row).text != MISSING for row in own)]
        body = tuple(tuple(cell(row) for _, cell in kept) for row in own)
        tables.append((", ".join(levels), Table(tuple(column for column, _ in kept), body)))
    note = (
        "Means over trials with their 95 % intervals; minimum and maximum below. A dash means not measured."
    )
    return fill("table", TableSection("cases", "Cases", note, tuple(tables)))


def flows(goodputs: Sequence[tuple[str, list[str]]], rows: Sequence[Row]) -> Markup | str:
    """Return the section with the goodput of each flow: a row per case, or per flow if these are more; or nothing."""
    if not goodputs:
        return ""
    note = "Goodput of each flow in each case."
    if len(rows) > len(goodputs):
        heads = level_columns(rows)
        columns = (*(column for column, _ in heads), *(Column(name) for name, _ in goodputs))
        body = tuple(
            (*(cell(row) for _, cell in heads), *(Cell(cells[number]) for _, cells in goodputs))
            for number, row in enumerate(rows)
        )
    else:
        columns = (Column("Flow", "case"), *(Column(row.label) for row in rows))
        body = tuple((Cell(name), *map(Cell, cells)) for name, cells in goodputs)
    return fill("table", TableSection("flows", "Flows", note, (("", Table(columns, body)),)))


def metric_column(metric: str) -> Column:
    """Return the column of a metric."""
    return Column(capital(heading_of(metric)))


def _columns(rows: Sequence[Row], titled: Collection[str]) -> list[tuple[Column, Callable[[Row], Cell]]]:
    """Return every column that the table of cases can have, and what makes its cells; titles have the rest."""
    first = rows[0] if rows else None
    further = [
        (Column(capital(title)), _further(i)) for i, (title, _) in enumerate(first.more if first else ())
    ]
    leading = first.leading if first else 0
    groups = [
        (Column(f"{name}, each"), _group(i)) for i, (name, *_) in enumerate(first.groups if first else ())
    ]
    return [
        *(level for level in level_columns(rows) if level[0].heading.lower() not in titled),
        (Column("Trials"), lambda row: Cell(row.trials)),
        *further[:leading],
        (metric_column("completion_s"), lambda row: Cell(row.completion)),
        *groups,
        (metric_column("goodput_bps"), _goodput),
        *further[leading:],
        (Column(capital(f"{first.compared_by if first else ''} against baseline".strip())), _against),
        (metric_column("efficiency"), lambda row: Cell(row.efficiency)),
        (metric_column("aggregation_benefit"), lambda row: Cell(row.benefit)),
        (Column("Bytes by path, %"), _shares(rows)),
        (metric_column("jain_index"), lambda row: Cell(row.jain)),
        (metric_column("retransmits"), lambda row: Cell(row.retransmits)),
        (metric_column("rtt_median_us"), lambda row: Cell(row.rtt)),
    ]


def level_columns(rows: Sequence[Row]) -> list[tuple[Column, Callable[[Row], Cell]]]:
    """Return a column for each factor that varies, or that of the cases."""
    first = rows[0].levels if rows else (("Case", ""),)
    return [(Column(capital(name), "case"), _level(number)) for number, (name, _) in enumerate(first)]


def _level(number: int) -> Callable[[Row], Cell]:
    return lambda row: Cell(row.levels[number][1])


def _further(number: int) -> Callable[[Row], Cell]:
    return lambda row: Cell(row.more[number][1])


def _group(number: int) -> Callable[[Row], Cell]:
    def cell(row: Row) -> Cell:
        _, text, published = row.groups[number]
        return Cell(text, _published(published))

    return cell


def _published(text: str) -> tuple[str, ...]:
    return (f"published {text}",) if text else ()


def _goodput(row: Row) -> Cell:
    if row.goodput == MISSING:
        return Cell(MISSING)
    ends = (row.goodput_range,) if row.goodput_range else ()
    return Cell(row.goodput, (*ends, *_published(row.published)))


def _against(row: Row) -> Cell:
    if row.ratio == MISSING:
        return Cell(MISSING)
    return Cell(f"\N{MULTIPLICATION SIGN}{row.ratio}", (f"of {row.baseline}, {row.change}",))


def _shares(rows: Sequence[Row]) -> Callable[[Row], Cell]:
    """Return what makes the cell of a row; a path has the colour of its place in the row that has most of them."""
    longest = max((row.shares for row in rows), key=len, default=())
    places = {name: number for number, (name, _) in enumerate(longest)}

    def cell(row: Row) -> Cell:
        segments = tuple(
            BarSegment(f"{share * 100:.2f}", places.get(name, number) % PATHS, name)
            for number, (name, share) in enumerate(row.shares)
        )
        return Cell(row.share_text, bar=segments)

    return cell
