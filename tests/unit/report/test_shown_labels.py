"""Labels appear wherever people read, and names stay in data."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import pytest

from fake_plans import FakeFlow, fake_plan
from plait.analysis.compare.studies import compare_studies
from plait.analysis.labels.cases import case_label, labels, short_label
from plait.analysis.labels.labelled import labelled
from plait.analysis.labels.study_labels import StudyLabels, labels_in
from plait.plan.links.changes import link_changes
from plait.report import build
from plait.report.figures.axes import factors
from plait.report.terminal.explanation import show_explanation
from plait.report.terminal.summary import show
from plait.results.explain import explain_study, for_people
from plait.results.read import read_study
from plait.view.site import StudySite
from result_folders import FakeCase, two_paths, write_study
from scenario_samples import direct, plan_of

if TYPE_CHECKING:
    from pathlib import Path

PLAN = fake_plan(FakeFlow(transport="mptcp"))
PATHS = [path.name for path in PLAN.flows[0].paths]
LABELS = {
    "nodes": {"h1": "My <i>phone", "h2": "The server"},
    "links": {PLAN.links[0].name: "Wi-Fi & more"},
    "paths": {PATHS[0]: "first way", PATHS[1]: "second way"},
    "flows": {PLAN.flows[0].name: "Upload"},
    "cases": {"transport=tcp": "Today", "transport=mptcp": "To <b>come"},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two cases in which everything has a label, with its report."""
    folder = tmp_path_factory.mktemp("labelled") / "study"
    write_study(folder, two_paths(), repeat=2)
    about = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    about["scenario"]["labels"] = LABELS
    (folder / "study.json").write_text(json.dumps(about), encoding="utf-8")
    build(folder)
    return folder


def test_changes_of_a_link_with_a_label_name_the_directions_of_the_labelled_plan() -> None:
    """The explanation of such a trial failed: it looked for the changed direction under its name."""
    links = "a-b: {rate: 5mbit, label: DSL}, a-b#2: {rate: 5mbit}"
    plan = plan_of(direct(links), "events=[{at: 2s, set: {a-b: {delay: 9ms}}}]")
    called, _ = labelled(plan, {}, StudyLabels(links={"a-b": "DSL"}))
    changes = [(change.before.name, change.now.name, change.now.delay_ns) for change in link_changes(called)]
    assert changes == [(name, name, 9_000_000) for name in ("DSL (a->b)", "DSL (b->a)")]


def test_a_path_over_one_link_has_the_label_of_the_link_unless_it_has_its_own() -> None:
    called = StudyLabels(links={"a-b": "DSL", "a-b#2": "LTE"}, paths={"a-b#2": "Mobile"})
    assert [called.path(name) for name in ("a-b", "a-b#2", "a-s-b")] == ["DSL", "Mobile", "a-s-b"]
    assert called.metric_owner("bulk1.a-b") == "bulk1: DSL"


def test_the_drawing_of_the_network_has_labels_of_nodes_links_and_paths(study: Path) -> None:
    svg = (study / "figures/network.svg").read_text(encoding="utf-8")
    for words in ("My &lt;i&gt;phone", "The server", "Wi-Fi &amp; more: ", "first way: ", "second way: "):
        assert words in svg
    assert "<i>" not in svg


def test_figures_have_labels_of_paths_and_cases_and_their_data_have_names(study: Path) -> None:
    over_time = (study / "figures/goodput-over-time.svg").read_text(encoding="utf-8")
    for words in ("first way", "Today", "To &lt;b&gt;come"):
        assert words in over_time
    data = (study / "figures/goodput-over-time.csv").read_text(encoding="utf-8")
    assert f",{PATHS[0]}," in data
    assert "first way" not in data
    assert "Today" in (study / "figures/goodput.svg").read_text(encoding="utf-8")


def test_the_page_has_labels_escaped(study: Path) -> None:
    page = (study / "report.html").read_text(encoding="utf-8")
    for words in ("Today", "To &lt;b&gt;come", "My &lt;i&gt;phone", "Upload reached", "first way carried"):
        assert words in page
    assert "To <b>come" not in page
    assert "My <i>phone" not in page


def test_the_terminal_has_labels_in_tables_and_sentences(study: Path) -> None:
    shown = io.StringIO()
    show(study, file=shown)
    text = shown.getvalue()
    assert re.search(r"^case +.*of Today", text, re.MULTILINE)
    assert re.search(r"To <b>come gives [0-9.]+ times the goodput of Today", " ".join(text.split()))
    assert "transport" not in text.replace(str(study), "")


def test_the_explanation_has_labels_and_its_json_has_names(study: Path) -> None:
    by_name = explain_study(study, case="transport=mptcp", flow=PLAN.flows[0].name)
    shown = io.StringIO()
    show_explanation(*for_people(study, by_name, PLAN.flows[0].name), file=shown)
    words = " ".join(shown.getvalue().split())
    assert "Upload reached" in words
    assert "first way carried" in words
    data = by_name.model_dump_json()
    assert f'"path":"{PATHS[0]}"' in data
    assert "first way" not in data


