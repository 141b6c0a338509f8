"""What varies, or the scenario, selects a study's figures; each holds the right data at the right width."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from fake_plans import FakeFlow, FakePath, fake_plan
from plait.analysis.compare.summary import summarise
from plait.analysis.rows import CaseRows, TrialRow
from plait.analysis.values import scale_of
from plait.dataset.study_file import StudyFile
from plait.errors import ScenarioError
from plait.report import build
from plait.report.assemble import summary_of
from plait.report.figures.kinds.groups import group_spec
from plait.report.figures.kinds.scatter import EDGE
from plait.report.figures.selection import content_of, wanted
from plait.report.figures.study_figures import case_figures, laid_out
from plait.report.render.render import standalone, svg_of
from plait.report.terminal.summary import read_summary
from plait.results.read import StudyData, read_study
from plait.scenario import parse
from result_folders import FakeCase, write_study
from svg_boxes import clipped, overlaps, size_of, text_boxes

if TYPE_CHECKING:
    from pathlib import Path

RATES, DELAYS = ("1mbit", "2mbit", "4mbit"), ("5ms", "50ms", "150ms")


def study_of(
    settings: list[dict[str, Any]], figures: list[dict[str, Any]] | None = None, repeat: int = 2
) -> StudyData:
    """Return a study whose goodput grows with the number of the case; MPTCP has twice as much."""
    cases = []
    for number, given in enumerate(settings):
        factor = 2 if given.get("transport") == "mptcp" else 1
        rows = tuple(
            TrialRow(
                i,
                i,
                "",
                {"goodput_bps": factor * (1e6 + 1e5 * (number // 2) + i), "rtt_median_us": 1e4 + number},
            )
            for i in range(repeat)
        )
        cases.append(CaseRows(str(number), given, rows))
    about = StudyFile.model_validate(
        {
            "schema": 1, "command": "", "seed": 1, "repeat": repeat, "plait_version": "0", "baseline": "0",
            "cases": [{"name": case.name, "settings": case.settings} for case in cases],
            "scenario": {"figures": figures or []},
        }
    )  # fmt: skip
    return StudyData(None, about, tuple(cases), "", ())


def kinds(data: StudyData) -> dict[str, str]:
    return {figure.name: figure.kind for figure in wanted(data, summary_of(data))}


GRID = [{"rate": r, "delay": d, "transport": t} for r in RATES for d in DELAYS for t in ("tcp", "mptcp")]


def test_choices_are_cases_steps_a_line_and_two_of_them_a_heat_map_with_facets() -> None:
    assert kinds(study_of([{"transport": "tcp"}, {"transport": "mptcp"}])) == {"goodput": "cases"}
    line = study_of([{"rate": r, "transport": t} for r in RATES for t in ("tcp", "mptcp")])
    assert kinds(line) == {"goodput-sweep": "line", "goodput": "cases"}
    grid = study_of(GRID)
    assert kinds(grid) == {"goodput-heat-map": "heat-map", "goodput-sweep": "line", "goodput": "cases"}
    assert len(case_figures(grid, summary_of(grid))["goodput-sweep"].panels) == len(DELAYS)


def test_what_only_goes_along_with_another_field_is_no_second_axis() -> None:
    zipped = [
        {"rcv": s, "snd": s, "transport": t} for s in ("1MiB", "2MiB", "4MiB") for t in ("tcp", "mptcp")
    ]
    assert kinds(study_of(zipped)) == {"goodput-sweep": "line", "goodput": "cases"}


def test_intervals_of_sweeps_and_of_groups_end_within_their_axis() -> None:
    values = (2e6, 9e6, 9.5e6)  # the upper end is above all of them
    settings = [{"rate": r, "delay": d} for r in RATES for d in DELAYS]
    cases = tuple(
        CaseRows(
            f"{n}",
            given,
            tuple(
                TrialRow(i, i, "", {"goodput_bps": v, "a.mean_goodput_bps": v}) for i, v in enumerate(values)
            ),
        )
        for n, given in enumerate(settings)
    )
    data = replace(study_of(settings), cases=cases)
    summary = summary_of(data)
    stats = summary.cases[0].metrics["goodput_bps"]
    assert stats.ci95 is not None
    assert stats.ci95[1] > max(values)
    content = content_of(data, summary)
    figures = case_figures(data, summary)
    sweeps = [panel["encoding"]["y"]["scale"]["domain"][1] for panel in figures["goodput-sweep"].panels]
    groups = group_spec(content.rows, content.cases, content.published)
    assert groups is not None
    assert min(*sweeps, groups["encoding"]["x"]["scale"]["domain"][1]) >= stats.ci95[1] / 1e6


def test_values_that_are_close_have_labels_in_two_rows() -> None:
    losses = ("0%", "0.1%", "0.5%", "1%", "5%", "10%")
    data = study_of([{"loss": loss, "transport": t} for loss in losses for t in ("tcp", "mptcp")])
    figure = case_figures(data, summary_of(data))["goodput-sweep"]
    drawn = svg_of(standalone(laid_out(figure, 175.0)))
    labels = {"0.1", "0.5", "1", "5", "10"}
    assert labels <= {box.text for box in text_boxes(drawn)}
    assert overlaps(text_boxes(drawn)) == []


def test_values_on_a_logarithmic_axis_fill_it() -> None:
    """The axis began at the power of ten below the least, and ended at the one above the greatest."""
    sizes = [f"{256 << n}KiB" for n in range(7)]
    data = study_of([{"rcv": size, "transport": t} for size in sizes for t in ("tcp", "mptcp")])
    figure = case_figures(data, summary_of(data))["goodput-sweep"]
    drawn = svg_of(standalone(laid_out(figure, 175.0)))
    boxes = {box.text: (box.left + box.right) / 2 for box in text_boxes(drawn)}
    width, _ = size_of(drawn)
    assert boxes["256"] < 0.15 * width
    assert boxes["16384"] > 0.93 * width


POINTS = [
    {"rate": f"{n + 1}mbit", "delay": f"{(7 * n) % 11 + 1}ms", "queue": f"{(3 * n) % 11 + 5}pkt"}
    for n in range(11)
]
"""A Latin hypercube of three fields."""


def test_points_that_fill_a_space_have_a_panel_for_each_field() -> None:
    assert kinds(study_of(POINTS)) == {"goodput-scatter": "scatter", "goodput": "cases"}
    data = study_of([{**point, "transport": t} for point in POINTS for t in ("tcp", "mptcp")])
    summary = summary_of(data)
    panels = case_figures(data, summary)["goodput-scatter"].panels
    assert [panel["layer"][0]["encoding"]["x"]["axis"]["title"] for panel in panels] == [
        "Rate, Mbit/s", "Delay, ms", "Queue, packets",
    ]  # fmt: skip
    for panel, numbers in zip(panels, ((1, 2, 3), (1, 8, 4), (5, 8, 11)), strict=True):
        points = panel["layer"][0]["data"]["values"]
        assert tuple(point["x"] for point in points[:3]) == numbers
        assert [point["y"] for point in points] == pytest.approx([2] * len(POINTS)), "MPTCP has twice as much"


@pytest.mark.parametrize("width", [85.0, 181.9])
def test_points_of_ratios_name_their_axis_once_and_keep_off_the_edges(width: float) -> None:
    data = study_of([{**point, "transport": t} for point in POINTS for t in ("tcp", "mptcp")])
    figure = case_figures(data, summary_of(data))["goodput-scatter"]
    drawn = svg_of(standalone(laid_out(figure, width)))
    words = " ".join(box.text for box in text_boxes(drawn))
    assert words.count("Goodput") == 1, words
    assert clipped(drawn) == []
    assert overlaps(text_boxes(drawn)) == []
    assert drawn.count('stroke-dasharray="4,3"') == len(figure.panels), "the line of equal goodput"
    places = [
        float(x) for x in re.findall(r'aria-roledescription="point" transform="translate\(([\d.]+)', drawn)
    ]
    assert len(places) == len(POINTS) * len(figure.panels)
    assert min(places) >= EDGE


def test_panels_share_their_scales_where_values_are_far_apart_too() -> None:
    settings = [{"rate": f"{10**r}mbit", "size": s} for s in ("256KiB", "1MiB", "6MiB") for r in range(4)]
    data = study_of(settings, [{"name": "lines", "kind": "line", "x": "rate", "facets": "size"}])
    for number, case in enumerate(data.cases):
        for row in case.rows:
            row.metrics["goodput_bps"] = 1e6 * 10 ** (number % 4) * (1 + number // 4)
    panels = case_figures(data, summary_of(data))["lines"].panels
    assert [panel["title"] for panel in panels] == ["Size 256 KiB", "Size 1024 KiB", "Size 6144 KiB"]
    scales = [panel["encoding"]["y"]["scale"] for panel in panels]
    assert scales[0] == scales[1] == scales[2]
    assert scales[0]["type"] == "log"
    low, high = scales[0]["domain"]
    assert low < 1e6 / scale_of("goodput_bps", 3e9)[0] < 3e9 / scale_of("goodput_bps", 3e9)[0] < high


def axis_of_cases(metrics: list[tuple[float, ...]], settings: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the ends of the axis of cases whose trials have these goodputs in Mbit/s."""
    data = study_of(settings, [{"name": "all", "kind": "cases"}], repeat=3)
    for case, values in zip(data.cases, metrics, strict=True):
        for row, value in zip(case.rows, values, strict=True):
            row.metrics["goodput_bps"] = value * 1e6
    panel = case_figures(data, summary_of(data))["all"].panels[0]
    low, high = panel["encoding"]["x"]["scale"]["domain"]
    return low, high


