"""The layout of figures of many cases: no text covers another or leaves the figure, also in a column of a paper."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from plait.analysis.compare.summary import summarise
from plait.analysis.rows import CaseRows, TrialRow
from plait.dataset.study_file import StudyFile
from plait.report.figures.axes import Factor, label_of_levels, numbers_of
from plait.report.figures.kinds.cases import CASES
from plait.report.figures.marks import SCHEMA, spanning
from plait.report.figures.selection import content_of, wanted
from plait.report.figures.study_figures import static_figures
from plait.report.render.grid import together
from plait.report.render.render import draw_all, standalone, svg_of
from plait.report.render.text_width import folded
from plait.report.render.theme import DARK, LIGHT, luminance
from plait.results.read import StudyData
from svg_boxes import clipped, overlaps, text_boxes

if TYPE_CHECKING:
    from plait.report.render.render import Drawing

SCHEDULERS = ("default", "roundrobin", "redundant", "blest", "ecf")
CONTROLS = ("cubic", "reno", "lia", "olia", "balia", "wvegas")
FIGURES: list[dict[str, Any]] = [
    {"name": "grouped", "kind": "intervals"},
    {"name": "turned", "kind": "intervals", "x": "scheduler", "color": "congestion_control"},
    {"name": "panels", "kind": "intervals", "x": "congestion_control", "facets": "scheduler"},
    {"name": "boxes", "kind": "cases"},
    {"name": "shares", "kind": "distribution"},
    {"name": "cells", "kind": "heat-map"},
]


def study(figures: list[dict[str, Any]]) -> StudyData:
    """30 cases of 8 trials whose page load times differ by scheduler, congestion control and seed."""
    cases = []
    for number, (scheduler, control) in enumerate(itertools.product(SCHEDULERS, CONTROLS)):
        settings = {"scheduler": scheduler, "congestion_control": control}
        metrics = [
            {"page_load_s": 0.45 + 0.013 * (number % 7) + 0.02 * (seed % 3) + 0.1 * (seed == 7)}
            for seed in range(8)
        ]
        rows = tuple(TrialRow(i, i, f"sha256:{i}", dict(values)) for i, values in enumerate(metrics))
        cases.append(CaseRows(f"scheduler={scheduler},congestion_control={control}", settings, rows))
    about = StudyFile.model_validate(
        {
            "name": "phone", "command": "", "seed": 1, "repeat": 8, "plait_version": "0",
            "scenario": {"figures": figures},
            "cases": [{"name": case.name, "settings": case.settings} for case in cases],
        }
    )  # fmt: skip
    return StudyData(None, about, tuple(cases), "", ())


@pytest.fixture(scope="module", params=["page", "column"])
def drawn(request: pytest.FixtureRequest) -> dict[str, Drawing]:
    data = study([{**figure, "width": request.param} for figure in FIGURES])
    summary = summarise(data.cases, scenario="phone", digest="", baseline=None)
    figures = static_figures(data, summary, ())
    return draw_all(figures)


@pytest.mark.parametrize("name", [figure["name"] for figure in FIGURES])
def test_no_text_covers_another_and_none_leaves_the_figure(drawn: dict[str, Drawing], name: str) -> None:
    svg = drawn[name].svg
    assert overlaps(text_boxes(svg)) == []
    assert clipped(svg) == []
    assert [box.text for box in text_boxes(svg) if "\N{HORIZONTAL ELLIPSIS}" in box.text] == []


@pytest.mark.parametrize("name", [figure["name"] for figure in FIGURES])
def test_every_level_is_named_and_no_label_repeats_all_fields(drawn: dict[str, Drawing], name: str) -> None:
    texts = [box.text for box in text_boxes(drawn[name].svg)]
    for level in (*SCHEDULERS, *CONTROLS):
        assert [text for text in texts if re.search(rf"\b{level}$", text)], level
    assert not [text for text in texts if "," in text and "Page load time, " not in text]


def test_texts_keep_their_lengths_in_viewers_without_the_font(drawn: dict[str, Drawing]) -> None:
    for figure in drawn.values():
        texts = re.findall(r"<text([^>]*)>([^<]+)</text>", figure.svg)
        assert texts
        assert all("textLength=" in attributes for attributes, _ in texts)
        zeros = [
            attributes for attributes, words in texts if words == "0" and 'font-size="11px"' in attributes
        ]
        assert all('textLength="6.1"' in attributes for attributes in zeros), "0.556 of its height"


@pytest.mark.parametrize("name", [figure["name"] for figure in FIGURES])
def test_letters_are_readable_at_the_printed_size(drawn: dict[str, Drawing], name: str) -> None:
    svg = drawn[name].svg
    match = re.search(r'<svg[^>]*? width="([\d.]+)mm".*?viewBox="0 0 ([\d.]+)', svg)
    assert match is not None
    points_per_unit = float(match[1]) / 25.4 * 72 / float(match[2])
    least = min(float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg))
    assert least * points_per_unit >= 5.9  # the intervals of heat maps; labels of axes have 8 points


@pytest.mark.parametrize("width", [85.0, 175.0])
def test_rows_of_groups_have_whole_labels_that_nothing_covers(width: float) -> None:
    cases = []
    for number, (scheduler, control) in enumerate(itertools.product(SCHEDULERS[:3], CONTROLS[:3])):
        settings = {"scheduler": scheduler, "congestion_control": control}
        rows = tuple(
            TrialRow(i, i, f"sha256:{i}", {f"{group}.mean_goodput_bps": 4e6 + 1e5 * (number + i) * place
                                            for place, group in enumerate(("multipath_users", "tcp_users"), 1)})
            for i in range(6)
        )  # fmt: skip
        cases.append(CaseRows(f"scheduler={scheduler},congestion_control={control}", settings, rows))
    data = replace(study([]), cases=tuple(cases))
    summary = summarise(data.cases, scenario="phone", digest="", baseline=None)
    svg = draw_all(static_figures(data, summary, (), width, width))["goodput-by-group"].svg
    texts = [box.text for box in text_boxes(svg)]
    assert overlaps(text_boxes(svg)) == []
    assert clipped(svg) == []
    assert {f"{scheduler}, {control}" for scheduler in SCHEDULERS[:3] for control in CONTROLS[:3]} <= set(
        texts
    )
    assert {"multipath_users", "tcp_users"} <= set(texts)


def test_the_axis_of_panels_with_boxes_begins_near_the_values_where_these_are_close() -> None:
    near = study([{"name": "boxes", "kind": "cases"}])
    summary = summarise(near.cases, scenario="phone", digest="", baseline=None)
    content = content_of(near, summary, ())
    (figure,) = [figure for figure in wanted(near, summary) if figure.name == "boxes"]
    domains = [panel["encoding"]["x"]["scale"]["domain"] for panel in CASES.panels(figure, content)]
    values = [row.metrics["page_load_s"] for case in near.cases for row in case.rows]
    assert len({tuple(domain) for domain in domains}) == 1
    unit = 1e3  # the axis has milliseconds
    assert 0.8 * min(values) < domains[0][0] / unit <= min(values)
    assert domains[0][1] / unit >= max(values)


@pytest.mark.parametrize("name", ["grouped", "turned", "panels", "boxes"])
def test_an_axis_that_starts_above_zero_says_so(drawn: dict[str, Drawing], name: str) -> None:
    words = " ".join(box.text for box in text_boxes(drawn[name].svg))
    assert words.count("(axis starts above 0)") == 1
    assert spanning(0.0, 5.0, "Goodput, Mbit/s")["axis"]["title"] == "Goodput, Mbit/s"


def contrast(first: str, second: str) -> float:
    """The contrast of two colours (WCAG 2.2)."""
    light, dark = sorted(
        (luminance([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) for colour in (first, second)),
        reverse=True,
    )
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_words_and_marks_stand_out_from_the_surface(theme: dict[str, str]) -> None:
    for token in ("ink", "muted"):
        assert contrast(theme[token], theme["surface"]) >= 4.5, token
    for number in range(6):
        assert contrast(theme[f"case{number}"], theme["surface"]) >= 3, number


def test_numbers_in_cells_stand_out_from_their_colours(drawn: dict[str, Drawing]) -> None:
    svg = drawn["cells"].svg
    cells = re.findall(r'<path aria-label="[^"]*"[^>]*fill="rgb\((\d+), (\d+), (\d+)\)"', svg)
    inks = re.findall(r'<text aria-label="[^"]*"[^>]*font-size="11.5px"[^>]*fill="(#\w+)"', svg)
    assert len(cells) == len(inks) == 30
    for channels, ink in zip(cells, inks, strict=True):
        colour = "#" + "".join(f"{int(channel):02x}" for channel in channels)
        assert contrast(colour, ink) >= 4.5, (colour, ink)


def test_values_differ_in_shape_and_in_dashes_where_they_differ_in_colour(drawn: dict[str, Drawing]) -> None:
    points = re.findall(r'aria-roledescription="point"[^>]*? d="([^"]*)"', drawn["grouped"].svg)
    assert len(points) == 30
    assert len(set(points)) == len(SCHEDULERS)
    dashes = set(re.findall(r'stroke-dasharray="([^"]*)"', drawn["shares"].svg))
    assert len(dashes) >= len(CONTROLS) - 1


def _panel(seconds: float, top: float, height: int) -> dict[str, Any]:
    """A chart of a line to `top` over `seconds`."""
    axes = {
        "x": ("t", seconds, {"title": "Time, s", "tickCount": 6}),
        "y": ("v", top, {"title": "V", "tickCount": 4}),
    }
    encoding = {
        name: {
            "field": field,
            "type": "quantitative",
            "axis": axis,
            "scale": {"domain": [0, end], "nice": False},
        }
        for name, (field, end, axis) in axes.items()
    }
    data = {"values": [{"t": 0, "v": 0}, {"t": seconds, "v": top}]}
    return {"width": 200, "height": height, "title": "p", "data": data, "encoding": encoding, "mark": "line"}


@pytest.mark.parametrize(("panels", "height"), [(2, 46), (2, 60), (3, 75), (4, 90)])
@pytest.mark.parametrize("end", [1.5, 2.1, 4.0, 9.0, 5200.0])
def test_a_label_within_an_edge_hides_none_beside_it_and_numbers_have_no_comma(
    panels: int, height: int, end: float
) -> None:
    svg = svg_of(standalone(together(SCHEMA, [_panel(end, end, height)] * panels, 175.0)))
    boxes = [box for box in text_boxes(svg) if re.fullmatch(r"[\d.,]+", box.text)]
    lowest = max(box.top for box in boxes)
    first_right = min(box.left for box in boxes if box.top > lowest - 2)
    upright = sorted({float(box.text) for box in boxes if box.right < first_right})
    level = [float(box.text) for box in boxes if box.top > lowest - 2]
    for labels in (upright, sorted(set(level))):
        distances = {round(b - a, 6) for a, b in itertools.pairwise(labels)}
        assert len(labels) >= 2, labels
        assert len(distances) == 1, labels


def test_a_title_breaks_no_number_from_its_unit_and_has_one_capital() -> None:
    rates, delays = ("1mbit", "1mbit", "8mbit", "8mbit"), ("20ms", "270ms", "20ms", "270ms")
    varied = [
        Factor("links.a.rate", rates, *numbers_of(rates)),
        Factor("links.a.delay", delays, *numbers_of(delays)),
    ]
    labels = label_of_levels(varied)
    assert labels[1] == "Rate 1 Mbit/s, delay 270 ms"
    assert folded(labels[1], 60, 11) == ["Rate", "1 Mbit/s,", "delay", "270 ms"]
