"""A new cause and a new metric are one file besides the docs: in a copy of the package, plait finds and shows them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import plait

PACKAGE = Path(plait.__file__).parent
CAUSE = '''
"""Whatever made a link full is Monday's fault."""

from plait.explain.cause import Cause
from plait.explain.causes.kind import Kind


def _blamed(facts, path, path_time):
    for key in [key for key in path_time.time if key[0] == Cause.AT_CAPACITY]:
        path_time.move(key, 0.5, "monday", (path.name,))


KINDS = (
    Kind(
        "monday",
        title="Monday",
        clause="it was Monday",
        next_step="wait until Tuesday",
        evidence=lambda facts, places: ["The calendar says so."],
        rule=_blamed,
        precedence=9,
    ),
    Kind(
        "tuesday",
        title="Tuesday",
        clause="it was Tuesday",
        evidence=lambda facts, places: [f"It was late at {places[0]}."],
        late_rule=lambda message: (message.facts.receiver,),
    ),
)
'''
METRIC = """
    Metric(
        "flow_count", "Number of flows", EVERY, "all flows in the foreground", form="count",
        compute=lambda trial: float(len(trial.flows)), heading="flow count", beside="goodput_bps",
    ),
"""
ASKED = """
import io, json
from fake_plans import fake_plan
from fake_tables import fake_tables, make_tables
from scenario_samples import plan_of
from plait.analysis.compare.summary import summarise
from plait.analysis.metrics.trial import trial_metrics
from plait.analysis.rows import CaseRows, TrialRow
from plait.explain import explain_trial
from plait.explain.model import StudyExplanation, TrialExplanation
from plait.report.table import value_columns
from plait.report.terminal.explanation import show_explanation

REQUESTS = '''
title: Requests
network: {hosts: [a, b], links: {a-b: {rate: 100mbit, delay: 1ms}}}
traffic:
  - request: {from: a, to: b, response: 1KB, duration: 4s}
transport: tcp
'''
plan = fake_plan()
tables = fake_tables(plan)
(flow,) = explain_trial(plan, tables)
asking = plan_of(REQUESTS)
tables_of_requests = fake_tables(plan_of(REQUESTS.replace("request:", "bulk:").replace("response: 1KB, ", "")))
late = [{"flow": 0, "index": n, "sent_us": n * 100_000, "received_us": n * 100_000 + 90_000, "bytes": 1000}
        for n in range(40)]
made = make_tables({"messages": late})
(answered,) = explain_trial(asking, tables_of_requests | {name: made[name] for name in ("messages", "links")})
case = TrialExplanation(case="only", trial=0, seed=1, flows=(flow,))
shown = io.StringIO()
show_explanation(StudyExplanation(scenario="", cases=(case,)), {}, shown)
rows = CaseRows("only", {}, (TrialRow(0, 1, "", trial_metrics(plan, tables)),))
summary = summarise([rows], scenario="", digest="", baseline=None)
columns = {column.name: column.cells[0] for column in value_columns(summary)}
shares = {share.cause: share.evidence for share in flow.shares}
print(json.dumps({"shares": shares, "shown": shown.getvalue(), "columns": columns,
    "late": {share.cause: share.evidence for share in answered.shares}}))
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return what a copy of the package says with both additions."""
    root = tmp_path_factory.mktemp("copy")
    copy = shutil.copytree(PACKAGE, root / "plait", ignore=shutil.ignore_patterns("__pycache__", "_bin"))
    (copy / "explain" / "causes" / "monday.py").write_text(dedent(CAUSE), encoding="utf-8")
    catalogue = copy / "metrics" / "__init__.py"
    text = catalogue.read_text(encoding="utf-8")
    catalogue.write_text(text.replace("_METRICS = (\n", f"_METRICS = ({METRIC}"), encoding="utf-8")
    support = Path(__file__).parents[2] / "support"
    done = subprocess.run(
        [sys.executable, "-P", "-c", ASKED],
        env=os.environ | {"PYTHONPATH": f"{root}:{support}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_cause_in_a_file_of_its_own_takes_time_and_is_shown(answer: dict[str, object]) -> None:
    assert dict(answer["shares"])["monday"] == ["The calendar says so."]
    assert str(answer["shown"]).count(" monday") == 1


def test_a_cause_of_late_messages_is_the_same_file(answer: dict[str, object]) -> None:
    assert dict(answer["late"])["tuesday"] == ["It was late at a."]


def test_a_metric_that_is_one_entry_is_computed_and_has_a_column(answer: dict[str, object]) -> None:
    assert dict(answer["columns"])["flow_count"] == "1"
