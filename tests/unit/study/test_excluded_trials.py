"""A trial that the machine disturbed is kept and shown, and no figure counts it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import plait
from fake_engine import FakeEngine
from plait.dataset.provenance import read_provenance
from plait.report import build
from plait.results.read import read_study

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.engine import Job

SCENARIO = """
title: Two hosts
network: {hosts: [a, b], links: {a-b: {rate: 5mbit, delay: 5ms, loss: 1%}}}
traffic: [{bulk: {from: a, to: b, duration: 1s}}]
repeat: 3
"""
REASON = "a timer fired 30 ms late (bound: 20 ms)"


class DisturbedEngine(FakeEngine):
    """Excludes its second trial."""

    repeatable = False

    def execute(self, job: Job) -> None:
        """Exclude the second trial."""
        super().execute(job)
        if self.calls == 2:
            job.exclude(REASON)


def test_a_disturbed_trial_is_shown_and_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(SCENARIO)
    plait.run(path, out=tmp_path / "out", engine=DisturbedEngine(), jobs=1, progress=False)
    study = read_study(tmp_path / "out")
    (case,) = study.cases
    assert [row.index for row in case.rows] == [0, 2]
    assert [(exclusion.trial, exclusion.reason) for exclusion in case.excluded] == [(1, REASON)]
    kept = read_provenance(tmp_path / "out" / "trials" / case.name / "001")
    assert (kept.status, kept.excluded) == ("ok", REASON)
    caution = next(caution for caution in study.cautions if caution.code == "TRIALS_DISTURBED")
    assert "1 of 3 trials" in caution.message
    assert REASON in caution.message

    build(tmp_path / "out")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())["cases"][0]
    assert (summary["trials"], summary["failed"]) == (3, 0)
    assert summary["excluded"] == [{"trial": 1, "reason": REASON}]
    assert summary["metrics"]["goodput_bps"]["n"] == 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The machine disturbed 1 of 3 trials" in page
    assert "TRIALS_DISTURBED" in page
