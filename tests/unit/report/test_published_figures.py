"""Reports show groups of flows and published figures in the right places, and refuse wrong ones."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from fake_plans import FakeFlow, fake_plan
from plait.analysis.compare.summary import summarise
from plait.analysis.metrics.groups import group_metrics
from plait.analysis.model import CaseSummary, PublishedGoodput, Statistics, Summary
from plait.analysis.published import Published, published_in
from plait.analysis.rows import CaseRows, TrialRow
from plait.report import build
from plait.report.figures.case_values import trials_table
from plait.report.figures.kind import Content
from plait.report.figures.kinds.cases import CASES, cases_spec
from plait.report.figures.kinds.groups import GROUPS
from plait.report.figures.study_figures import drawn_figure
from plait.report.table import value_columns
from plait.report.terminal.summary import show
from plait.scenario import parse
from result_folders import FakeCase, two_paths, write_study
from scenario_samples import mistakes_as_text, plan_of

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
title: t
network: {hosts: [h1, h2], links: {h1-h2: {rate: 8mbit}}}
traffic:
  - bulk: {from: h1, to: h2, duration: 1s, count: 3, group: big}
  - bulk: {from: h1, to: h2, duration: 1s, group: small}
vary: {network.links.h1-h2.rate: [8mbit, 9mbit], zip: {transport: [tcp, mptcp]}}
published:
  source: A. Body, 1999
  values:
    - {case: {network.links.h1-h2.rate: 8mbit, transport: tcp}, goodput: 7mbit, each: {big: 1mbit}}
"""


def test_the_mean_of_a_group_needs_every_flow_of_it() -> None:
    plan = plan_of(TEXT)
    metrics: dict[str, float | None] = {f"bulk1.{n}.goodput_bps": float(n) for n in (1, 2, 3)}
    metrics["bulk2.goodput_bps"] = None
    assert group_metrics(plan, metrics) == {"big.mean_goodput_bps": 2.0, "small.mean_goodput_bps": None}


def test_published_figures_belong_to_the_cases_that_have_all_their_settings() -> None:
    scenario = parse(TEXT, "t.yaml").model_dump(mode="json")
    published = published_in(json.loads(json.dumps(scenario)))
    settings = {"network.links.h1-h2.rate": "8mbit", "transport": "tcp"}
    assert published.source == "A. Body, 1999"
    assert published.goodput_bps(settings) == 7e6
    assert published.goodput_bps(settings, "big") == 1e6
    assert published.goodput_bps(settings, "small") is None
    assert published.goodput_bps(settings | {"transport": "mptcp"}) is None
    assert published_in({"published": None}).goodput_bps(settings) is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("transport: tcp}, goodput", "transprt: tcp}, goodput", "t.yaml:10:48: published.values.0.case.transprt"),
        ("transport: tcp}, goodput", "transprt: tcp}, goodput", "does not vary; did you mean 'transport'?"),
        ("each: {big:", "each: {bug:", "published.values.0.each.bug: no flow has the group 'bug'; did you mean 'big'?"),
        ("goodput: 7mbit, each: {big: 1mbit}", "", "this entry has no result"),
        ("goodput: 7mbit", "goodput: 7", "published.values.0.goodput: 7 has no unit"),
        ("source: A. Body, 1999", "source: ''", "published.source"),
    ],
)  # fmt: skip
def test_mistakes_are_located(old: str, new: str, expected: str) -> None:
    assert old in TEXT
    assert expected in mistakes_as_text(TEXT.replace(old, new))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grouped")

    def plan(rate: int) -> Any:
        def grouped(seed: int) -> Any:
            made = fake_plan(*[FakeFlow(transport="tcp", duration_us=rate * 10**6)] * 2, seed=seed)
            named = [
                flow.model_copy(update={"group": group}) for flow, group in zip(made.flows, "ab", strict=True)
            ]
            return made.model_copy(update={"flows": tuple(named)})

        return grouped

    write_study(folder, tuple(FakeCase(f"n={n}", {"n": n}, plan(n)) for n in (1, 2)), repeat=2)
    about = json.loads((folder / "study.json").read_text())
    values = [{"case": {"n": 2}, "goodput": "9mbit", "each": {"b": "2mbit"}}]
    about["scenario"]["published"] = {"source": "A. Body <1999>", "values": values}
    (folder / "study.json").write_text(json.dumps(about))
    build(folder)
    return folder


