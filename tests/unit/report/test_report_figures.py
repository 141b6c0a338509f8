"""Figures show what the data say, drawings show the network, and the cache keeps both."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest

from fake_plans import FakeFlow, FakePath, fake_plan
from fake_tables import fake_tables
from plait.analysis.rows import CaseRows, TrialRow
from plait.analysis.series import trial_series
from plait.cache import ContentCache
from plait.report.drawing.layout import distinct_paths, layout
from plait.report.drawing.link_labels import LinkLabels
from plait.report.drawing.network import DrawnPath, draw
from plait.report.figures.kinds.over_time_chart import KINDS, chart, frame_of
from plait.report.figures.kinds.sweep import Sweep, sweep_of
from plait.report.render import render
from plait.report.render.theme import DARK, LIGHT, case_token, paint, path_token
from plait.report.representatives import median_row

if TYPE_CHECKING:
    from pathlib import Path

    from plait.analysis.series import Points
    from plait.plan.model.plan import Plan

MPTCP = fake_plan(paths=(FakePath(), FakePath(20_000_000, 15_000_000, loss_ratio=0.01)))
SERIES = replace(trial_series(MPTCP, fake_tables(MPTCP)), ideal_bps=23_500_000.0)


def drawing(plan: Plan) -> str:
    paths = [DrawnPath(path.forward, "#123456", path.name, "") for _, path in distinct_paths(plan)]
    return draw(plan, paths, LIGHT, legend=True)


def test_hosts_stand_at_the_ends_and_paths_beside_each_other() -> None:
    places = layout(fake_plan(paths=(FakePath(), FakePath(), FakePath())))
    assert (places.across["h1"], places.across["s2"], places.across["h2"]) == (0, 0.5, 1)
    assert [places.down[name] for name in ("s1", "s2", "s3", "h1")] == [0, 1, 2, 1]
    assert (places.columns, places.lanes, places.left_out) == (3, 2, 0)


def test_flows_in_both_directions_do_not_fold_the_drawing() -> None:
    plan = fake_plan()
    flow = plan.flows[0]
    back = flow.model_copy(update={"id": 1, "client": flow.server, "server": flow.client})
    places = layout(plan.model_copy(update={"flows": (flow, back)}))
    assert (places.across["h1"], places.across["s1"], places.across["h2"]) == (0, 0.5, 1)


@pytest.mark.parametrize("count", [1, 2, 5, 18])
def test_no_two_nodes_of_a_column_overlap(count: int) -> None:
    places = layout(fake_plan(paths=(FakePath(),) * count))
    column = sorted(places.down[f"s{number + 1}"] for number in range(count))
    assert all(lower - upper >= 0.9 for upper, lower in pairwise(column))


def test_many_nodes_without_paths_are_left_out_and_counted() -> None:
    plan = fake_plan(FakeFlow(transport="tcp"), paths=(FakePath(),) * 8)  # seven switches without a path
    assert layout(plan).left_out == 7
    assert "7 nodes that no path crosses are not drawn" in drawing(plan)
    plan = fake_plan(FakeFlow(transport="tcp"), paths=(FakePath(),) * 3)
    assert layout(plan).left_out == 0


def test_links_are_labelled_with_their_conditions() -> None:
    labels = LinkLabels(MPTCP)
    first, *_, last = MPTCP.links
    assert labels.label(first) == "5 Mbit/s, 5 ms, queue 100 pkt"
    assert labels.label(last) == "20 Mbit/s, 15 ms, 1 % loss, queue 100 pkt"
    forward, backward = first.directions
    adsl = first.model_copy(
        update={"directions": (forward, backward.model_copy(update={"rate_bps": 500_000}))}
    )
    assert labels.label(adsl) == "5 ms, queue 100 pkt; h1->s1: 5 Mbit/s; s1->h1: 500 kbit/s"
    unlimited = fake_plan(paths=(FakePath(None, 1, None),))
    assert LinkLabels(unlimited).label(unlimited.links[0]) == ""


def test_a_label_that_all_links_share_is_drawn_once() -> None:
    assert drawing(fake_plan(paths=(FakePath(),) * 6)).count("5 Mbit/s, 5 ms") == 1
    assert drawing(fake_plan()).count("5 Mbit/s, 5 ms") == 4


def test_names_in_drawings_are_escaped_and_shortened() -> None:
    name = "<b>&" + "x" * 30
    space = MPTCP.network.namespaces[0].model_copy(update={"name": name, "role": "router"})
    network = MPTCP.network.model_copy(update={"namespaces": (*MPTCP.network.namespaces, space)})
    svg = drawing(MPTCP.model_copy(update={"network": network}))
    assert "<b>" not in svg
    assert "&lt;b&gt;&amp;xxxxxxxxxxx\N{HORIZONTAL ELLIPSIS}<" in svg


def test_charts_hold_the_points_of_the_series() -> None:
    frame = frame_of([SERIES])
    assert (frame.seconds, frame.units["goodput"]) == (10, (1e6, "Mbit/s"))
    for kind in KINDS:
        spec = chart(SERIES, kind, frame)
        assert spec is not None
        header, *lines = spec["data"]["values"].splitlines()
        assert header == "t,s0,s1"
        assert len(lines) > 45
    spec = chart(SERIES, "rtt", frame)
    assert spec is not None
    t, first, second = spec["data"]["values"].splitlines()[50].split(",")
    assert dict(SERIES.subflows[0].rtt_us)[float(t)] / 1e3 == pytest.approx(float(first), rel=1e-4)
    assert float(second) > 60


@pytest.mark.parametrize(
    ("kind", "factor", "unit"),
    [("rtt", 1, "ms"), ("rtt", 50, "s"), ("queue", 1, "kB"), ("queue", 100, "MB"), ("queue", 1e-4, "B")],
)
def test_the_unit_of_an_axis_over_time_is_that_of_its_values(kind: str, factor: float, unit: str) -> None:
    def scaled(points: Points) -> Points:
        return tuple((t, value * factor) for t, value in points)

    series = replace(
        SERIES,
        subflows=tuple(replace(line, rtt_us=scaled(line.rtt_us)) for line in SERIES.subflows),
        queues=tuple(replace(queue, queue_bytes=scaled(queue.queue_bytes)) for queue in SERIES.queues),
    )
    frame = frame_of([series])
    spec = chart(series, kind, frame)
    assert spec is not None
    assert spec["title"].endswith(f", {unit}")
    drawn = [float(v) for row in spec["data"]["values"].splitlines()[1:] for v in row.split(",")[1:] if v]
    assert frame.tops[kind] / 1.1 < max(v for v in drawn if not math.isnan(v)) <= frame.tops[kind]


def test_the_rtt_of_a_dead_path_is_no_line() -> None:
    """The kernel repeats its last estimate while nothing is acknowledged, which was drawn as a measurement."""
    tables = fake_tables(MPTCP)
    samples = tables["subflows"]
    dead = (pl.col("subflow") == samples["subflow"].min()) & pl.col("t_us").is_between(4_000_000, 6_000_000)
    samples = samples.with_columns(
        acked_bytes=pl.when(dead).then(1).otherwise(pl.col("acked_bytes")),
        unacked_segments=pl.when(dead).then(10).otherwise(0),
    )
    series = trial_series(MPTCP, {**tables, "subflows": samples})
    rtts = dict(series.subflows[0].rtt_us)
    assert not [t for t, value in rtts.items() if 4.8 < t < 5.9 and not math.isnan(value)], "not measured"
    assert [t for t, value in rtts.items() if math.isnan(value)], "the line ends"
    assert len([t for t in rtts if t > 6.1]) > 20, "it goes on when the path is back"
    frame = frame_of([series])
    assert frame.tops["rtt"] > 60
    spec = chart(series, "rtt", frame)
    assert spec is not None
    svg = render.svg_of(render.standalone(spec))
    lines = re.findall(r'aria-roledescription="line mark"[^>]*? d="([^"]*)"', svg)
    assert [line.count("M") for line in lines] == [2, 1], "one has a gap"


def test_labels_of_people_are_never_part_of_a_formula() -> None:
    series = SERIES
    evil = "'];alert(1)//"
    named = type(series)(
        series.duration_s,
        series.bin_s,
        tuple(
            type(s)(evil, s.colour, s.path, s.goodput_bps, s.rtt_us, s.cwnd_segments) for s in series.subflows
        ),
        series.queues,
        0,
    )
    spec = chart(named, "rtt", frame_of([named]), legend=True)
    assert spec is not None
    labels = json.dumps({"s0": evil, "s1": evil})
    assert spec["layer"][1]["encoding"]["color"]["legend"]["labelExpr"] == f"({labels})[datum.label]"
    assert evil in render.draw_all({"x": spec})["x"].svg.replace("&apos;", "'")


def test_themes_have_the_same_tokens_and_none_is_left_unpainted() -> None:
    assert LIGHT.keys() == DARK.keys()
    spec = render.standalone(chart(SERIES, "goodput", frame_of([SERIES])) or {})
    assert not re.search(r"'@\w+'", str(spec))
    assert paint({"a": ["@ink", "@nobody", 1]}, LIGHT) == {"a": [LIGHT["ink"], "@nobody", 1]}
    assert path_token(8) == "@path0"
    assert [case_token(number) for number in (0, 7, 8, 9)] == ["@case0", "@case7", "@case1", "@case2"]


def test_the_median_trial_stands_for_a_case() -> None:
    values = [5.0, None, 1.0, 9.0, 3.0]
    rows = tuple(TrialRow(n, n, "", {"goodput_bps": value}) for n, value in enumerate(values))
    assert median_row(rows, "goodput_bps").index == 4
    assert median_row(rows, "completion_s").index == 0


def test_a_figure_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    svg = drawing(MPTCP)
    first = render.draw_all({"network": svg})["network"]
    monkeypatch.setattr(render, "_png", lambda _: pytest.fail("drawn again"))
    assert render.draw_all({"network": svg})["network"] == first
    assert first.png.startswith(b"\x89PNG")


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "file"))
    assert render.draw_all({"network": drawing(MPTCP)})["network"].png


def test_the_cache_keeps_a_bounded_number_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    monkeypatch.setattr(render, "CACHE", ContentCache("figures", most=4))
    for number in range(5):
        render.draw_all({"x": f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="{9 + number}"/>'})
    assert len(list((tmp_path / "figures").iterdir())) <= 4


def swept(*settings: dict[str, object]) -> Sweep | None:
    return sweep_of([CaseRows(str(number), given, ()) for number, given in enumerate(settings)])


def test_a_sweep_is_found_where_a_setting_takes_steps() -> None:
    rates = swept(
        *({"transport": t, "rate": r} for r in ("500kbit", "5mbit", "1gbit") for t in ("tcp", "mptcp"))
    )
    assert rates is not None
    assert (rates.axis.setting, rates.axis.unit) == ("rate", "Mbit/s")
    assert list(rates.values.values()) == [0.5, 0.5, 5, 5, 1000, 1000]
    assert set(rates.lines.of.values()) == {"TCP", "MPTCP"}
    delays = swept({"delay": "1ms"}, {"delay": "500us"}, {"delay": "2s"})
    assert delays is not None
    assert list(delays.values.values()) == [1, 0.5, 2000]
    loss = swept({"loss": "1%"}, {"loss": "0.5%"}, {"loss": "2%"})
    assert loss is not None
    assert list(loss.values.values()) == pytest.approx([1, 0.5, 2])


@pytest.mark.parametrize(
    "settings",
    [
        [{"transport": "tcp"}, {"transport": "mptcp"}],
        [{"rate": "5mbit"}, {"rate": "10mbit"}],  # two points make no curve
        [{"scheduler": name} for name in ("default", "blest", "ecf")],
        [{"rate": rate} for rate in ("5mbit", "5mbit", "10mbit", "20mbit")],  # two cases on one point
        [{"n": n, "name": name} for n in (1, 2, 3) for name in "abcdefghi"],  # too many lines
        [],
    ],
)
def test_other_studies_are_no_sweep(settings: list[dict[str, object]]) -> None:
    assert swept(*settings) is None
