"""The figure over time: one kind of chart of the representative trials of several cases, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plait.analysis.compare.factors import stratum
from plait.analysis.series import TrialSeries
from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec, TableRows, number
from plait.report.figures.kinds.over_time_chart import KINDS, Frame, Key, Line, chart, frame_of, lines
from plait.report.figures.marks import SCHEMA, number_axis
from plait.report.figures.shown_labels import few_trials, note_of, shown_labels
from plait.report.render.theme import PATHS, path_token
from plait.report.representatives import Representative

SIDE_BY_SIDE = 6
"""Cases in one figure over time; the page shows more."""
SHORT = 1 / 3
"""On the page, a trial below this share of the longest one's time has a time axis of its own."""


OTHER_LINES = "others"
"""The entry of all lines beyond the colours."""


def _selected(content: Content) -> list[FigureRequest]:
    """Return a figure of each kind of chart."""
    return [FigureRequest(f"{kind}-over-time", "over-time", kind) for kind in KINDS] if content.shown else []


def _panels(request: FigureRequest, content: Content) -> list[Spec]:
    """Return a panel for each of some cases, on the same scales, with one key."""
    shown = few_trials(content.shown, SIDE_BY_SIDE)
    key = key_of([trial.series for trial in shown], request.metric)
    strata = {case.name: stratum(case, content.summary.strata) for case in content.rows}
    by_network: dict[tuple[str, ...], list[TrialSeries]] = {}
    for trial in shown:
        by_network.setdefault(strata[trial.case], []).append(trial.series)
    frames = {network: frame_of(trials) for network, trials in by_network.items()}
    names, _ = shown_labels(shown, content)
    panels = []
    for trial in shown:
        spec = chart(trial.series, request.metric, frames[strata[trial.case]], legend=True, key=key)
        if spec is not None:
            spec["layer"][1]["encoding"]["y"]["axis"]["title"] = spec["title"]
            spec["encoding"]["x"]["axis"] = number_axis("Time, s")
            panels.append({"$schema": SCHEMA, **spec, "title": names.panel_title(names.of[trial.case])})
    return panels


def _table(request: FigureRequest, content: Content) -> TableRows:
    """Return the points of every line."""
    rows: TableRows = [["case", "trial", "t_s", "series", KINDS[request.metric][1]]]
    for trial in few_trials(content.shown, SIDE_BY_SIDE):
        for line in lines(trial.by_name or trial.series, request.metric):
            rows += [[trial.case, trial.index, number(t), line.label, number(v)] for t, v in line.points]
    return rows


OVER_TIME = FigureKind(
    "over-time",
    _panels,
    _table,
    lambda _, __: "",
    selected=_selected,
    note=lambda _, content: note_of(few_trials(content.shown, SIDE_BY_SIDE), content),
    shows_trials=True,
)
"""A panel for each case; every study has one of each kind of chart (the metric of these figures)."""


def frames_of(shown: Sequence[Representative]) -> list[Frame]:
    """Return the frame of each representative: the same for those that are compared with each other.

    A short trial has its own time axis, because on that of the longest one its lines would be squeezed.
    """
    groups = {trial.group for trial in shown}
    frames = {group: frame_of([peer.series for peer in shown if peer.group == group]) for group in groups}
    return [_unsqueezed(frames[trial.group], trial.series.duration_s) for trial in shown]


def _unsqueezed(frame: Frame, duration_s: float) -> Frame:
    return replace(frame, seconds=duration_s) if 0 < duration_s < SHORT * frame.seconds else frame


def key_of(trials: Sequence[TrialSeries], kind: str) -> Key:
    """Return the key of several charts.

    Lines that have different colours in some of the charts get new ones. Where there are more labels than colours,
    subflows have the colours of their paths, and of queues the fullest have their own.
    """
    drawn = [[line for line in lines(series, kind) if line.points] for series in trials]
    labels = list(dict.fromkeys(line.label for line_list in drawn for line in line_list))
    distinct = all(len({line.label for line in line_list}) == len(line_list) for line_list in drawn)
    colours: dict[str, set[str]] = {label: set() for label in labels}
    for line in (line for line_list in drawn for line in line_list):
        colours[line.label].add(line.colour)
    if len(labels) <= PATHS and distinct:
        kept = [next(iter(colours[label])) for label in labels]
        if all(len(line_list) == 1 for line_list in colours.values()) and len(set(kept)) == len(kept):
            return Key(tuple(zip(labels, kept, strict=True)), {label: label for label in labels})
        return _numbered(labels, {label: label for label in labels})
    every = [line for line_list in drawn for line in line_list]
    if all(line.path for line in every):
        return _by_path(trials, every, kind)
    return _numbered(*_largest({label: label for label in labels}, every))


def _by_path(trials: Sequence[TrialSeries], every: Sequence[Line], kind: str) -> Key:
    paths = {line.label: line.path for line in every}
    if kind == "goodput":
        every = [line for series in trials for line in lines(replace(series, subflows=series.by_path), kind)]
        paths = {line.label: line.label for line in every}
    order, entry_of = list(dict.fromkeys(paths.values())), paths
    if len(order) > PATHS:
        order, entry_of = _largest(paths, every)
    return _numbered(order, entry_of, by_path=True)


def _largest(entry_of: dict[str, str], every: Sequence[Line]) -> tuple[list[str], dict[str, str]]:
    """Return the entries with the largest sums of values, then `OTHER_LINES`, and the entry of each line."""
    sums: dict[str, float] = {}
    for line in every:
        sums[entry_of[line.label]] = sums.get(entry_of[line.label], 0.0) + sum(
            value for _, value in line.points
        )
    kept = set(sorted(sums, key=lambda entry: -sums[entry])[: PATHS - 1])
    order = [entry for entry in sums if entry in kept]
    return [*order, OTHER_LINES], {
        label: entry if entry in kept else OTHER_LINES for label, entry in entry_of.items()
    }


def _numbered(order: Sequence[str], entry_of: dict[str, str], *, by_path: bool = False) -> Key:
    return Key(tuple((entry, path_token(number)) for number, entry in enumerate(order)), entry_of, by_path)