def test_intervals_of_cases_end_within_their_axis() -> None:
    """Student's t of three trials is 4.303, so values 8, 9 and 10 have an interval of 9 +- 2.48."""
    assert axis_of_cases([(8, 9, 10)], [{}])[1] > 9 + 2.48
    many = [{"scheduler": s, "congestion_control": c} for s in "abcdef" for c in "uvwxyz"]
    low, high = axis_of_cases([(8, 9, 10)] * len(many), many)
    assert low < 9 - 2.48 < 9 + 2.48 < high


def test_rows_of_panels_have_their_unit_also_if_a_size_is_decimal() -> None:
    """They were 262.144, 1048.58 and 16000, without saying of what."""
    settings = [
        {"scheduler": s, "congestion_control": c, "tcp.receive_buffer_max": size}
        for s in "abcd"
        for c in "uvw"
        for size in ("256KiB", "1MiB", "16MB")
    ]
    data = study_of(settings, [{"name": "all", "kind": "cases", "x": "tcp.receive_buffer_max"}])
    for panel in case_figures(data, summary_of(data))["all"].panels:
        assert panel["encoding"]["y"]["sort"] == ["256 KiB", "1024 KiB", "15625 KiB"]


def test_equal_cases_look_equal() -> None:
    """Trials whose goodputs differ by three millionths filled the width of their panels."""
    many = [{"scheduler": s, "congestion_control": c} for s in "abcdef" for c in "uvwxyz"]
    low, high = axis_of_cases([(4.930320, 4.930325, 4.930335)] * len(many), many)
    assert high - low > 0.049


