"""The catalogue of metrics is complete, agrees with the reference page, and has the right units and functions."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import plait
from plait import metrics
from plait.analysis.metrics.catalogue import heading_of, metric_of, title_of, unit_of
from plait.analysis.values import scale_of, show
from plait.dataset.model import ALL_TABLES
from plait.metrics import CATALOGUE, COMPARED
from plait.traffic.kinds import COMPLETED, JOBS, Application

PACKAGE = Path(plait.__file__).parent
SUPPORT = Path(__file__).parents[2] / "support"
ENTRY = """
    Metric(
        "scratch_bytes", "Scratched data", ("bulk",), "received bytes / 7", better="less", owners=FLOW,
        compute=lambda trial: sum(trial.rows[flow.id]["received_bytes"] for flow in trial.flows) / 7,
        heading="scratched", beside="goodput_bps",
    ),
)  # fmt: skip
"""
STUDY = """
import json, sys
from pathlib import Path
from plait.cli import main
from plait.scenario.read.parse import parse
from plait.view.study_data import metric_view, ordered_metrics
from plait.analysis.labels.study_labels import StudyLabels
from result_folders import two_paths, write_study

parse('''
title: Two hosts
network: {hosts: [a, b], links: {a-b: {rate: 5mbit}}}
traffic: [{bulk: {from: a, to: b, duration: 1s}}]
vary: {transport: [tcp, mptcp]}
judge: [scratch_bytes]
figures: [{name: scratch, metric: scratch_bytes}]
''', "scratch.yaml")
write_study(Path("study"), two_paths(), repeat=2)
sys.argv = ["plait", "report", "study"]
try:
    main()
except SystemExit as end:
    assert not end.code, end
names = ["goodput_bps", "scratch_bytes"]
Path("view.json").write_text(json.dumps([ordered_metrics(names), metric_view("scratch_bytes", StudyLabels())]))
"""
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


def test_no_two_metrics_have_one_name() -> None:
    assert len(CATALOGUE) == len(metrics._METRICS)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_metric_without_a_unit_in_its_name_is_a_ratio_or_a_count(name: str) -> None:
    has_unit = re.search(r"_(per_s|bps|bytes|us|s)$", name) is not None
    assert not (has_unit and CATALOGUE[name].form)
    assert unit_of(name).kind == (CATALOGUE[name].form or unit_of(name).kind)


def test_tables_show_metrics_beside_a_metric_by_which_plait_compares() -> None:
    assert {metric.beside for metric in CATALOGUE.values()} <= {"", *COMPARED}
    assert all(metric.better and metric.superlative for metric in COMPARED.values())


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
    assert unit_of("path_share_of_a_later_version").kind == "number"


def test_axes_have_the_unit_that_fits_the_largest_value() -> None:
    assert scale_of("path_switches_per_s", 3) == (1.0, "1/s")
    assert scale_of("udp_loss_ratio", 0.5) == (0.01, "%")
    assert scale_of("queue_max_bytes", 64_000) == (1e3, "kB")


def package_with(entry: str, folder: Path) -> Path:
    """Return a folder from which Python imports plait with one more entry in the catalogue."""
    (folder / "plait").mkdir(parents=True)
    for child in PACKAGE.iterdir():
        if child.name not in {"metrics", "__pycache__"}:
            (folder / "plait" / child.name).symlink_to(child)
    shutil.copytree(PACKAGE / "metrics", folder / "plait" / "metrics")
    catalogue = (PACKAGE / "metrics" / "__init__.py").read_text(encoding="utf-8")
    assert catalogue.count("\n)  # fmt: skip\n") == 1
    (folder / "plait" / "metrics" / "__init__.py").write_text(
        catalogue.replace("\n)  # fmt: skip\n", entry), encoding="utf-8"
    )
    return folder


def test_a_new_metric_is_one_entry_of_the_catalogue(tmp_path: Path) -> None:
    package = package_with(ENTRY, tmp_path / "package")
    study = subprocess.run(
        [sys.executable, "-c", STUDY],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{package}{os.pathsep}{SUPPORT}", "COLUMNS": "160"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert study.returncode == 0, study.stdout + study.stderr
    summary = json.loads((tmp_path / "study" / "summary.json").read_text(encoding="utf-8"))
    for case in summary["cases"]:
        assert case["metrics"]["scratch_bytes"]["n"] == 2
        assert case["metrics"]["scratch_bytes"]["mean"] > 0
    assert "scratched" in study.stdout
    assert "scratched" in (tmp_path / "study" / "report.html").read_text(encoding="utf-8")
    (_, leading, _), shown = json.loads((tmp_path / "view.json").read_text(encoding="utf-8"))
    assert "scratch_bytes" in leading
    assert (shown["heading"], shown["unit"], shown["better"]) == ("scratched", "size", "less")


def test_a_kind_is_about_its_completion_time_only_if_it_completes() -> None:
    assert {kind for kind, job in JOBS.items() if job.HEADLINE == "completion_s"} == set(COMPLETED)
    assert CATALOGUE["completion_s"].traffic == COMPLETED
