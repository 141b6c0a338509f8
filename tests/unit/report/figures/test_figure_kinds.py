"""Every kind of figure at the widths of papers, of 1, 6 and 30 cases: no text covers another, none is cut."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, get_args

import pytest

from case_samples import chosen, content, stepped
from fake_plans import FakeFlow, fake_plan
from fake_tables import fake_tables
from plait.analysis.series import trial_series
from plait.analysis.wording import significant
from plait.errors import RequestError
from plait.report.figures.kind import FigureRequest
from plait.report.figures.selection import KINDS, resolved
from plait.report.figures.study_figures import drawn_figure, laid_out
from plait.report.page.over_time import over_time
from plait.report.render.paper import PAPERS, PIXELS_PER_MM, width_in_mm
from plait.report.render.render import standalone, svg_of, width_of
from plait.report.representatives import spread
from plait.scenario.fields.figures import Kind
from svg_boxes import clipped, overlaps, size_of, text_boxes

if TYPE_CHECKING:
    from plait.report.figures.kind import Content

OF_TRIALS = {"over-time": "goodput", "delays": "message_delay"}
NUMBERS = {"line", "scatter"}
"""Kinds that need fields whose values are numbers."""
NOT_OF_ONE = {"intervals", "heat-map", "line", "scatter"}
"""Kinds that need a field that varies."""
DRAWN = [
    (kind, count, numbers)
    for kind in KINDS
    if kind != "groups"
    for count in (1, 6, 30)
    for numbers in (False, True)
    if not (kind in NUMBERS and not numbers) and not (count == 1 and (kind in NOT_OF_ONE or numbers))
]


@cache
def studied(count: int, numbers: bool) -> Content:
    return content(stepped(count) if numbers else chosen(count))


@cache
def svg(kind: str, count: int, numbers: bool, width: float) -> str:
    shown = studied(count, numbers)
    metric = OF_TRIALS.get(kind, "page_load_s")
    request = (
        FigureRequest("f", "delays", metric)
        if kind == "delays"
        else resolved(FigureRequest(name="f", kind=kind, metric=metric), shown)
    )
    figure = drawn_figure(replace(request, width="page"), shown)
    assert figure is not None, "the study has what this kind shows"
    return svg_of(standalone(laid_out(figure, width)))


@pytest.mark.parametrize(("kind", "count", "numbers"), DRAWN)
@pytest.mark.parametrize("width", [85.0, 181.9])
def test_no_text_covers_another_and_none_is_cut(kind: str, count: int, numbers: bool, width: float) -> None:
    drawn = svg(kind, count, numbers, width)
    assert overlaps(text_boxes(drawn)) == []
    assert clipped(drawn) == []
    assert [box.text for box in text_boxes(drawn) if "\N{HORIZONTAL ELLIPSIS}" in box.text] == []


@pytest.mark.parametrize(("kind", "count", "numbers"), DRAWN)
@pytest.mark.parametrize("width", [85.0, 181.9])
def test_a_figure_is_laid_out_for_its_width_and_hardly_scaled(
    kind: str, count: int, numbers: bool, width: float
) -> None:
    across, down = size_of(svg(kind, count, numbers, width))
    assert width * PIXELS_PER_MM / across == pytest.approx(1, abs=0.03)
    assert down * width / across <= 125, "at most half of a column of text"


def test_every_kind_that_a_scenario_can_ask_for_is_drawn() -> None:
    assert set(get_args(Kind)) <= set(KINDS)


def test_every_tick_of_steps_has_its_label() -> None:
    drawn = svg("line", 30, True, 85.0)
    labels = re.search(r'aria-label="X-axis.*?</g></g></g>', drawn, re.DOTALL)
    assert labels is not None
    ticks = len(re.findall(r"<line transform", labels[0].split("role-axis-label")[0]))
    words = re.findall(r">([\d.]+)</(?:text|tspan)>", labels[0].split("role-axis-title")[0])
    assert ticks == len(words) >= 3


@pytest.mark.parametrize("width", [85.0, 175.0])
def test_charts_over_time_have_one_key_and_name_their_axes_once(width: float) -> None:
    texts = [box.text for box in text_boxes(svg("over-time", 6, False, width))]
    assert texts.count("h1-s1-h2") == 1
    assert texts.count("Goodput, Mbit/s") == 1
    assert texts.count("Time, s") == 1
    assert "default, cubic" in texts
    assert not [text for text in texts if "congestion_control" in text]


ROLES = [
    ("cases", False, {"x": "congestion_control", "color": "scheduler"}),
    ("cases", False, {"color": "scheduler", "facets": "congestion_control"}),
    ("distribution", False, {"color": "scheduler", "facets": "congestion_control"}),
    ("intervals", False, {"x": "scheduler", "color": "congestion_control"}),
    ("line", True, {"x": "delay", "color": "transport"}),
    ("line", True, {"x": "delay", "color": "rate", "facets": "transport"}),
    ("heat-map", True, {"x": "delay", "y": "rate", "facets": "transport"}),
    ("heat-map", True, {"facets": "rate"}),
    ("scatter", True, {"x": "delay", "color": "transport"}),
    ("scatter", True, {"x": "delay", "color": "rate", "facets": "transport"}),
]


@pytest.mark.parametrize("width", ["column", "page"])
@pytest.mark.parametrize(("kind", "numbers", "roles"), ROLES)
def test_fields_have_the_roles_that_the_scenario_gives_them(
    kind: str, numbers: bool, roles: dict[str, str], width: str
) -> None:
    shown = studied(30, numbers)
    asked = FigureRequest(name="f", kind=kind, metric="page_load_s", width=width, **roles)
    figure = drawn_figure(resolved(asked, shown), shown)
    assert figure is not None
    if "facets" in roles:
        field = roles["facets"]
        values = {
            str(value)
            for case in shown.cases
            for name, value in case.settings.items()
            if name.endswith(field)
        }
        titles = {str(panel.get("title", "")) for panel in figure.panels}
        named = {
            value for value in values if any(value.removesuffix("mbit") in title.lower() for title in titles)
        }
        assert named == values, titles
    drawn = svg_of(standalone(laid_out(figure, 175.0)))
    assert overlaps(text_boxes(drawn)) == []
    assert clipped(drawn) == []
    assert [box.text for box in text_boxes(drawn) if "\N{HORIZONTAL ELLIPSIS}" in box.text] == []
    if kind in {"line", "scatter"} and "color" in roles:
        texts = [box.text for box in text_boxes(drawn)]
        words = ("TCP", "MPTCP") if roles["color"] == "transport" else ("Rate, Mbit/s", "100")
        assert all(texts.count(word) >= 1 for word in words), "the key has the levels of its factor"
        title = "Transport" if roles["color"] == "transport" else "Rate, Mbit/s"
        assert texts.count(title) == 1, "one key serves all panels"


@pytest.mark.parametrize(
    ("style", "column", "page"), [("ieee", 88.9, 181.9), ("acm", 84.7, 177.9), ("usenix", 84.6, 177.8)]
)
def test_a_publisher_decides_the_widths_of_a_figure(style: str, column: float, page: float) -> None:
    shown = studied(30, numbers=False)
    for width, expected in (("column", column), ("page", page)):
        asked = FigureRequest(name="f", kind="intervals", metric="page_load_s", width=width, style=style)
        figure = drawn_figure(resolved(asked, shown), shown)
        assert figure is not None
        spec = standalone(laid_out(figure, 175.0))
        assert width_of(spec, 175.0) == expected
        drawn = svg_of(spec)
        assert size_of(drawn)[0] == pytest.approx(expected * PIXELS_PER_MM, rel=0.03)
        assert overlaps(text_boxes(drawn)) == []
        assert clipped(drawn) == []


@pytest.mark.parametrize(("text", "width"), [("page", 181.9), ("column", 88.9), ("120", 120.0)])
def test_widths_have_names_or_millimetres(text: str, width: float) -> None:
    assert width_in_mm(text, PAPERS["ieee"]) == width


@pytest.mark.parametrize("text", ["wide", "nan", "inf", "12", "1000", ""])
def test_other_widths_are_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(RequestError, match="write page, column, or a number from 40 to 400"):
        width_in_mm(text, PAPERS["plain"])


@pytest.mark.parametrize("metric", ["goodput", "rtt"])
@pytest.mark.parametrize("width", [85.0, 181.9])
@pytest.mark.parametrize("flows", [3, 6])
def test_charts_of_several_flows_have_one_legible_key(metric: str, width: float, flows: int) -> None:
    """With more lines than colours, lines have the colours of their paths."""
    shown = studied(6, numbers=False)
    plan = fake_plan(*(FakeFlow(start_us=number) for number in range(flows)))
    series = trial_series(plan, fake_tables(plan))
    first, *others = series.subflows
    turned = (*others, first)  # another case has the same lines in other colours
    coloured = [
        replace(line, label=f"page.c{n}: server-wifi-phone", colour=n) for n, line in enumerate(turned)
    ]
    other = "c" if flows == 3 else "d"
    again = [
        replace(line, label=f"page.{other}{n}: server-wifi-phone", colour=(n + 1) % 8)
        for n, line in enumerate(coloured)
    ]
    several = tuple(
        replace(drawn, series=replace(series, subflows=tuple(again if number % 2 else coloured)))
        for number, drawn in enumerate(shown.shown)
    )
    figure = drawn_figure(FigureRequest("f", "over-time", metric), replace(shown, shown=several))
    assert figure is not None
    drawn = svg_of(standalone(laid_out(figure, width)))
    boxes = text_boxes(drawn)
    assert overlaps(boxes) == []
    assert clipped(drawn) == []
    assert [box.text for box in boxes if "\N{HORIZONTAL ELLIPSIS}" in box.text] == []
    words = [box.text for box in boxes]
    entries = [text for text in words if text.startswith("page.")]
    assert len(entries) == (len(coloured) if flows == 3 else 0)
    if flows > 3:
        assert [words.count(path) for path in dict.fromkeys(line.path for line in coloured)] == [1, 1]
    assert width * PIXELS_PER_MM / size_of(drawn)[0] == pytest.approx(1, abs=0.03)


def test_lines_over_time_differ_in_their_dashes() -> None:
    shown = studied(6, numbers=False)
    figure = drawn_figure(FigureRequest("f", "over-time", "rtt"), shown)
    assert figure is not None
    drawn = svg_of(standalone(laid_out(figure, 175.0)))
    dashes = set(re.findall(r'stroke-dasharray="([^"]*)"', drawn))
    assert "6,3" in dashes


@pytest.mark.parametrize(("flows", "counted"), [(1, "trials"), (2, "flows of all trials")])
def test_the_caption_of_a_distribution_says_what_its_lines_count(flows: int, counted: str) -> None:
    shown = studied(30, numbers=False)
    values = {f"page{number}.page_load_s": 1.0 for number in range(flows)}
    rows = [
        replace(case, rows=tuple(replace(row, metrics=row.metrics | values) for row in case.rows))
        for case in shown.rows
    ]
    figure = drawn_figure(FigureRequest("f", "distribution", "page_load_s"), replace(shown, rows=tuple(rows)))
    assert figure is not None
    assert f"the share of {counted} with at most that value" in figure.marks


def test_lines_that_cover_each_other_in_every_panel_share_an_entry_of_the_key() -> None:
    shown = studied(30, numbers=False)
    cubic = {
        case.settings["scheduler"]: case.rows
        for case in shown.rows
        if case.settings["congestion_control"] == "cubic"
    }
    alike = tuple(
        replace(case, rows=cubic[case.settings["scheduler"]])
        if case.settings["congestion_control"] == "reno"
        else case
        for case in shown.rows
    )
    request = FigureRequest("f", "distribution", "page_load_s")
    figure = drawn_figure(request, replace(shown, rows=alike))
    assert figure is not None
    words = [box.text for box in text_boxes(svg_of(standalone(laid_out(figure, 85.0))))]
    assert words.count("cubic = reno") == 1
    assert "reno" not in words
    assert "lia" in words


@pytest.mark.parametrize(
    ("values", "most", "positions"),
    [
        ([5.0, None, 3.0], 3, [0, 1, 2]),
        ([5.0, 4.0, 9.0, 1.0, 7.0, 2.0, 8.0], 3, [0, 2, 3]),
        ([float(number) for number in range(30)], 6, [0, 1, 8, 15, 22, 29]),
        ([2.0, 3.0, 4.0, None, 1.0], 3, [0, 2, 4]),
        ([None, None, 4.0, None, None], 3, [0, 1, 2]),
    ],
)
def test_of_many_cases_those_between_the_extremes_are_drawn_over_time(
    values: list[float | None], most: int, positions: list[int]
) -> None:
    assert spread(values, most) == positions


def test_a_figure_over_time_of_many_cases_has_the_best_and_the_worst_one() -> None:
    shown = studied(30, numbers=False)
    trials = tuple(replace(trial, value=float(-number)) for number, trial in enumerate(shown.shown))
    request = FigureRequest("f", "over-time", "goodput")
    rows = KINDS["over-time"].table(request, replace(shown, shown=trials))
    drawn = list(dict.fromkeys(row[0] for row in rows[1:]))
    assert len(drawn) == 6
    assert {trials[0].case, trials[1].case, trials[-1].case} <= set(drawn)


def test_a_case_without_a_result_shows_its_first_trial() -> None:
    shown = studied(30, numbers=False)
    trials = [replace(trial, value=1.0 if number else None) for number, trial in enumerate(shown.shown[:2])]
    page = str(over_time(trials, shown.summary)[0])
    assert re.findall(r"the (?:median|first) of 8", page) == ["the first of 8", "the median of 8"]
    assert "or its first one where none has a result" in page
    assert "where none has a result" not in str(over_time(trials[1:], shown.summary)[0])


def test_the_line_above_panels_names_their_factor_within_its_sentence() -> None:
    figure = drawn_figure(FigureRequest("f", "over-time", "rtt"), studied(30, numbers=False))
    assert figure is not None
    above = laid_out(figure, 85.0)["title"]["text"]
    text = " ".join(above) if isinstance(above, list) else above
    assert text == "6 of 30 cases, all with scheduler default; a panel for each congestion control"


def test_a_narrow_panel_has_at_least_two_numbers_along_its_axis() -> None:
    shown = studied(30, numbers=False)
    late = tuple(
        replace(
            case,
            rows=tuple(
                replace(row, metrics={"completion_s": 4 + 4 * row.index + 0.1 * number}) for row in case.rows
            ),
        )
        for number, case in enumerate(shown.rows)
    )
    figure = drawn_figure(FigureRequest("f", "distribution", "completion_s"), replace(shown, rows=late))
    assert figure is not None
    drawn = svg_of(standalone(laid_out(figure, 85.0)))
    numbers = [box.text for box in text_boxes(drawn) if box.text.isdigit()]
    assert len(set(numbers)) >= 2
    assert overlaps(text_boxes(drawn)) == []


@pytest.mark.parametrize("width", [85.0, 175.0])
def test_a_tick_says_the_value_at_which_it_stands(width: float) -> None:
    losses = ("0.5%", "2%")
    schedulers = ("default", "ecf", "blest", "redundant", "roundrobin")
    shown = content(
        [{"scheduler": s, "network.links.h1-s1.loss": loss} for s in schedulers for loss in losses]
    )
    asked = FigureRequest(name="f", kind="line", metric="page_load_s", x="loss", facets="scheduler")
    figure = drawn_figure(resolved(asked, shown), shown)
    assert figure is not None
    texts = {box.text for box in text_boxes(svg_of(standalone(laid_out(figure, width))))}
    assert {"0.5", "2"} <= texts
    assert "1" not in texts  # 0.5 without its decimals


@pytest.mark.parametrize("transports", [("mptcp",), ("tcp", "mptcp")])
def test_the_key_of_a_heat_map_has_the_digits_of_its_cells(transports: tuple[str, ...]) -> None:
    """The key said 6 and 8 of colours from 5.62 to 7.51, because ticks of a scale are round numbers."""
    shown = content(
        [
            {"transport": transport, "network.links.h1-s1.rate": rate, "network.links.h1-s1.delay": delay}
            for rate in ("5mbit", "10mbit", "20mbit")
            for delay in ("1ms", "10ms", "50ms")
            for transport in transports
        ]
    )
    asked = FigureRequest(name="f", kind="heat-map", metric="goodput_bps", x="rate", y="delay")
    figure = drawn_figure(resolved(asked, shown), shown)
    assert figure is not None
    texts = [box.text for box in text_boxes(svg_of(standalone(laid_out(figure, 175.0))))]
    cells = [cell["shown"] for panel in figure.panels for cell in panel["data"]["values"]]
    domain = figure.panels[0]["layer"][0]["encoding"]["color"]["scale"]["domain"]
    for end in (significant(domain[0]), significant(domain[-1])):
        assert texts.count(end) == cells.count(end) + 1


def test_the_title_of_a_panel_over_time_has_its_unit_behind_the_number() -> None:
    """It was `Loss, % 0.5`."""
    shown = content([{"network.links.h1-s1.loss": loss} for loss in ("0%", "0.5%")])
    figure = drawn_figure(FigureRequest("f", "over-time", "rtt"), shown)
    assert figure is not None
    assert [panel["title"] for panel in figure.panels] == ["Loss 0 %", "Loss 0.5 %"]
