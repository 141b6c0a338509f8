"""The keys of grids of panels: where the last row has room, the key is there, and it names a field once."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from plait.analysis.compare.summary import summarise
from plait.analysis.rows import CaseRows, TrialRow
from plait.dataset.study_file import StudyFile
from plait.report.figures.marks import SCHEMA
from plait.report.figures.study_figures import static_figures
from plait.report.render.grid import together
from plait.report.render.render import draw_all, standalone, svg_of
from plait.results.read import StudyData
from svg_boxes import clipped, overlaps, text_boxes

if TYPE_CHECKING:
    from plait.report.render.render import Drawing

SCHEDULERS = ("default", "minrtt", "blest", "redundant", "ecf")
CONTROLS = ("cubic", "bbr", "reno")
LOSSES = ("0.5%", "2%")
FIGURES = [
    {
        "name": "points",
        "kind": "intervals",
        "x": "congestion_control",
        "color": "loss",
        "facets": "scheduler",
    },
    {"name": "lines", "kind": "line", "x": "loss", "facets": "scheduler"},
    {"name": "shares", "kind": "distribution", "facets": "scheduler", "color": "congestion_control"},
]


@pytest.fixture(scope="module", params=["ieee", "acm", "usenix"])
def drawn(request: pytest.FixtureRequest) -> dict[str, Drawing]:
    """Return figures of 30 cases of three fields in a column: five panels, or ten, leave a hole."""
    cases = []
    for number, (scheduler, control, loss) in enumerate(itertools.product(SCHEDULERS, CONTROLS, LOSSES)):
        settings = {"scheduler": scheduler, "congestion_control": control, "network.links.a-b.loss": loss}
        rows = tuple(
            TrialRow(seed, seed, f"sha256:{seed}", {"page_load_s": 0.45 + 0.01 * (number % 7) + 0.02 * seed})
            for seed in range(5)
        )
        cases.append(CaseRows(",".join(f"{key}={value}" for key, value in settings.items()), settings, rows))
    figures = [{**figure, "width": "column", "style": request.param} for figure in FIGURES]
    about = StudyFile.model_validate(
        {
            "name": "phone", "command": "", "seed": 1, "repeat": 5, "plait_version": "0",
            "scenario": {"figures": figures},
            "cases": [{"name": case.name, "settings": case.settings} for case in cases],
        }
    )  # fmt: skip
    data = StudyData(None, about, tuple(cases), "", ())
    return draw_all(
        static_figures(data, summarise(data.cases, scenario="phone", digest="", baseline=None), ())
    )


@pytest.mark.parametrize(("name", "entry"), [("points", "2"), ("lines", "reno"), ("shares", "reno")])
def test_the_key_is_in_the_hole_of_a_grid(drawn: dict[str, Drawing], name: str, entry: str) -> None:
    svg = drawn[name].svg
    boxes = text_boxes(svg)
    last_title = next(box for box in reversed(boxes) if "ecf" in box.text)
    key = [
        box for box in boxes if box.text == entry and box.left > last_title.right and box.top > last_title.top
    ]
    assert len(key) == 1
    assert overlaps(boxes) == []
    assert clipped(svg) == []


def test_the_key_of_lines_names_their_field_once(drawn: dict[str, Drawing]) -> None:
    texts = [box.text for box in text_boxes(drawn["lines"].svg)]
    assert texts.count("Congestion control") == 1
    assert [text for text in texts if text in CONTROLS] == list(CONTROLS)


@pytest.mark.parametrize("top", [100, 102, 104, 106, 110])
def test_titles_of_panels_side_by_side_are_level(top: int) -> None:
    """The panel at the left has labels, whose uppermost may be a few pixels below the end of its axis."""
    panel = {
        "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": top}]},
        "mark": "line",
        "height": 120,
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "scale": {"domain": [0, 1]},
                "axis": {"tickCount": 3},
            },
            "y": {
                "field": "y",
                "type": "quantitative",
                "scale": {"domain": [0, top], "nice": False},
                "axis": {"tickCount": 5, "title": "window"},
            },
        },
    }
    spec = together(SCHEMA, [{**panel, "title": name} for name in ("TCP", "MPTCP")], 180)
    boxes = {box.text: box for box in text_boxes(svg_of(standalone(spec)))}
    assert boxes["TCP"].top == pytest.approx(boxes["MPTCP"].top)