def test_axes_distinguish_two_fields_of_the_same_name() -> None:
    points = [{"links.a.rate": f"{n + 1}mbit", "links.b.rate": f"{(7 * n) % 11 + 1}mbit"} for n in range(11)]
    data = study_of(points)
    panels = case_figures(data, summary_of(data))["goodput-scatter"].panels
    assert [panel["layer"][0]["encoding"]["x"]["axis"]["title"] for panel in panels] == [
        "a.rate, Mbit/s", "b.rate, Mbit/s",
    ]  # fmt: skip


def test_many_values_that_grow_together_are_one_axis() -> None:
    zipped = [{"rate": f"{n + 1}mbit", "delay": f"{100 - n}ms"} for n in range(9)]
    assert kinds(study_of(zipped)) == {"goodput-sweep": "line", "goodput": "cases"}


def test_cells_hold_the_ratios_of_the_comparisons() -> None:
    data = study_of(GRID)
    summary = summary_of(data)
    panel = case_figures(data, summary)["goodput-heat-map"].panels[0]
    cells = panel["data"]["values"]
    expected = [
        comparison.ratio.value
        for comparison in summary.comparisons
        if comparison.ratio and data.cases[int(comparison.case)].settings["transport"] == "mptcp"
    ]
    assert sorted(cell["v"] for cell in cells) == pytest.approx(sorted(expected))
    assert len(cells) == 9
    assert panel["encoding"]["x"]["scale"]["domain"] == ["1", "2", "4"]
    assert panel["encoding"]["y"]["scale"]["domain"] == ["150", "50", "5"], "growing upwards"
    legend = panel["layer"][0]["encoding"]["color"]["legend"]
    assert legend["title"] == "Goodput: MPTCP / TCP"


