"""The catalogue of metrics is complete, agrees with the reference page, and has the right units and functions."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import get_args

import pytest

from plait.analysis.metrics.catalogue import CATALOGUE, COMPARED, heading_of, metric_of, title_of, unit_of
from plait.analysis.metrics.units import COUNT, NUMBER, PERCENT, unit_by_ending
from plait.analysis.values import scale_of, show
from plait.dataset.model import ALL_TABLES
from plait.metric_names import FIGURE_METRICS, OTHER_METRICS
from plait.plan.model.applications import Application

RESULTS = Path(__file__).parents[3] / "docs" / "reference" / "results.md"
IPERF3 = "PROGRAM.iperf3_.."
OWN = "PROGRAM.NAME"
"""The numbers of a program with `result: json` have names that no catalogue knows."""


def documented() -> set[str]:
    """Return the metrics of the reference page with their owners; for metrics of single flows it has a rule instead."""
    text = RESULTS.read_text(encoding="utf-8")
    section = text[text.index("\n## Metrics\n") :].split("\n## ", 2)[1]
    heads = re.findall(r"^- (\*\*`.+?):", section, re.MULTILINE | re.DOTALL)
    names = {name for head in heads for name in re.findall(r"`([^`]+)`", head)}
    figures = text[text.index("\n### program_figures\n") :].split("\n## ")[0]
    programs = {f"PROGRAM.{name}" for name in re.findall(r"`(iperf3_\w+)`", figures)}
    assert {IPERF3, OWN} <= names
    numbered = {re.sub(r"(?<=observed_)\d", "N", name) for name in names - {IPERF3, OWN}}
    return {name for name in {*numbered, *programs} if not name.startswith("FLOW.")}


def test_the_catalogue_and_the_reference_page_have_the_same_metrics() -> None:
    listed = {
        name if owner == "trial" else f"{owner}.{name}"
        for name, metric in CATALOGUE.items()
        for owner in metric.owners
        if owner != "FLOW"
    }
    assert listed == documented()


def test_the_catalogue_has_a_record_for_each_name_and_no_other() -> None:
    assert sorted(CATALOGUE) == sorted([*FIGURE_METRICS, *OTHER_METRICS])


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_metrics_unit_is_the_one_that_its_name_ends_in(name: str) -> None:
    unit = CATALOGUE[name].unit
    assert unit is unit_by_ending(name) or (
        unit_by_ending(name) is NUMBER and unit in {COUNT, PERCENT, NUMBER}
    )


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_functions_that_compute_a_metric_exist(name: str) -> None:
    for module, function in re.findall(r"\b([a-z_]+)\.([a-z_]\w*)", CATALOGUE[name].computed):
        assert hasattr(importlib.import_module(f"plait.analysis.metrics.{module}"), function)


def test_the_kinds_of_traffic_are_those_of_the_plan_and_probes() -> None:
    (union, *_) = get_args(Application)
    kinds = {kind.model_fields["kind"].default for kind in get_args(union)}
    named = {kind for metric in CATALOGUE.values() for kind in metric.traffic}
    assert named == {*kinds, "probe"}
    assert "probes" in ALL_TABLES
    for metric in COMPARED.values():
        assert set(metric.speaks_for) <= set(metric.traffic)


def test_names_with_owners_and_numbers_and_unknown_names_are_looked_up() -> None:
    assert title_of("p1.path_share") == "Share of the path, p1"
    assert heading_of("observed_2path_share") == "observed on two paths"
    assert show("web.observed_1path_share", 0.5) == "50.0 %"
    assert metric_of("of_a_later_version_us") is None
    assert title_of("of_a_later_version_us") == "of_a_later_version_us"
    assert show("of_a_later_version_us", 2000) == "2.00 ms"
    assert unit_of("path_share_of_a_later_version") is NUMBER


def test_axes_have_the_unit_that_fits_the_largest_value() -> None:
    assert scale_of("path_switches_per_s", 3) == (1.0, "1/s")
    assert scale_of("udp_loss_ratio", 0.5) == (0.01, "%")
    assert scale_of("queue_max_bytes", 64_000) == (1e3, "kB")
