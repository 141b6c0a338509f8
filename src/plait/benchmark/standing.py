"""The standing of one entry among others: scores, ranks, and the words, tables and figure that show them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.table import Table

from plait.analysis.wording import MISSING, significant
from plait.benchmark.results_file import Results
from plait.benchmark.score import MARGIN, ClassScore, RankRange, common_subset, ideal_score, places, scores
from plait.benchmark.suite import NAME, PARTS, CellClass, Subset

_LISTED = 3
PART_TITLES = {
    "ideal": "score of the ideal",
    "efficiency": "of ideal",
    "aggregation_benefit": "aggregation benefit",
    "reinjected_bytes": "sent twice, kB",
    "duplicate_bytes": "arrived twice, kB",
    "out_of_order_max_bytes": "out of order, kB",
    "retransmits": "retransmits",
}
SHOWN_PARTS = ("ideal", *PARTS)
_IN_KB = ("reinjected_bytes", "duplicate_bytes", "out_of_order_max_bytes")
SCORE_WORDS = "1 is TCP on the better path, more is better"


@dataclass(frozen=True)
class Standing:
    """One entry, and the others that it is compared with."""

    own: Results
    others: Sequence[Results]
    floor: Results

    @cached_property
    def subset(self) -> Subset:
        """The cells that all of them have."""
        return common_subset([self.own, self.floor, *self.others])

    @cached_property
    def scores(self) -> list[ClassScore]:
        """The scores of the entry."""
        return scores(self.own, self.floor, self.subset)

    @cached_property
    def of_others(self) -> dict[str, dict[CellClass, ClassScore]]:
        """The scores of the other entries, by name and class."""
        return {
            other.entry.name: {row.cell_class: row for row in scores(other, self.floor, self.subset)}
            for other in self.others
        }

    @cached_property
    def places(self) -> dict[CellClass, dict[str, RankRange]]:
        """By class, the place of each entry."""
        return places([self.own, *self.others], self.floor, self.subset)

    def place(self, cell_class: CellClass) -> RankRange | None:
        """Return the place of the entry; None if it did not finish every cell of the class."""
        return self.places[cell_class].get(self.own.entry.name)

    def first(self, cell_class: CellClass) -> str:
        """Return the entries that nothing shows to be behind another one in a class."""
        leaders = [self.label(name) for name, place in self.places[cell_class].items() if place.first == 1]
        more = len(leaders) - _LISTED
        return "; ".join(leaders[:_LISTED]) + (f"; {more} more" if more > 0 else "")

    def label(self, name: str) -> str:
        """Return the name of an entry, with its kernel and version of plait where those of this entry differ."""
        own = self.own.entry
        entry = next(results.entry for results in (self.own, *self.others) if results.entry.name == name)
        marks = [f"Linux {entry.kernel_version}"] if entry.kernel_version != own.kernel_version else []
        marks += [f"plait {entry.plait_version}"] if entry.plait_version != own.plait_version else []
        return f"{name} [{', '.join(marks)}]" if marks else name

    @property
    def title(self) -> str:
        """The entry, with what carried it out."""
        return f"{self.own.entry.name} on Linux {self.own.entry.kernel_version}"

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield class, score, rank and leaders of each class."""
        for score in self.scores:
            place = self.place(score.cell_class)
            failed = f"{len(score.failed)} of {score.cells} failed"
            yield (
                score.cell_class.title,
                score_words(score),
                place.words if place else failed if score.failed else MISSING,
                self.first(score.cell_class),
            )

    def sentences(self) -> Iterator[str]:
        """Yield what the ranks show, and what they leave out."""
        first = [score.cell_class.title for score in self.scores if self._is_at_end(score, 1, first=True)]
        last = [score.cell_class.title for score in self.scores if self._is_at_end(score, 0, first=False)]
        ranked = sum(self.place(score.cell_class) is not None for score in self.scores)
        tied = sum(
            place.first == 1 and place.last == place.entries
            for score in self.scores
            if (place := self.place(score.cell_class)) is not None
        )
        if first:
            yield f"Nothing is shown to be better than it in {len(first)} of {ranked} classes: {_list(first)}."
        if last:
            yield f"Nothing is shown to be worse than it in {len(last)}: {_list(last)}."
        if tied:
            yield f"In {tied} {'class' if tied == 1 else 'classes'}, nothing is shown to differ."
        below = [
            score.cell_class.title
            for score in self.scores
            if score.ci95 is not None and score.ci95[1] < 1 - MARGIN
        ]
        if below:
            yield f"TCP on the better path is better in {len(below)}: {_list(below)}."
        yield from self._failures()
        kernels = {results.entry.kernel_version for results in (self.own, *self.others)}
        if len(kernels) > 1:
            yield f"The entries ran on different kernels: {', '.join(sorted(kernels))}."
        versions = {results.entry.plait_version for results in (self.own, *self.others)}
        if len(versions) > 1:
            yield f"Different versions of plait measured them: {', '.join(sorted(versions))}."

    def _is_at_end(self, score: ClassScore, rank: int, *, first: bool) -> bool:
        place = self.place(score.cell_class)
        if place is None or (place.first == 1 and place.last == place.entries):
            return False
        return place.first == rank if first else place.last == place.entries

    def _failures(self) -> Iterator[str]:
        """Yield a sentence for each of the first reasons why cells failed, so that the summary stays on one page."""
        classes: dict[str, list[str]] = {}
        for score in self.scores:
            if score.failed:
                reason = next(
                    (why for cell in score.failed for why in self.own.cells[cell].failed), "it did not finish"
                )
                words = f"{score.cell_class.title} ({len(score.failed)} of {score.cells} cells)"
                classes.setdefault(reason, []).append(words)
        for reason, titles in list(classes.items())[:_LISTED]:
            yield f"Cells failed in {len(titles)}, and count nothing: {_list(titles)}: {reason}"
        if len(classes) > _LISTED:
            yield f"Cells failed for {len(classes) - _LISTED} further reasons; `plait report` has all of them."

    def parts(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield for each class the score of the ideal and the medians of further metrics, as words by metric."""
        for score in self.scores:
            parts = {"ideal": ideal_score(self.floor, self.subset, score.cell_class), **score.parts}
            yield score.cell_class.title, {metric: _part(metric, parts.get(metric)) for metric in SHOWN_PARTS}

    def figure(self) -> dict[str, Any]:
        """Return the profile as a Vega-Lite specification: a strip for each class, with all entries."""
        rows = [_mark(score, own=True) for score in self.scores if score.score is not None]
        rows += [
            _mark(score, own=False)
            for by_class in self.of_others.values()
            for score in by_class.values()
            if score.score is not None
        ]
        order = [score.cell_class.title for score in self.scores]
        x = {
            "field": "score", "type": "quantitative", "scale": {"type": "log", "nice": False, "padding": 8},
            "title": f"score ({SCORE_WORDS})",
        }  # fmt: skip
        y = {"field": "class", "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 400}}
        own = {"filter": "datum.own"}
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "data": {"values": rows},
            "width": 460,
            "height": {"step": 17},
            "layer": [
                {"mark": {"type": "rule", "color": "@faint"}, "data": {"values": [{"one": 1}]},
                 "encoding": {"x": {"field": "one", "type": "quantitative"}}},
                {"transform": [{"filter": "!datum.own"}],
                 "mark": {"type": "tick", "color": "@faint", "thickness": 1.5}, "encoding": {"x": x, "y": y}},
                {"transform": [own], "mark": {"type": "rule", "color": "@case1", "strokeWidth": 3},
                 "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y}},
                {"transform": [own], "mark": {"type": "point", "filled": True, "size": 60, "color": "@case1"},
                 "encoding": {"x": x, "y": y}},
            ],
        }  # fmt: skip


def score_words(score: ClassScore) -> str:
    """Return for example `1.42 [1.40, 1.45]`."""
    if score.score is None:
        return MISSING
    if score.ci95 is None:
        return significant(score.score)
    return f"{significant(score.score)} [{significant(score.ci95[0])}, {significant(score.ci95[1])}]"


def _part(metric: str, median: float | None) -> str:
    if median is None:
        return MISSING
    if metric in _IN_KB:
        return significant(median / 1000) if median else "0"
    return f"{median * 100:.0f} %" if metric == "efficiency" else significant(median) if median else "0"


def _mark(score: ClassScore, *, own: bool) -> dict[str, Any]:
    low, high = score.ci95 or (score.score, score.score)
    return {"class": score.cell_class.title, "own": own, "score": score.score, "low": low, "high": high}


def _list(names: Sequence[str]) -> str:
    """Return names that may have commas."""
    return "; ".join(names[:_LISTED]) + (f"; and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def table(standing: Standing) -> Table:
    """Return the scores and ranks for a terminal."""
    shown = Table(
        box=None, pad_edge=False, title_justify="left",
        title=f"{NAME}, {standing.subset}: {standing.title}",
    )  # fmt: skip
    shown.add_column("class")
    shown.add_column("score", justify="right", no_wrap=True)
    shown.add_column("rank", justify="right")
    for title, score, rank, _ in standing.rows():
        shown.add_row(title, score, rank)
    return shown


def overall(standing: Standing) -> list[tuple[str, float, int]]:
    """Return each entry with the mean of its best ranks, and the number of classes in which it is ranked."""
    ranks: dict[str, list[int]] = {}
    for by_name in standing.places.values():
        for name, place in by_name.items():
            ranks.setdefault(standing.label(name), []).append(place.first)
    return sorted(
        ((name, statistics.fmean(own), len(own)) for name, own in ranks.items()), key=lambda row: row[1]
    )
