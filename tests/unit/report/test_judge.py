"""`judge` decides headline, columns, comparisons and tests; what it cannot mean is refused or cautioned."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from case_samples import crossed
from plait.analysis.compare.factors import Design
from plait.analysis.compare.summary import summarise
from plait.analysis.judge import judged_in, margins_in, unmeasured
from plait.analysis.metrics.catalogue import compared_metric
from plait.errors import ScenarioError
from plait.report.headline import headline, sentences
from plait.report.table import value_columns
from plait.report.terminal.comparison import compare_folders
from plait.scenario.read.parse import parse
from result_folders import two_paths, write_study

if TYPE_CHECKING:
    from pathlib import Path

    from plait.analysis.model import Summary

SCENARIO = """
title: Two hosts
network:
  hosts: [a, b]
  links: {a-b: {rate: 5mbit}}
traffic:
  - bulk: {from: a, to: b, duration: 1s}
"""


def judged(*metrics: str) -> Summary:
    cases = crossed({"scheduler": ("default", "minrtt", "redundant")})
    return summarise(
        cases,
        scenario="s",
        digest="sha256:00",
        baseline=cases[0].name,
        judged=judged_in({"judge": [*metrics]}),
    )


def test_the_first_judged_metric_is_the_headline_the_first_column_and_the_tested_one() -> None:
    summary = judged("retransmits", "goodput_bps")
    words = "".join(phrase for phrase, _ in headline(summary))
    assert "has the lowest retransmitted segments" in words
    assert [column.name for column in value_columns(summary)][:4] == [
        "retransmits",
        "goodput_bps",
        "ratio",
        "goodput_bps:ratio",
    ]
    assert list(dict.fromkeys(effect.metric for effect in summary.effects)) == ["retransmits", "goodput_bps"]
    assert [c.metric for c in summary.comparisons][:2] == ["retransmits", "goodput_bps"]


def test_without_judge_the_kind_of_traffic_decides() -> None:
    assert value_columns(judged())[0].name == "page_load_s"
    assert {effect.metric for effect in judged().effects} == {"page_load_s"}


def test_a_metric_that_nothing_measured_is_cautioned_and_the_next_one_decides() -> None:
    summary = judged("completion_s", "goodput_bps")
    assert value_columns(summary)[0].name == "goodput_bps"
    (caution,) = unmeasured(summary)
    assert caution.code == "JUDGE_EMPTY"
    assert "completion_s" in caution.message


def test_a_percentile_and_the_metric_of_a_flow_have_names() -> None:
    assert judged_in({"judge": ["page_load_s.p95", "video.goodput_bps", "message_delay_us.p50"]}) == (
        "page_load_p95_s",
        "video.goodput_bps",
        "message_delay_p50_us",
    )
    assert compared_metric("video.goodput_bps").noun == "goodput of video"


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("page_lod_s", "there is no metric 'page_lod_s'; did you mean 'page_load_s'?"),
        ("path_share_max", "plait cannot judge by 'path_share_max'"),
        ("[goodput_bps, goodput_bps]", "'goodput_bps' occurs twice"),
        ("{goodput_bps: 2}", "judge.goodput_bps: 2 has no unit; write for example 1%"),
        ("{goodput_bps: 80%}", "80% is no small difference; write 0% to 50%"),
        ("goodput_bps\nacross: network", "'network' is no named factor"),
        ("page_load_s.p50", "there is no metric 'page_load_s.p50'"),
    ],
)
def test_mistakes_are_refused_with_the_remedy(judge: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message.replace("?", r"\?").replace(".", r"\.")):
        parse(f"{SCENARIO}judge: {judge}\n", "s.yaml")


def test_a_single_name_needs_no_brackets() -> None:
    assert parse(f"{SCENARIO}judge: goodput_bps\n", "s.yaml").judge == {"goodput_bps": None}


def test_a_metric_has_a_smallest_difference_of_interest() -> None:
    scenario = parse(f"{SCENARIO}judge: {{page_load_s.p95: 2%, goodput_bps: null}}\n", "s.yaml")
    written = scenario.model_dump(mode="json")
    assert judged_in(written) == ("page_load_p95_s", "goodput_bps")
    assert margins_in(written) == {"page_load_p95_s": 0.02}
    assert Design(margins=margins_in(written)).margin_of("video.page_load_p95_s") == 0.02
    assert Design(margins=margins_in(written)).margin_of("goodput_bps") == 0.01


def test_the_heading_of_a_column_names_its_metric() -> None:
    written = parse(f"{SCENARIO}judge: {{delay p95: 2%, video.goodput: null}}\n", "s.yaml").model_dump(
        mode="json"
    )
    assert judged_in(written) == ("message_delay_p95_us", "video.goodput_bps")
    with pytest.raises(ScenarioError, match="'goodput' occurs twice"):
        parse(f"{SCENARIO}judge: [goodput_bps, goodput]\n", "s.yaml")
    assert margins_in({"judge": {"goodput_bps": "much"}}) == margins_in({"judge": ["x"]}) == {}


def test_compare_judges_by_what_the_second_scenario_judges_by(tmp_path: Path) -> None:
    for name in ("before", "after"):
        write_study(tmp_path / name, two_paths(), repeat=2)
    about = json.loads((tmp_path / "after" / "study.json").read_text())
    about["scenario"]["judge"] = ["retransmits"]
    (tmp_path / "after" / "study.json").write_text(json.dumps(about))
    comparison, _ = compare_folders(tmp_path / "before", tmp_path / "after", metrics=(), tolerance=0.0)
    assert {row.metric for row in comparison.cases} == {"retransmits"}


@pytest.mark.parametrize(("verdict", "expected"), [("unclear", True), ("more", False)])
def test_an_effect_beside_undecided_comparisons_says_that_none_is_decided(
    verdict: str, *, expected: bool
) -> None:
    summary = judged()
    effects = tuple(effect.model_copy(update={"verdict": "depends"}) for effect in summary.effects)
    compared = tuple(row.model_copy(update={"verdict": verdict}) for row in summary.comparisons)
    shown = sentences(summary.model_copy(update={"effects": effects, "comparisons": compared}))
    assert any("no comparison of two cases decides" in line for line in shown) is expected