def test_completion_times_that_were_repeated_have_a_distribution() -> None:
    rows = tuple(TrialRow(i, i, "", {"completion_s": float(10 - i)}) for i in range(5))
    data = study_of([{"transport": "tcp"}])
    data = StudyData(data.folder, data.about, (CaseRows("0", {"transport": "tcp"}, rows),), "", ())
    figure = case_figures(data, summary_of(data))["completion-time-distribution"].panels[0]
    points = [(p["x"], p["share"]) for p in figure["data"]["values"]]
    assert points == [(6.0, 0.0), (6.0, 0.2), (7.0, 0.4), (8.0, 0.6), (9.0, 0.8), (10.0, 1.0)]


def test_a_box_reaches_from_quartile_to_quartile_and_leaves_out_outliers() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 100.0]
    rows = tuple(TrialRow(i, i, "", {"goodput_bps": value * 1e6}) for i, value in enumerate(values))
    cases = (CaseRows("a", {}, rows),)
    data = study_of([{}])
    data = StudyData(data.folder, data.about, cases, "", ())
    summary = summarise(cases, scenario="", digest="", baseline=None)
    layers = case_figures(data, summary)["goodput"].panels[0]["layer"]
    box = next(
        layer["data"]["values"][0]
        for layer in layers
        if "low" in str(layer.get("data")) and "median" in str(layer["data"])
    )
    assert {name: box[name] for name in ("least", "low", "median", "high", "most")} == {
        "least": 1, "low": 2, "median": 3, "high": 4, "most": 4
    }  # fmt: skip


def test_the_scenarios_figures_stand_in_place_of_those_that_follow_from_what_varies() -> None:
    asked = [
        {"name": "gain", "kind": "heat-map", "metric": "rtt_median_us", "only": {"transport": "mptcp"}, "caption": "A"},
        {"name": "by-rate", "facets": "delay"},
    ]  # fmt: skip
    data = study_of(GRID, asked)
    assert kinds(data) == {"gain": "heat-map", "by-rate": "line"}
    figures = case_figures(data, summary_of(data))
    assert len(figures["gain"].panels[0]["data"]["values"]) == 9
    assert figures["gain"].panels[0]["description"] == "A"
    assert len(figures["by-rate"].panels) == 3


