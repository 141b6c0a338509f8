"""Figures of three networks, eight schedulers, seven congestion controls: all is drawn, readable, and in the data."""

from __future__ import annotations

import csv
import io
import random
from functools import cache
from itertools import product

import pytest

from plait.analysis.rows import CaseRows, TrialRow
from plait.dataset.study_file import StudyFile
from plait.report.assemble import summary_of
from plait.report.figures.selection import KINDS, asked_for, wanted
from plait.report.figures.study_figures import (
    MOST_PANELS,
    DrawnFigure,
    case_figures,
    figure_data,
    laid_out,
    pages_of,
    static_figures,
)
from plait.report.render.render import standalone, svg_of
from plait.report.render.theme import shapes
from plait.results.read import StudyData
from svg_boxes import clipped, overlaps, text_boxes

NETWORKS = {"wifi-lte": 20e6, "equal": 40e6, "datacenter": 9.4e9}
SCHEDULERS = ("default", "minrtt", "roundrobin", "redundant", "blest", "ecf", "balanced", "capped")
CONTROLS = ("cubic", "reno", "bbr", "lia", "olia", "balia", "wvegas")
CASES = len(NETWORKS) * len(SCHEDULERS) * len(CONTROLS)
GRID = {"x": "scheduler", "y": "congestion_control"}
ASKED = [
    {"name": "cells", "kind": "heat-map", **GRID},
    {"name": "cells-facets", "kind": "heat-map", "facets": "network", **GRID},
    {"name": "counts", "kind": "heat-map", "metric": "retransmits", **GRID},
    {"name": "points", "kind": "scatter", "x": "scheduler"},
    {"name": "colours", "kind": "scatter", "x": "congestion_control", "color": "scheduler"},
    {"name": "grouped", "kind": "intervals"},
    {
        "name": "turned",
        "kind": "intervals",
        "x": "congestion_control",
        "color": "scheduler",
        "facets": "network",
    },
    {"name": "boxes", "kind": "cases"},
    {"name": "shares", "kind": "distribution"},
]


def study(settings: list[dict[str, str]], figures: list[dict[str, str]], factor: str | None) -> StudyData:
    """Return a study of five trials of each case, in which `factor` has different networks."""
    cases = []
    for given in settings:
        chance = random.Random(str(given))
        base = NETWORKS.get(given.get("network", ""), 1e7)
        rows = tuple(
            TrialRow(
                seed,
                seed,
                "",
                {
                    "completion_s": 2e6 / base * chance.uniform(1, 2),
                    "goodput_bps": base * chance.uniform(0.5, 0.9),
                    "retransmits": float(chance.randrange(30)),
                },
            )
            for seed in range(5)
        )
        cases.append(CaseRows(",".join(f"{k}={v}" for k, v in given.items()), dict(given), rows))
    levels = {name: {"a-b.rate": f"{rate:.0f}"} for name, rate in NETWORKS.items()}
    about = StudyFile.model_validate(
        {
            "schema": 1, "command": "", "seed": 1, "repeat": 5, "plait_version": "0", "baseline": cases[0].name,
            "cases": [{"name": case.name, "settings": case.settings} for case in cases],
            "scenario": {"figures": figures, "judge": "completion_s", "vary": {factor: levels} if factor else {}},
        }
    )  # fmt: skip
    return StudyData(None, about, tuple(cases), "", ())


@cache
def three_networks(*, asked: bool = True) -> StudyData:
    settings = [
        {"scheduler": scheduler, "network": network, "congestion_control": control}
        for scheduler, network, control in product(SCHEDULERS, NETWORKS, CONTROLS)
    ]
    return study(settings, ASKED if asked else [], "network")


@cache
def drawn(*, asked: bool = True) -> dict[str, DrawnFigure]:
    data = three_networks(asked=asked)
    return case_figures(data, summary_of(data))


def titles(figure: DrawnFigure) -> list[str]:
    return [str(panel.get("title", "")) for panel in figure.panels]


