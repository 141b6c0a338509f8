"""What each varied setting does in a figure: which one runs along the axis, which has colours, and which has panels.

A case is one value of each setting. A figure of many cases is readable when each setting has one of these roles, and
no label repeats all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.compare.factors import main_factor
from plait.report.figures.axes import factors, label_without

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.rows import CaseRows
    from plait.report.figures.axes import Factor
    from plait.report.figures.kind import FigureRequest

MOST_COLOURS = 6
"""More kinds of points would not be distinguishable."""
MOST_PANELS = 12


@dataclass(frozen=True)
class CaseLabels:
    """A role that several settings may share: the label of each case by name, and the labels in their order."""

    title: str
    of: dict[str, str]

    @property
    def order(self) -> list[str]:
        """The labels, each once."""
        return list(dict.fromkeys(self.of.values()))


@dataclass(frozen=True)
class Roles:
    """The setting along the axis, and the labels of the colour and of the panel of each case."""

    x: CaseLabels
    colour: CaseLabels
    panel: CaseLabels

    @property
    def hues(self) -> int:
        """The number of colours."""
        return len(self.colour.order)

    def panels(self) -> list[tuple[str, list[str]]]:
        """Return each panel's label with the names of its cases; at most `MOST_PANELS`."""
        return [
            (label, [name for name, other in self.panel.of.items() if other == label])
            for label in self.panel.order[:MOST_PANELS]
        ]


def roles_of(cases: Sequence[CaseRows], wanted: FigureRequest) -> Roles | None:
    """Return the roles of what varies in these cases; None when nothing varies.

    What the figure does not say follows from the numbers of values: most along the axis, then colours. Of settings with
    as many values, the compared one has the colours.
    """
    varied = factors(cases)
    given = [wanted.x, wanted.color, wanted.facets]
    compared = main_factor(cases)
    left = sorted(
        (factor for factor in varied if factor.setting not in given),
        key=lambda factor: (-factor.steps, factor.setting == compared),
    )
    x = _chosen(varied, wanted.x) or (left.pop(0) if left else None)
    if x is None:
        return None
    colour = _chosen(varied, wanted.color)
    if colour is None and wanted.color is None:
        colour = next((factor for factor in left if factor.steps <= MOST_COLOURS), None)
    panel = _chosen(varied, wanted.facets)
    taken = [factor.setting for factor in (x, colour) if factor is not None]
    own = [x.setting] if colour is None else taken
    return Roles(
        _part(cases, x),
        CaseLabels("", dict.fromkeys((case.name for case in cases), ""))
        if colour is None
        else _part(cases, colour),
        _rest(cases, varied, own) if panel is None or len(varied) > 3 else _part(cases, panel, named=True),
    )


def panels_of(cases: Sequence[CaseRows], wanted: FigureRequest, most: int) -> Roles | None:
    """Return the roles where a figure has an entry for each case, and needs panels because there are more than `most`.

    Entries of a panel differ in the setting along the axis (`x`, or `color` of lines). None when one panel is enough.
    """
    asked = wanted.x or wanted.color
    if len(cases) <= most and asked is None and wanted.facets is None:
        return None
    varied = factors(cases)
    left = [factor for factor in varied if factor.setting != wanted.facets]
    entries = _chosen(varied, asked) or max(
        (factor for factor in left if factor.steps <= most), key=lambda factor: factor.steps, default=None
    )
    if entries is None or len(varied) < 2:
        return None
    of = _with_unit(_part(cases, entries), entries)
    panel = _rest(cases, varied, [entries.setting])
    return Roles(of, of, panel)


def _chosen(varied: Sequence[Factor], setting: str | None) -> Factor | None:
    return next((factor for factor in varied if factor.setting == setting), None)


def _part(cases: Sequence[CaseRows], factor: Factor, *, named: bool = False) -> CaseLabels:
    texts = dict(zip((case.name for case in cases), factor.texts, strict=True))
    order = {text: number for number, text in enumerate(factor.order)}
    ordered = sorted(texts, key=lambda name: order[texts[name]])
    return CaseLabels(
        factor.title, {name: factor.labelled(texts[name]) if named else texts[name] for name in ordered}
    )


def _with_unit(labels: CaseLabels, factor: Factor) -> CaseLabels:
    """Return the labels of a factor with its unit, which its title then lacks: rows have no title."""
    if not factor.unit:
        return labels
    return CaseLabels(factor.words, {name: f"{text} {factor.unit}" for name, text in labels.of.items()})


def _rest(cases: Sequence[CaseRows], varied: Sequence[Factor], taken: Sequence[str]) -> CaseLabels:
    """Return the labels of the panels: what remains when axis and colours have their settings."""
    return CaseLabels("", {case.name: label_without(case, taken, varied) for case in cases})