def test_the_page_shows_groups_and_published_figures_side_by_side(study: Path) -> None:
    page = (study / "report.html").read_text(encoding="utf-8")
    assert '<th class="n" scope="col">a, each</th>' in page
    assert "published 2.00 Mbit/s, " in page
    assert "published 9.00 Mbit/s, " in page
    assert "A. Body &lt;1999&gt;" in page
    assert "diamond" in (study / "figures" / "goodput-by-group.svg").read_text() or (
        "A. Body" in (study / "figures" / "goodput-by-group.svg").read_text()
    )


def test_the_data_of_the_figure_are_those_of_the_summary(study: Path) -> None:
    rows = list(csv.DictReader((study / "figures" / "goodput-by-group.csv").open()))
    summary = json.loads((study / "summary.json").read_text())
    means = {
        (case["name"], group): case["metrics"][f"{group}.mean_goodput_bps"]["mean"]
        for case in summary["cases"]
        for group in "ab"
    }
    goodputs = {
        (row["case"], row["group"]): float(row["goodput_bps"]) for row in rows if row["what"] == "mean"
    }
    assert goodputs == pytest.approx(means)
    assert [row["goodput_bps"] for row in rows if row["what"] == "published"] == ["2000000"]
    assert len([row for row in rows if row["what"] == "trial"]) == 8


def test_a_mean_of_a_group_without_an_interval_has_no_ends_of_one() -> None:
    """The data had the mean as both ends, as if it were known exactly."""
    cases = (CaseRows("all", {}, (TrialRow(0, 0, "", {"a.mean_goodput_bps": 5e6}),)),)
    summary = summarise(cases, scenario="t", digest="", baseline=None)
    rows = trials_table(Content(cases, summary, (), Published()), "goodput_bps", {"a": "a.mean_goodput_bps"})
    assert rows[-1] == ["all", "a", "mean", "", "", "5000000", "", ""]


def test_the_terminal_has_a_column_for_each_group(study: Path) -> None:
    file = io.StringIO()
    show(study, file=file)
    lines = file.getvalue().splitlines()
    rule = next(
        number for number, line in enumerate(lines) if line.startswith("\N{BOX DRAWINGS LIGHT HORIZONTAL}")
    )
    head = " ".join(lines[:rule]).replace(",", "").replace("Mbit/s", "").split()
    assert head[:4] == ["n", "a", "b", "goodput"]
    table = "\n".join(lines).split("No room for:")[0]
    assert max(map(len, table.splitlines())) <= 80


def test_a_column_of_a_steady_goodput_says_so(study: Path, tmp_path: Path) -> None:
    """Beside it stands the goodput of the whole flows: a number over another window needs its name."""
    folder = shutil.copytree(study, tmp_path / "study")
    text = (folder / "summary.json").read_text()
    (folder / "summary.json").write_text(text.replace(".mean_goodput_bps", ".mean_steady_goodput_bps"))
    file = io.StringIO()
    show(folder, file=file)
    head = file.getvalue().split("\N{BOX DRAWINGS LIGHT HORIZONTAL}")[0]
    assert head.split().count("steady") + head.split().count("steady,") == 2


def test_the_terminal_and_the_summary_have_what_was_published(study: Path) -> None:
    file = io.StringIO()
    show(study, file=file)
    text = file.getvalue()
    summary = json.loads((study / "summary.json").read_text())
    assert summary["published_source"] == "A. Body <1999>"
    assert [case["published"] for case in summary["cases"]] == [
        None,
        {"goodput_bps": 9e6, "each_bps": {"b": 2e6}},
    ]
    assert re.search(r"^2 .* 9\.00 Mbit/s, ", text, re.MULTILINE)
    assert "n 2: b published 2.00 Mbit/s, " in text, "there is no room for it beside both groups"
    assert "Published: A. Body <1999>." in text


def test_the_terminal_has_a_column_of_what_was_published(tmp_path: Path) -> None:
    write_study(tmp_path, two_paths(), repeat=2)
    about = json.loads((tmp_path / "study.json").read_text())
    about["scenario"]["published"] = {
        "source": "B",
        "values": [{"case": {"transport": "mptcp"}, "goodput": "9.15mbit"}],
    }
    (tmp_path / "study.json").write_text(json.dumps(about))
    build(tmp_path)
    file = io.StringIO()
    show(tmp_path, file=file)
    lines = file.getvalue().splitlines()
    heading = next(line for line in lines if "transport" in line)
    assert re.search(r"transport +goodput.* +published", heading)
    assert "9.15 Mbit/s, " in next(line for line in lines if line.startswith("MPTCP"))


def test_another_vary_leaves_out_what_was_published_of_cases_that_are_gone() -> None:
    assert parse(TEXT, "t.yaml", ("vary={}",)).published is None
    kept = parse(TEXT, "t.yaml", ("vary.zip.transport=[tcp, mptcp]",)).published
    assert kept is not None
    assert len(kept.values) == 1


