"""Different networks apart: each has panels of its own, on its own scales, in every kind of figure.

Nothing may compare a data centre with a phone by accident. A figure has them in one panel only if the scenario gives
the factor of the networks an axis or colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from plait.analysis.compare.factors import level
from plait.analysis.published import Published
from plait.report.figures.axes import labels_without
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec, TableRows
from plait.report.figures.shown_labels import few_trials

Network = tuple[tuple[str, ...], Content]
"""The levels of a network, and its cases without them."""


def networks(content: Content, wanted: FigureRequest | None = None) -> list[Network]:
    """Return the content of each network; one, the whole, where they do not differ or the figure asks for it."""
    asked = set() if wanted is None else {wanted.x, wanted.y, wanted.color}
    strata = [name for name in content.summary.strata if name not in asked]
    parts: dict[tuple[str, ...], list[str]] = {}
    for case in content.rows:
        parts.setdefault(tuple(level(case, name) for name in strata), []).append(case.name)
    return (
        [(levels, _part(content, strata, names)) for levels, names in parts.items()]
        if strata
        else [((), content)]
    )


def with_few_shown(content: Content, limit: int) -> Content:
    """Return the content with at most `limit` trials to show, some of each network, called by all their levels."""
    parts = networks(content)
    if len(parts) == 1:
        return content
    kept = {trial.case for _, part in parts for trial in few_trials(part.shown, max(1, limit // len(parts)))}
    names = labels_without([case for case in content.rows if case.name in kept], [])
    shown = [replace(trial, label=names[trial.case]) for trial in content.shown if trial.case in kept]
    return replace(content, shown=tuple(shown))


def selected(kind: FigureKind, content: Content) -> list[FigureRequest]:
    """Return the figures of a kind that follow from what varies in any of the networks."""
    figures = [figure for _, part in networks(content) for figure in kind.selected(part)]
    return list({figure.name: figure for figure in reversed(figures)}.values())[::-1]


def panels(kind: FigureKind, wanted: FigureRequest, content: Content) -> list[list[Spec]]:
    """Return the panels of each network; their titles begin with its levels if there are several."""
    parts = [((), content)] if kind.shows_trials else networks(content, wanted)
    drawn: list[list[Spec]] = []
    for levels, part in parts:
        name = ", ".join(levels) if len(parts) > 1 else ""
        drawn.append([])
        for panel in kind.panels(_inside(wanted, content), part):
            title = ", ".join(filter(None, (name, panel.get("title"))))
            drawn[-1].append({**panel, "title": title} if title else panel)
    return [_with_one_key(drawn_panels, drawn) for drawn_panels in drawn if drawn_panels]


def _with_one_key(panels: list[Spec], networks: Sequence[list[Spec]]) -> list[Spec]:
    """Return panels in which a level has the mark that it has in the network with the most levels.

    A network may lack levels (`exclude`); without this, those after them would have other colours than elsewhere.
    """
    longest: dict[str, Spec] = {}
    for channel, encoding in (mark for drawn_panels in networks for mark in _marks(drawn_panels)):
        best = longest.setdefault(channel, encoding)
        if len(encoding["scale"]["domain"]) > len(best["scale"]["domain"]):
            longest[channel] = encoding
    for channel, encoding in _marks(panels):
        best = longest[channel]
        if set(encoding["scale"]["domain"]) < set(best["scale"]["domain"]):
            encoding |= {"scale": best["scale"], "sort": best["sort"], "legend": best.get("legend")}
    return panels


def _marks(panels: Sequence[Spec]) -> Iterator[tuple[str, Spec]]:
    """Yield the channels of panels by whose marks levels differ, with what they encode."""
    for panel in panels:
        for node in (panel, *panel.get("layer", ())):
            for channel in ("color", "shape", "strokeDash", "xOffset"):
                encoding = node.get("encoding", {}).get(channel) or {}
                if encoding.get("type") == "nominal" and (encoding.get("scale") or {}).get("domain"):
                    yield channel, encoding


def table(kind: FigureKind, wanted: FigureRequest, content: Content) -> TableRows:
    """Return the data of all networks, whose levels follow the name of the case."""
    if kind.shows_trials:
        return kind.table(wanted, content)
    parts = networks(content, wanted)
    names = [name for name in content.summary.strata if name not in {wanted.x, wanted.y, wanted.color}]
    rows: TableRows = []
    for levels, part in parts:
        head, *data_rows = kind.table(_inside(wanted, content), part) or [[]]
        if head and not rows:
            rows.append([head[0], *names, *head[1:]])
        rows += [[row[0], *levels, *row[1:]] for row in data_rows]
    return rows


def _inside(wanted: FigureRequest, content: Content) -> FigureRequest:
    """Return the request within a network, which has panels already."""
    return replace(wanted, facets=None) if wanted.facets in content.summary.strata else wanted


def _part(content: Content, strata: Sequence[str], names: Sequence[str]) -> Content:
    """Return the cases in `names`, which are one network, without the settings in `strata`."""
    kept = set(names)
    rows = tuple(
        replace(case, settings={name: value for name, value in case.settings.items() if name not in strata})
        for case in content.rows
        if case.name in kept
    )
    part = content.with_names(kept)
    settings = {case.name: case.settings for case in rows}
    cases = tuple(case.model_copy(update={"settings": settings[case.name]}) for case in part.cases)
    first_settings = next(case.settings for case in content.rows if case.name in kept)
    values = tuple(
        ({name: value for name, value in meant.items() if name not in strata}, goodput)
        for meant, goodput in content.published.values
        if all(
            str(first_settings.get(name)) == meant.get(name, str(first_settings.get(name))) for name in strata
        )
    )
    summary = part.summary.model_copy(update={"cases": cases, "strata": ()})
    return Content(rows, summary, part.shown, Published(content.published.source, values), is_part=True)
