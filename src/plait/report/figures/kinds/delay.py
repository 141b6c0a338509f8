"""The figure of delays: for each case, which share of the messages took at most so long.

A figure is a Vega-Lite specification (a JSON value) whose colours are tokens, see `plait.report.render.theme`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.values import scale_of
from plait.analysis.wording import micros, percent
from plait.report.figures.kind import FigureKind, FigureRequest, number
from plait.report.figures.kinds.ecdf import steps_spec
from plait.report.figures.shown_labels import few_of, note_of, shown_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.report.figures.kind import Content, Spec, TableRows
    from plait.report.figures.shown_labels import ShownLabels
    from plait.report.representatives import Representative

TITLES = {
    "message_delay": "Message delay",
    "request_latency": "Request latency",
    "udp_delay": "UDP delay",
}
MOST = 6
"""As many cases as there are distinguishable colours."""


class DelayFigure(FigureKind):
    """A line for each case; a study has it whose messages were recorded."""

    name = "delays"
    divides = False

    def selected(self, content: Content) -> list[FigureRequest]:
        """Return a figure of each kind of delay that was measured."""
        return [
            FigureRequest(f"{delay.replace('_', '-')}-distribution", self.name, delay)
            for delay in TITLES
            if _having(delay, content)
        ]

    def panels(self, wanted: FigureRequest, content: Content) -> list[Spec]:
        """Return one panel."""
        having = _having(wanted.metric, content)
        return [_spec(wanted.metric, having, shown_labels(having, content))] if having else []

    def note(self, wanted: FigureRequest, content: Content) -> str:
        """Return which part of the cases is shown, and what these share."""
        return note_of(_having(wanted.metric, content), content)

    def table(self, wanted: FigureRequest, content: Content) -> TableRows:
        """Return the points of every line."""
        rows: TableRows = [["case", "trial", f"{wanted.metric}_us", "share"]]
        for representative in _having(wanted.metric, content):
            points = representative.distributions[wanted.metric]
            rows += [
                [representative.case, representative.index, number(us), number(share)] for us, share in points
            ]
        return rows

    def caption(self, wanted: FigureRequest, content: Content) -> str:
        """Return what a line means, and which part of the cases has one."""
        caption = (
            "For each delay, the share of messages with at most that delay, in the median trial of each case."
        )
        count = len(_having(wanted.metric, content))
        return caption + (f" The lines are those of {count} cases." if count < len(content.rows) else "")


DELAYS = DelayFigure()


def _having(delay: str, content: Content) -> list[Representative]:
    return few_of([trial for trial in content.shown if delay in trial.distributions], MOST)


def _spec(name: str, shown: Sequence[Representative], names: ShownLabels) -> Spec:
    largest = max(representative.distributions[name][-1][0] for representative in shown)
    divisor, unit = scale_of(f"{name}_us", largest)
    data = [
        {
            "case": names.of[representative.case],
            "x": delay_us / divisor,
            "share": share,
            "shown": micros(delay_us),
            "part": percent(share),
        }
        for representative in shown
        for delay_us, share in representative.distributions[name]
    ]
    scale = {"zero": True, "nice": False}
    title = f"{TITLES[name]}, {unit}"
    order = [names.of[representative.case] for representative in shown]
    share_title = "Share with at most this delay"
    return steps_spec(
        data, order, scale, title=title, share_title=share_title, name="delay", key_title=names.title
    )