NAMES = [figure["name"] for figure in ASKED]


def test_every_figure_is_drawn_also_a_scatter_of_names() -> None:
    assert list(drawn()) == NAMES
    assert len(asked_for(three_networks())) == len(NAMES)
    places = {
        point["x"] for panel in drawn()["points"].panels for point in panel["layer"][0]["data"]["values"]
    }
    assert places == set(SCHEDULERS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [84.6, 177.8])
def test_no_text_covers_another_and_none_is_cut(name: str, width: float) -> None:
    """Numbers lay over numbers in heat maps, and keys had the truncated names of whole cases."""
    figure = drawn()[name]
    for page in range(len(figure.pages)):
        svg = svg_of(standalone(laid_out(figure, width, page=page)))
        boxes = text_boxes(svg)
        assert overlaps(boxes) == []
        assert clipped(svg) == []
        assert [box.text for box in boxes if "\N{HORIZONTAL ELLIPSIS}" in box.text or "=" in box.text] == []


def test_each_panel_has_the_numbers_of_its_own_network() -> None:
    """All panels had the numbers of the last one, since views of one name are one to Vega."""
    settings = [
        {"scheduler": scheduler, "network": network} for scheduler, network in product(SCHEDULERS, NETWORKS)
    ]
    data = study(settings, [], "network")
    figure = case_figures(data, summary_of(data))["completion-time"]
    numbers = [
        row["shown"]
        for panel in figure.panels
        for part in panel["layer"]
        if str(part.get("layer", [{}])[-1].get("name", "")).startswith("number")
        for row in part["data"]["values"]
    ]
    assert len(numbers) == len(settings)
    drawn_texts = [box.text for box in text_boxes(svg_of(standalone(laid_out(figure, 177.8))))]
    assert sorted(text for text in drawn_texts if text in set(numbers)) == sorted(numbers)


@pytest.mark.parametrize("name", NAMES)
def test_data_of_a_figure_have_all_cases(name: str) -> None:
    """They had 120 of 168, without a word."""
    data = three_networks()
    rows = list(csv.DictReader(io.StringIO(figure_data([name], data, summary_of(data), ())[name])))
    assert len({row["case"] for row in rows}) == CASES
    assert {row["network"] for row in rows} == set(NETWORKS)


@pytest.mark.parametrize("name", NAMES)
def test_networks_have_panels_of_their_own_in_one_order(name: str) -> None:
    networks = [title.partition(", ")[0] for title in titles(drawn()[name])]
    assert list(dict.fromkeys(networks)) == list(NETWORKS), "each network once, in the order of the scenario"
    controls = [title.partition(", ")[2] for title in titles(drawn()[name])]
    assert set(controls) == {""} or controls == [*CONTROLS] * len(NETWORKS)


def test_each_network_has_scales_of_its_own() -> None:
    tops = [panel["encoding"]["y"]["scale"]["domain"][1] for panel in drawn()["grouped"].panels]
    assert len(set(tops)) == len(NETWORKS)
    colours = [panel["layer"][0]["encoding"]["color"]["scale"]["domain"] for panel in drawn()["cells"].panels]
    assert len({tuple(domain) for domain in colours}) == len(NETWORKS)
    assert "Each network has scales of its own." in drawn()["cells"].marks


def test_default_figures_show_every_network_on_pages_of_whole_networks() -> None:
    figures = drawn(asked=False)
    assert {figure.request.kind for figure in figures.values()} == {"intervals", "cases", "distribution"}
    for figure in figures.values():
        assert len(figure.panels) in {len(NETWORKS), len(NETWORKS) * len(CONTROLS)}
    assert figures["goodput"].pages == (len(CONTROLS),) * len(NETWORKS)
    files = static_figures(three_networks(asked=False), summary_of(three_networks(asked=False)), ())
    assert {"goodput", "goodput-page-2", "goodput-page-3"} <= set(files)
    assert "Page 3 of 3" in str(files["goodput-page-3"])


