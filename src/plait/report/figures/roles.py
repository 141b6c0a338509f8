"""The role of each varied setting in a figure: axis, colours or panels.

A case is one value of each setting. A figure of many cases is readable when each setting has one of these roles, and
no label repeats all of them. `plait.report.figures.networks` sets different networks apart before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plait.analysis.compare.factors import main_factor
from plait.analysis.labels.cases import short_labels
from plait.analysis.model import CaseSummary
from plait.analysis.rows import CaseRows
from plait.report.figures.axes import Factor, factors, labels_without
from plait.report.figures.kind import FigureRequest

MOST_SERIES = 8
"""Colours, lines or kinds of points in one panel; more would not be distinguishable."""


@dataclass(frozen=True)
class CaseLabels:
    """A role that several settings may share: the label of each case by name, and the labels in their order."""

    title: str
    of: dict[str, str]
    factor: Factor | None = None
    """The only setting of the role, where the labels are its values alone."""

    def panel_title(self, label: str) -> str:
        """Return the title of the panel of one of the labels."""
        return self.factor.labelled(label) if self.factor else f"{self.title} {label}".strip()

    @property
    def order(self) -> list[str]:
        """The labels, each once."""
        return list(dict.fromkeys(self.of.values()))

    @property
    def groups(self) -> list[tuple[str, list[str]]]:
        """Each label with the names of its cases."""
        names: dict[str, list[str]] = {}
        for name, label in self.of.items():
            names.setdefault(label, []).append(name)
        return list(names.items())


@dataclass(frozen=True)
class Roles:
    """The setting along the axis, and the labels of the colour and of the panel of each case."""

    x: CaseLabels
    colour: CaseLabels
    panel: CaseLabels


def roles_of(cases: Sequence[CaseRows], wanted: FigureRequest) -> Roles | None:
    """Return the roles of what varies in these cases; None when nothing varies.

    What the figure does not say follows from the numbers of values: most along the axis, then colours. Of settings with
    as many values, the compared one has the colours.
    """
    varied = factors(cases)
    chosen_settings = [wanted.x, wanted.color, wanted.facets]
    compared = main_factor(cases)
    remaining = sorted(
        (factor for factor in varied if factor.setting not in chosen_settings),
        key=lambda factor: (-factor.steps, factor.setting == compared),
    )
    x = _chosen(varied, wanted.x) or (remaining.pop(0) if remaining else None)
    if x is None:
        return None
    colour = _chosen(varied, wanted.color)
    if colour is None and wanted.color is None:
        colour = next((factor for factor in remaining if factor.steps <= MOST_SERIES), None)
    taken = [factor.setting for factor in (x, colour) if factor is not None]
    return Roles(
        level_labels(cases, x),
        CaseLabels("", dict.fromkeys((case.name for case in cases), ""))
        if colour is None
        else level_labels(cases, colour),
        panel_labels(cases, taken, wanted.facets),
    )


def panels_of(
    cases: Sequence[CaseRows], wanted: FigureRequest, limit: int, alone: int | None = None
) -> Roles | None:
    """Return the roles where a figure has an entry for each case, and needs panels because there are more than `limit`.

    Entries of a panel differ in the setting along the axis (`x`, or `color` of lines). Where several things do not set
    the cases apart, one panel has up to `alone` of them, and more are divided in their order. None when one panel is
    enough.
    """
    asked = wanted.x or wanted.color
    if len(cases) <= limit and asked is None and wanted.facets is None:
        return None
    varied = factors(cases)
    remaining = [factor for factor in varied if factor.setting != wanted.facets]
    entries = _chosen(varied, asked) or max(
        (factor for factor in remaining if factor.steps <= limit),
        key=lambda factor: factor.steps,
        default=None,
    )
    if len(varied) < 2 or entries is None:
        return _in_order(cases, limit) if len(cases) > (alone or limit) else None
    entry_labels = _with_unit(level_labels(cases, entries), entries)
    return Roles(entry_labels, entry_labels, panel_labels(cases, [entries.setting], wanted.facets))


def _in_order(cases: Sequence[CaseRows], limit: int) -> Roles:
    """Return panels of `limit` cases, each under its own label, in the order of the study."""
    names = short_labels(cases)
    entry_labels = CaseLabels("", {case.name: names[case.name] for case in cases})
    panels: dict[str, str] = {}
    for start in range(0, len(cases), limit):
        part = cases[start : start + limit]
        panels |= dict.fromkeys((case.name for case in part), f"Cases {start + 1} to {start + len(part)}")
    return Roles(entry_labels, entry_labels, CaseLabels("", panels))


def panel_labels(
    cases: Sequence[CaseRows | CaseSummary], taken: Sequence[str], facets: str | None = None
) -> CaseLabels:
    """Return the label of the panel of each case: by what remains when axis and colours have the settings `taken`.

    Panels have the order of the values of these settings, in every kind of figure; those of `facets` come first.
    """
    labels = labels_without(cases, taken)
    remaining = [factor for factor in factors(cases) if factor.setting not in taken]
    remaining.sort(key=lambda factor: factor.setting != facets)
    places = [{text: place for place, text in enumerate(factor.order)} for factor in remaining]
    texts = [factor.texts for factor in remaining]
    order = sorted(
        range(len(cases)),
        key=lambda position: [place[column[position]] for place, column in zip(places, texts, strict=True)],
    )
    return CaseLabels("", {cases[position].name: labels[cases[position].name] for position in order})


def _chosen(varied: Sequence[Factor], setting: str | None) -> Factor | None:
    return next((factor for factor in varied if factor.setting == setting), None)


def level_labels(cases: Sequence[CaseRows | CaseSummary], factor: Factor) -> CaseLabels:
    """Return the level of each case of one factor, in the order of its values."""
    texts = dict(zip((case.name for case in cases), factor.texts, strict=True))
    order = {text: number for number, text in enumerate(factor.order)}
    ordered = sorted(texts, key=lambda name: order[texts[name]])
    return CaseLabels(factor.title, {name: texts[name] for name in ordered})


def _with_unit(labels: CaseLabels, factor: Factor) -> CaseLabels:
    """Return the labels of a factor with its unit, which its title then lacks: rows have no title."""
    if not factor.unit:
        return labels
    return CaseLabels(factor.words, {name: f"{text} {factor.unit}" for name, text in labels.of.items()})