@pytest.mark.parametrize("width", [60, 80])
def test_each_cause_is_in_the_line_of_its_share_on_a_narrow_terminal(
    study: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    by_name = explain_study(study, case="transport=mptcp", flow=PLAN.flows[0].name)
    shown = io.StringIO()
    show_explanation(by_name, {}, file=shown)
    lines = [line.rstrip() for line in shown.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    large = [share.cause for share in by_name.cases[0].flows[0].shares if share.time >= 0.01]
    assert large
    for cause in large:
        assert [line for line in lines if re.search(rf" %  .*  {cause}$", line)], (cause, lines)


def test_summary_has_names_and_says_what_they_are_called(study: Path) -> None:
    summary = json.loads((study / "summary.json").read_text(encoding="utf-8"))
    assert [case["name"] for case in summary["cases"]] == ["transport=tcp", "transport=mptcp"]
    assert summary["cases"][0]["label"] == "Today"
    assert f"{PATHS[0]}.path_share" in summary["cases"][1]["metrics"]
    assert summary["labels"]["paths"] == LABELS["paths"]


def test_a_study_without_labels_has_none_in_its_summary(tmp_path: Path) -> None:
    write_study(tmp_path / "s", two_paths(), repeat=1)
    build(tmp_path / "s")
    text = (tmp_path / "s/summary.json").read_text(encoding="utf-8")
    assert '"label' not in text


def test_the_view_has_labels(study: Path) -> None:
    site = StudySite([study.parent], live=False)
    key = site.studies()["studies"][0]["id"]
    page = site.study_view(key)
    assert page["labels"] == ["Today", "To <b>come"]
    assert page["labelled"] is True
    assert any(view["title"].endswith(", first way") for view in page["metrics"])
    trial = site.trial(key, 1, 0)
    assert {line["label"] for line in trial["series"]["subflows"]} == {"first way", "second way"}
    assert [flow["name"] for flow in trial["flows"]] == ["Upload"]
    assert any(link["name"].startswith("Wi-Fi & more (My <i>phone") for link in trial["links"])
    assert "My &lt;i&gt;phone" in trial["network"]["svg"]


def test_comparing_studies_calls_cases_by_their_labels(study: Path) -> None:
    rows = read_study(study).cases
    comparison = compare_studies(rows, rows, metrics=("goodput_bps",), tolerance=0.0)
    assert [row.sentence.partition(":")[0] for row in comparison.cases] == ["Today", "To <b>come"]
    assert [row.case for row in comparison.cases] == ["transport=tcp", "transport=mptcp"]


def test_labels_of_a_strangers_study_are_left_out_if_they_could_be_none() -> None:
    scenario = {
        "network": {"hosts": {"h1": {"label": "a\x1b[31mb"}}, "links": ["x"], "switches": {"s": None}},
        "traffic": [{"bulk": {"label": "Up"}}, 5, {"udp": None}],
        "labels": {"paths": {"h1-h2": ["x"]}, "cases": "x", "links": {"h1-h2": "y" * 61}},
    }
    assert labels_in(scenario) == StudyLabels(flows={"bulk1": "Up"})
    assert labels_in("text") == StudyLabels()


def test_flows_and_metrics_are_called_by_the_labels_of_their_parts() -> None:
    called = StudyLabels(flows={"bulk1": "Backup"}, paths={"h1-s1-h2": "Wi-Fi"}, links={"h1-s1": "Air"})
    assert called.flow("bulk1.2") == "Backup 2"
    assert called.flow("bulk12") == "bulk12"
    assert called.metric_owner("h1-s1-h2") == "Wi-Fi"
    assert called.metric_owner("bulk1.h1-s1-h2") == "Backup: Wi-Fi"
    assert called.metric_owner("iperf3-1") == "iperf3-1"
    assert called.metric_owner("x->y#2") == "x->y#2"
    assert StudyLabels(nodes={"x": "Phone"}).metric_owner("x->y#2") == "Phone->y#2"
    assert called.direction("h1-s1", "h1->s1", "h1", "s1") == "Air (h1->s1)"
    assert called.direction("h1-s2#2", "h1->s2#2", "h1", "s2") == "h1->s2#2"


def test_cases_of_several_factors_are_called_by_one_level_of_each() -> None:
    settings = {"scheduler": "redundant", "congestion_control": "cubic"}
    assert case_label("x", settings) == "redundant with cubic"
    assert case_label("x", {"transport": "mptcp", **settings}) == "MPTCP with redundant and cubic"
    assert (
        case_label("x", {**settings, "network.links.*.rate": "5mbit"}) == "redundant with cubic, rate 5mbit"
    )
    assert case_label("x", {"scheduler": "redundant"}) == "scheduler redundant"
    assert case_label("x", {"a.scheduler": "x", "b.scheduler": "x"}) == "a.scheduler x, b.scheduler x"
    assert short_label("redundant with cubic", settings) == "redundant, cubic"
    assert short_label("My case", settings) == "My case"
    transports = {"transport": "mptcp", "mptcp.scheduler": "redundant"}
    assert short_label(case_label("", transports), transports) == "MPTCP, redundant"
    cases = [FakeCase(value, {"scheduler": "x", "via": value}, lambda _: PLAN) for value in ("h1", "h2")]
    assert list(labels(cases).values()) == ["x, via h1", "x, via h2"]
    assert [factor.setting for factor in factors(cases)] == ["via"]
