"""Says how the drawn networks of the suite plait-mptcp-1 cover their factors, and draws them: for publish_benchmark.py.

A network is a point in the unit cube: each factor of each path is a share of its range. The measures are the centred
L2 discrepancy (Hickernell, Math. Comp. 67, 1998), where less is more even, and the widest interval of a factor's range
that no network has. Designs of as many points drawn at random from the uniform distribution are the reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from draw_suite import GROUPS, LEAST_QUEUE, LINKS, RATES
from scipy.stats import qmc

from plait.benchmark.suite import GROUPS as TITLES
from plait.benchmark.suite import QUICK_DRAWN, group_of, suite_file
from plait.report.render.render import draw_all
from plait.scenario import load
from plait.units import Duration, Rate, Ratio, Size

RANDOM_DESIGNS = 2000
_SEED = 1
_WIDTH_MM = 170.0
_FACTORS = ("rate", "delay", "queueing delay", "loss")
_STEP = 1.25
"""From one panel to the next, in widths of a panel."""
_AT = {
    axis: {"field": axis, "type": "quantitative", "axis": None, "scale": {"zero": False, "nice": False}}
    for axis in ("x", "y")
}


def points() -> dict[str, np.ndarray]:
    """Return by group the networks of the suite, as shares: shape (networks, factors of both paths)."""
    networks = load(str(suite_file()), ()).model_dump(mode="json", exclude_unset=True)["vary"]["network"]
    return {
        group: np.array(
            [
                [share for link in LINKS for share in _shares(links[f"network.links.{link}"], group)]
                for name, links in networks.items()
                if group_of(name) == group
            ]
        )
        for group in GROUPS
    }


def _shares(conditions: dict[str, str], group: str) -> list[float]:
    """Return rate, delay, queueing delay and, in a lossy group, loss of a link as shares of their ranges.

    A queue of the least size has less than its drawn delay would need: its share is 0.
    """
    rtt_ms, queueing_ms, loss = GROUPS[group]
    rate_bps, queue = int(Rate.parse(conditions["rate"])), int(Size.parse(conditions["queue"]))
    shares = [
        (rate_bps / 1e6 - RATES[0]) / (RATES[1] - RATES[0]),
        int(Duration.parse(conditions["delay"])) / 1e6 / (rtt_ms / 2),
        0.0 if queue <= LEAST_QUEUE else queue * 8e3 / rate_bps / queueing_ms,
    ]
    return [*shares, float(Ratio.parse(conditions["loss"])) * 100 / loss] if loss else shares


def widest_gap(design: np.ndarray) -> float:
    """Return the widest interval between neighbours, or a neighbour and an end, over all factors."""
    ends = np.array([np.zeros(design.shape[1]), np.ones(design.shape[1])])
    return float(np.max(np.diff(np.sort(np.concatenate([design, ends]), axis=0), axis=0)))


def rows() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return by the title of a group the words of its discrepancy and of its widest gap, beside random designs."""
    generator = np.random.default_rng(_SEED)
    evenness, gaps = {}, {}
    for group, design in points().items():
        random = generator.random((RANDOM_DESIGNS, *design.shape))
        own = qmc.discrepancy(design)
        uneven = [qmc.discrepancy(one) for one in random]
        evenness[TITLES[group]] = [f"{design.shape[1]}", f"{own:.3f}", _beside(uneven), _as_good(uneven, own)]
        gap, quick = (
            widest_gap(one) for one in (design, design[[int(number) - 1 for number in QUICK_DRAWN]])
        )
        wide = [widest_gap(one) for one in random]
        gaps[TITLES[group]] = [f"{gap:.2f}", _beside(wide), _as_good(wide, gap), f"{quick:.2f}"]
    return evenness, gaps


def _beside(values: list[float]) -> str:
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def _as_good(values: list[float], own: float) -> str:
    """Return the number of random designs that are at least as good."""
    return f"{np.sum(np.array(values) <= own)} of {len(values)}"


def figure() -> str:
    """Return the networks as SVG: a panel for each group and factor, the first path to the right, the second up."""
    marks: list[dict[str, Any]] = []
    panels, titles = [], []
    for row, (group, design) in enumerate(points().items()):
        paths = np.split(design, 2, axis=1)
        titles.append({"x": -0.35, "y": -row * _STEP + 0.5, "text": TITLES[group]})
        for column in range(paths[0].shape[1]):
            x, y = column * _STEP, -row * _STEP
            panels.append({"x": x, "y": y, "x2": x + 1, "y2": y + 1})
            marks += [
                {"x": x + float(paths[0][number, column]), "y": y + float(paths[1][number, column]),
                 "subset": "quick and full" if f"{number + 1:02d}" in QUICK_DRAWN else "full alone"}
                for number in range(len(design))
            ]  # fmt: skip
    heads = [{"x": column * _STEP + 0.5, "y": 1.12, "text": factor} for column, factor in enumerate(_FACTORS)]
    foot = -(len(titles) - 1) * _STEP - 0.16
    axes = [{"x": column * _STEP + 0.5, "y": foot, "text": "first path"} for column in range(len(_FACTORS))]
    axes += [{"x": -0.12, "y": title["y"], "text": "second path"} for title in titles]
    legend = {"symbolType": "circle", "symbolStrokeColor": "@case1", "symbolStrokeWidth": 2, "orient": "top"}
    fill = {"domain": ["quick and full", "full alone"], "range": ["@case1", "@surface"]}
    spec: dict[str, Any] = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 480,
        "height": 440,
        "layer": [
            {"data": {"values": panels}, "mark": {"type": "rect", "color": "@raised", "stroke": "@grid"},
             "encoding": {**_AT, "x2": {"field": "x2"}, "y2": {"field": "y2"}}},
            {"data": {"values": marks}, "mark": {"type": "point", "size": 32, "color": "@case1", "opacity": 1},
             "encoding": {**_AT, "fill": {"field": "subset", "type": "nominal", "title": None, "scale": fill,
                                          "legend": legend}}},
            _text(heads, "@ink", 0), _text(titles, "@ink", 270),
            _text(axes[: len(_FACTORS)], "@muted", 0), _text(axes[len(_FACTORS) :], "@muted", 270),
        ],
    }  # fmt: skip
    return draw_all({"coverage": spec}, _WIDTH_MM)["coverage"].svg


def _text(words: list[dict[str, Any]], color: str, angle: int) -> dict[str, Any]:
    return {
        "data": {"values": words},
        "mark": {"type": "text", "color": color, "angle": angle, "baseline": "middle"},
        "encoding": {**_AT, "text": {"field": "text"}},
    }