SCENARIO = """title: x
network: {hosts: [h1, h2], links: {h1-h2: {rate: 5mbit}}}
traffic: [{bulk: {from: h1, to: h2, duration: 1s}}]
vary: {network.links.h1-h2.rate: [1mbit, 2mbit], transport: [tcp, mptcp]}
figures:
"""


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: a, metric: godput_bps}", "6:15: figures.0.metric: there is no metric 'godput_bps'; did you mean"),
        ("{name: a, kind: line, x: rat}", "figures.0.x: 'rat' does not vary, or is ambiguous"),
        (
            "{name: a, kind: line, y: rate}",
            "figures.0.y: a figure of kind line has no y: its other axis is the metric; remove it",
        ),
        (
            "{name: a, kind: distribution, x: rate}",
            "figures.0.x: a figure of kind distribution has no x: that axis is the metric; write color or facets",
        ),
        (
            "{name: a, kind: heat-map, color: rate}",
            "figures.0.color: a figure of kind heat-map has no color: colours are the values of the metric",
        ),
        (
            "{name: a, kind: over-time, facets: rate}",
            "figures.0.facets: a figure of kind over-time has no facets: its panels are the median trials of cases",
        ),
        (
            "{name: a, kind: line, x: rate, color: rate}",
            "figures.0.color: 'rate' is the figure's x already; choose another field",
        ),
        ("{name: network}", "figures.0.name: 'network' is the name of a figure that plait draws anyway"),
        ("{name: a, only: {loss: 1%}}", "figures.0.only.loss: 'loss' does not vary"),
        ("{name: A b}", "figures.0.name: "),
        ("{name: a, kind: pie}", "figures.0.kind: "),
    ],
)  # fmt: skip
def test_mistakes_in_figures_are_located(entry: str, message: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse(SCENARIO + f"  - {entry}\n", "x.yaml")
    assert message in str(raised.value)


def test_a_name_that_stands_twice_is_refused_and_good_figures_are_taken() -> None:
    with pytest.raises(ScenarioError, match="'a' is the name of two figures"):
        parse(SCENARIO + "  - {name: a}\n  - {name: a}\n", "x.yaml")
    scenario = parse(
        SCENARIO + "  - {name: a, x: rate, metric: bulk1.goodput_bps, width: column}\n", "x.yaml"
    )
    assert scenario.figures[0].width == "column"


def test_figures_over_what_no_longer_varies_are_left_out_where_vary_is_replaced() -> None:
    text = SCENARIO + "  - {name: a, x: rate}\n  - {name: b}\n  - {name: c, only: {transport: tcp}}\n"
    given = parse(text, "x.yaml", ("vary={transport: [tcp, mptcp]}",))
    assert [figure.name for figure in given.figures] == ["b", "c"]
    with pytest.raises(ScenarioError, match="'rate' does not vary"):
        parse(text, "x.yaml", ("vary={transport: [tcp, mptcp]}", "figures=[{name: a, x: rate}]"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a study on disk with a grid, and figures of its own."""
    folder = tmp_path_factory.mktemp("grid")

    def case(rate: int, delay: int, transport: str) -> FakeCase:
        settings = {"rate": f"{rate}mbit", "delay": f"{delay}ms", "transport": transport}
        paths = (FakePath(rate * 10**6, delay * 10**6), FakePath())
        flow = FakeFlow(transport=transport, duration_us=2_000_000)
        return FakeCase(
            ",".join(settings.values()), settings, lambda seed: fake_plan(flow, paths=paths, seed=seed)
        )

    write_study(
        folder,
        tuple(case(r, d, t) for r in (1, 2, 4) for d in (5, 20, 40) for t in ("tcp", "mptcp")),
        repeat=2,
    )
    about = json.loads((folder / "study.json").read_text())
    about["scenario"]["figures"] = [
        {"name": "gain", "kind": "heat-map", "width": "column", "caption": "Where it <b>helps</b>."},
        {"name": "rates", "x": "rate", "facets": "delay", "width": "page"},
        {"name": "nothing", "kind": "line", "metric": "page_load_s", "x": "rate"},
    ]
    (folder / "study.json").write_text(json.dumps(about))
    build(folder)
    return folder


def size_mm(svg: str) -> tuple[float, float]:
    size = re.search(r'<svg[^>]*? width="([\d.]+)mm" height="([\d.]+)mm"', svg)
    viewed = re.search(r'<svg[^>]*? viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert size is not None
    assert viewed is not None
    (width, height), box = map(float, size.groups()), [float(number) for number in viewed.groups()]
    assert width / height == pytest.approx(box[0] / box[1], rel=0.02), "nothing is stretched"
    return width, box[0]


def test_files_are_as_wide_as_a_column_or_the_page_and_their_letters_can_be_read(folder: Path) -> None:
    for name, expected in (
        ("gain", 85.0),
        ("rates", 175.0),
        ("network", 175.0),
        ("goodput-over-time", 175.0),
    ):
        width, pixels = size_mm((folder / f"figures/{name}.svg").read_text())
        assert width == expected
        # Labels have 11 pixels: between 6 and 11 points on paper (the drawing of a small network is enlarged).
        assert name == "network" or 6 <= 11 * width / pixels * 72 / 25.4 <= 11, name
        box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ", (folder / f"figures/{name}.pdf").read_bytes())
        assert box is not None
        assert float(box[1]) == pytest.approx(expected * 72 / 25.4, rel=1e-3)
        pixels_wide = struct.unpack(">I", (folder / f"figures/{name}.png").read_bytes()[16:20])[0]
        assert pixels_wide == pytest.approx(expected / 25.4 * 300, abs=2)


def test_the_data_of_a_heat_map_are_the_ratios_of_the_summary(folder: Path) -> None:
    data = pl.read_csv(folder / "figures/gain.csv")
    ratios = {
        comparison.case: comparison.ratio.value
        for comparison in read_summary(folder).comparisons
        if comparison.ratio is not None
    }
    assert data.columns == ["case", "rate", "delay", "transport", "goodput_bps", "goodput_bps_ratio"]
    assert data.height == 18, "a ratio, or nothing, and the mean of every case"
    assert data["goodput_bps_ratio"].null_count() == 9, "the cases that the others are compared with"
    for row in data.drop_nulls("goodput_bps_ratio").iter_rows(named=True):
        assert row["goodput_bps_ratio"] == pytest.approx(ratios[row["case"]], rel=1e-8)


def test_captions_are_on_the_page_escaped_and_what_cannot_be_drawn_is_reported(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert "<figcaption>Where it &lt;b&gt;helps&lt;/b&gt;.</figcaption>" in page
    assert "figure nothing is empty: no data of page_load_s for kind line" in page
    assert not (folder / "figures/nothing.svg").exists()


def test_other_widths_are_made_on_request(folder: Path) -> None:
    build(folder, width_mm=85.0)
    assert size_mm((folder / "figures/rates.svg").read_text())[0] == 85.0
    assert read_study(folder).about.cases
