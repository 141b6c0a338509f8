"""The figures of a scenario, which replace those that plait would choose, and labels in place of names.

Neither affects trials: plait draws other figures of finished trials without running any.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from plait.parts import Label, Part

Kind = Literal["intervals", "line", "heat-map", "scatter", "cases", "distribution", "over-time"]
OVER_TIME = ("goodput", "rtt", "cwnd", "queue")
RESERVED = re.compile(r"network|(goodput|rtt|cwnd|queue)-over-time|[a-z-]+-delay-distribution")
"""Names of figures that plait always draws."""


class FigureSpec(Part):
    """One figure of a metric, of all cases or of some."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]
    """Name of its files, and its heading on the page."""
    kind: Kind | None = None
    """`intervals` (means in groups), `line` with intervals, `heat-map`, `scatter` (one panel per varied field),
    `cases` (boxes and points), `distribution` (ECDF over trials), or `over-time`. Default: depends on what varies."""
    metric: str | None = None
    """Metric to plot. Default: the main metric of the study. Over time: goodput, rtt, cwnd or queue."""
    x: str | None = None
    """Varied field on the x axis. Default: the one with most values."""
    y: str | None = None
    """Varied field on the y axis of a heat map."""
    facets: str | None = None
    """Varied field with one panel per value."""
    color: str | None = None
    """Varied field with one colour, shape or dash per value."""
    only: dict[str, Any] = {}
    """Cases to show: `{transport: mptcp}`; a list selects any of its values."""
    caption: Annotated[str, Field(max_length=2000)] = ""
    width: Literal["column", "page"] = "page"
    """Width of the files: a column of a paper, or a page."""
    style: Literal["plain", "ieee", "acm", "usenix"] | None = None
    """Publisher whose widths and fonts the files have. Default: that of `plait report`, else 85 mm and 175 mm."""


ByName = Annotated[dict[str, Label], Field(max_length=4096)]


class LabelsSpec(Part):
    """Labels of things that have no field `label` of their own: generated ones, paths, and cases."""

    nodes: ByName = {}
    """Labels of hosts, switches and routers by name."""
    links: ByName = {}
    """Labels of links by name: `{h1-s1: Wi-Fi}`."""
    paths: ByName = {}
    """Labels of paths by name, the nodes from the sender to the receiver: `{h1-s1-h2: via Wi-Fi}`."""
    flows: ByName = {}
    """Labels of flows by name: `{bulk1: Backup}`."""
    cases: ByName = {}
    """Labels of cases by name: `{transport=tcp: Today}`."""