def test_a_page_divides_a_network_only_if_it_must() -> None:
    assert pages_of([1, 1, 1]) == (3,)
    assert pages_of([7, 7, 7]) == (7, 7, 7)
    assert pages_of([4, 4, 4, 4]) == (12, 4)
    assert pages_of([30]) == (12, 12, 6)
    assert pages_of([100]) == (12,) * 4


def test_what_a_figure_leaves_out_is_said_in_it_and_in_its_caption() -> None:
    data = study([{"name": f"c{number}"} for number in range(1000)], [], None)
    summary = summary_of(data)
    figure = case_figures(data, summary)["completion-time"]
    assert len(figure.panels) == MOST_PANELS
    assert figure.note == f"{MOST_PANELS} of 84 panels"
    assert f"{MOST_PANELS} of 84 panels; completion-time.csv has all cases" in figure.marks
    assert f"{MOST_PANELS} of 84 panels" in str(laid_out(figure, 85.0)["title"]["text"])
    rows = csv.DictReader(io.StringIO(figure_data(["completion-time"], data, summary, ())["completion-time"]))
    assert len({row["case"] for row in rows}) == len(data.cases)


def test_eight_series_have_eight_marks_and_eight_dashes() -> None:
    """Two of eight schedulers had the same mark."""
    (shape,) = {
        str(layer["encoding"]["shape"]["scale"]["range"])
        for panel in drawn()["turned"].panels
        for layer in panel["layer"]
        if "shape" in layer["encoding"]
    }
    assert shape == str(shapes(8))
    assert len(set(shapes(8))) == 8
    lines = drawn()["shares"].panels[0]["encoding"]["strokeDash"]["scale"]
    assert lines["domain"] == list(SCHEDULERS)
    assert len({str(dash) for dash in lines["range"]}) == len(SCHEDULERS)


def test_a_level_has_one_mark_also_if_a_network_lacks_others() -> None:
    settings = [dict(case.settings) for case in three_networks().cases]
    settings = [given for given in settings if (given["network"], given["scheduler"]) != ("equal", "minrtt")]
    data = study(settings, [dict(ASKED[6])], "network")
    (figure,) = case_figures(data, summary_of(data)).values()
    domains = [panel["encoding"]["color"]["scale"]["domain"] for panel in figure.panels]
    assert domains == [list(SCHEDULERS)] * len(NETWORKS)


def test_networks_share_a_panel_if_the_scenario_asks_for_it() -> None:
    figures = [{"name": "together", "kind": "intervals", "x": "network", "color": "scheduler"}]
    data = study([dict(case.settings) for case in three_networks().cases], figures, "network")
    (figure,) = case_figures(data, summary_of(data)).values()
    assert titles(figure) == list(CONTROLS)
    assert figure.panels[0]["encoding"]["x"]["scale"]["domain"] == list(NETWORKS)


def test_settings_that_go_along_with_a_network_are_no_factors() -> None:
    """A network of a zip is named by its first field that tells all of them apart."""
    fields = {
        "wifi-lte": {"a.rate": "40mbit", "a.queue": "64 KiB", "b.delay": "40ms"},
        "equal": {"a.rate": "20mbit", "a.queue": "64 KiB", "b.delay": "10ms"},
        "datacenter": {"a.rate": "10gbit", "a.queue": "1 MiB", "b.delay": "50us"},
    }
    settings = [{**network, "scheduler": name} for network in fields.values() for name in SCHEDULERS]
    data = study(settings, [{"name": "boxes", "kind": "cases"}], None)
    (figure,) = case_figures(data, summary_of(data)).values()
    assert titles(figure) == ["Rate 20 Mbit/s", "Rate 40 Mbit/s", "Rate 10000 Mbit/s"]


def test_each_kind_that_a_report_can_have_is_tried_here() -> None:
    kinds = {figure.kind for figure in wanted(three_networks(), summary_of(three_networks()))}
    of_trials = {"over-time", "delays", "groups", "line"}
    assert kinds | of_trials == set(KINDS)