def test_figures_of_iperf3_have_a_column_and_replace_unmeasured_ones() -> None:
    statistics = {"client.iperf3_received_bps": Statistics(n=1, mean=150e6)}
    both = {**statistics, "goodput_bps": Statistics(n=1, mean=60e6)}
    given = PublishedGoodput(goodput_bps=120e6)
    cases = [
        CaseSummary(name=name, settings={"kind": name}, trials=1, failed=0, metrics=metrics, published=given)
        for name, metrics in (("udp", statistics), ("tcp", both))
    ]
    summary = Summary(schema=1, scenario="s", digest="sha256:0", cases=tuple(cases), comparisons=())
    cells = {column.name: column.cells for column in value_columns(summary)}
    headings = {column.name: column.page_title for column in value_columns(summary, "page")}
    assert headings["client.iperf3_received_bps"] == "Client: iperf3"
    assert cells["client.iperf3_received_bps"] == ("150 Mbit/s", "150 Mbit/s")
    assert cells["goodput_bps"] == ("\N{EN DASH}", "60.0 Mbit/s")
    assert cells["published"] == ("120 Mbit/s, +25.0 %", "120 Mbit/s, \N{MINUS SIGN}50.0 %")


def test_what_was_published_stands_beside_the_goodput_of_a_transfer() -> None:
    metrics = {"completion_s": Statistics(n=1, mean=19.2), "goodput_bps": Statistics(n=1, mean=18.8e6)}
    given = PublishedGoodput(goodput_bps=18.4e6)
    case = CaseSummary(name="mptcp", settings={}, trials=1, failed=0, metrics=metrics, published=given)
    summary = Summary(schema=1, scenario="s", digest="sha256:0", cases=(case,), comparisons=())
    assert [column.name for column in value_columns(summary)] == ["completion_s", "goodput_bps", "published"]


@pytest.mark.parametrize("published_bps", [9.1e6, 9.4e6, 4.2e6])
def test_the_number_of_a_case_does_not_cover_its_diamond(published_bps: float) -> None:
    measured = tuple(
        CaseRows(
            f"transport={kind}",
            {"transport": kind},
            tuple(TrialRow(seed, seed, "", {"goodput_bps": bps + seed * 1e4}) for seed in range(6)),
        )
        for kind, bps in (("tcp", 4.0e6), ("mptcp", 9.2e6))
    )
    kind = "tcp" if published_bps < 5e6 else "mptcp"
    published = Published("A. Body", (({"transport": kind}, {None: published_bps}),))
    summary = summarise(measured, scenario="t", digest="", baseline=None)
    spec = cases_spec(measured, summary.cases, "goodput_bps", published)
    assert spec is not None
    means = next(layer for layer in spec["layer"] if "layer" in layer)
    row = next(row for row in means["data"]["values"] if row["case"] == kind.upper())
    assert row["left"] <= published_bps / 1e6 <= row["right"]


def test_what_was_published_stands_beside_the_steady_goodput_that_it_is_compared_with() -> None:
    """The deviation was that of the steady goodput, in a column, a note and a figure of the whole flows' goodput."""
    metrics: dict[str, float | None] = {
        "goodput_bps": 7.8e6,
        "steady_goodput_bps": 8.4e6,
        "a.mean_goodput_bps": 2e6,
        "a.mean_steady_goodput_bps": 3e6,
    }
    measured = tuple(
        CaseRows(f"transport={kind}", {"transport": kind}, tuple(TrialRow(n, n, "", metrics) for n in (0, 1)))
        for kind in ("tcp", "mptcp")
    )
    published = Published("A. Body", (({"transport": "mptcp"}, {None: 8.8e6}),))
    summary = summarise(measured, scenario="t", digest="", baseline=None, published=published)
    columns = value_columns(summary)
    names = [column.name for column in columns]
    assert names[names.index("steady_goodput_bps") + 1] == "published"
    notes = {column.name: " ".join(map(" ".join, column.notes)) for column in columns}
    assert "published 8.80 Mbit/s, \N{MINUS SIGN}4.5 %" in notes["steady_goodput_bps"]
    assert "published" not in notes["goodput_bps"]
    content = Content(measured, summary, (), published)
    requests = [*GROUPS.selected(content), *CASES.selected(content)]
    figures = {request.name: drawn_figure(request, content) for request in requests}
    assert {
        name for name, figure in figures.items() if figure and "8.80 Mbit/s" in json.dumps(figure.panels)
    } == {"steady-goodput"}
    groups = figures["goodput-by-group"]
    assert groups is not None
    assert "Steady goodput of each flow, Mbit/s" in json.dumps(groups.panels)
