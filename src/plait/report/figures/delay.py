"""The figure of delays: for each case, which share of the messages took at most so long.

A figure is a Vega-Lite specification (a JSON value) whose colours are tokens, see `plait.report.render.theme`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.analysis.values import scale_of
from plait.analysis.wording import micros, percent
from plait.report.figures.ecdf import steps_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.report.representatives import Representative

Spec = dict[str, Any]

TITLES = {
    "message_delay": "Message delay",
    "request_latency": "Request latency",
    "udp_delay": "UDP delay",
}
FIGURES = {name: f"{name.replace('_', '-')}-distribution" for name in TITLES}
"""By what is distributed, the name of the figure's file."""
MOST = 6
"""More cases than colours cannot be told apart."""


def delay_figures(shown: Sequence[Representative]) -> dict[str, Spec]:
    """Return a figure for each kind of delay that was measured, by the name of its file."""
    found = {}
    for name, file in FIGURES.items():
        having = [one for one in shown if name in one.distributions][:MOST]
        if having:
            found[file] = _spec(name, having)
    return found


def _spec(name: str, shown: Sequence[Representative]) -> Spec:
    largest = max(one.distributions[name][-1][0] for one in shown)
    divisor, unit = scale_of(f"{name}_us", largest)
    data = [
        {
            "case": one.label,
            "x": delay_us / divisor,
            "share": share,
            "shown": micros(delay_us),
            "part": percent(share),
        }
        for one in shown
        for delay_us, share in one.distributions[name]
    ]
    scale = {"zero": True, "nice": False}
    title = f"{TITLES[name]}, {unit}"
    order = [one.label for one in shown]
    share_title = "Share that took at most so long"
    return steps_spec(data, order, scale, title=title, share_title=share_title, name="delay")
