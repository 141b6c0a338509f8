"""The comparison of engines: what counts as a difference, and where two trials part."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl
import pytest

import fake_engine
from fake_engine import FakeEngine
from fake_plans import FakeFlow, fake_plan
from fake_tables import fake_tables
from plait.analysis.compare.divergence import divergence
from plait.analysis.compare.engines import cross_check
from plait.analysis.rows import CaseRows, TrialRow
from plait.cli import crosscheck
from plait.engine.engine import EngineIdentity
from plait.errors import RequestError
from plait.report.terminal.cross_check import explain_first, show_cross_check
from plait.results.read import read_study
from plait.scenario import parse
from plait.study.perform import Options, perform
from plait.study.progress import silent

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.engine import Job

TEXT = """\
title: Two hosts
network:
  hosts: [a, b]
  links:
    a-b: {rate: 10mbit, delay: 5ms}
traffic:
  - bulk: {from: a, to: b, duration: 1s}
vary: {engine: [virtual, machine]}
"""


def case(engine: str, *goodputs: float, share: float = 0.5) -> CaseRows:
    rows = tuple(
        TrialRow(number, number, "", {"goodput_bps": value, "h1.path_share": share, "dropped_packets": 3.0})
        for number, value in enumerate(goodputs)
    )
    return CaseRows(f"engine={engine}", {"engine": engine}, rows)


def test_a_difference_is_relative_and_that_of_a_share_in_points() -> None:
    check = cross_check(
        [case("virtual", 100, 102, share=0.6), case("machine", 99, 101.5, share=0.57)],
        ["virtual", "machine"],
        0.02,
    )
    goodput, share = check.differences
    assert goodput.difference is not None
    assert goodput.difference.value == pytest.approx(100.25 / 101 - 1)
    assert goodput.difference.ci95 is not None
    assert goodput.verdict == "within"
    assert share.difference is not None
    assert share.difference.value == pytest.approx(-0.03)
    assert share.verdict == "beyond"
    assert check.beyond == [share]


def test_what_the_other_engine_did_not_measure_is_no_agreement() -> None:
    check = cross_check([case("virtual", 100), case("machine")], ["virtual", "machine"], 0.02)
    assert [row.verdict for row in check.differences] == ["not measured", "not measured"]
    assert check.differences[0].measured is None


def test_a_bound_holds_exactly() -> None:
    cases = [case("virtual", 100), case("machine", 98)]
    assert cross_check(cases, ["virtual", "machine"], 0.0201).beyond == []
    assert len(cross_check(cases, ["virtual", "machine"], 0.0199).beyond) == 1


def test_an_interval_beyond_the_bound_is_said_beside_the_agreement() -> None:
    check = cross_check([case("virtual", 100, 100), case("machine", 99, 101)], ["virtual", "machine"], 0.02)
    assert check.beyond == []
    assert [row.metric for row in check.uncertain] == ["goodput_bps"]
    shown = io.StringIO()
    show_cross_check(check, "", shown)
    assert "All 2 mean differences are within 2 %." in shown.getvalue()
    assert "The 95 % interval of one reaches beyond 2 %" in shown.getvalue()


def test_a_difference_that_rounds_to_zero_has_no_minus() -> None:
    cases = [case("virtual", 100, 100, share=0.5), case("machine", 99.99, 99.98, share=0.49999)]
    shown = io.StringIO()
    show_cross_check(cross_check(cases, ["virtual", "machine"], 0.02), "", shown)
    assert "+0.0 %" in shown.getvalue()
    assert "+0.00 pp" in shown.getvalue()
    assert not any(f"{minus}0.0" in shown.getvalue() for minus in "-\N{MINUS SIGN}")


@pytest.mark.parametrize("engines", [["virtual", "machine"], ["virtual", "machine", "host"]])
def test_no_word_of_the_table_is_cut_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, engines: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = "network.links.home-server#2.delay=120ms, transport=mptcp, mptcp.scheduler=redundant"
    cases = [
        CaseRows(f"{long} {engine}", {"x": long, "engine": engine}, case(engine, 12.34e6, value).rows)
        for engine, value in zip(engines, (12.34e6, 11.11e6, 12.5e6), strict=False)
    ]
    shown = io.StringIO()
    show_cross_check(cross_check(cases, engines, 0.02), "", shown)
    text = shown.getvalue()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "x=network.links.home-server#2.delay=120ms" in text
    for word in ("goodput", "beyond", "within", "share of", "difference"):
        assert word in text
    assert "goodput_bps" not in text


def test_trials_part_at_the_first_sample_from_which_they_differ_for_good() -> None:
    plan = fake_plan(FakeFlow(transport="tcp", duration_us=1_000_000))
    tables = fake_tables(plan)
    assert divergence(plan, tables, tables, 0.02) is None
    connections = tables["connections"]
    times = sorted(connections["t_us"].unique().to_list())
    slower = connections.with_columns(
        pl.when(pl.col("t_us") >= times[len(times) // 2])
        .then(pl.col("acked_bytes") * 9 // 10)
        .otherwise(pl.col("acked_bytes"))
        .alias("acked_bytes")
    )
    part = divergence(plan, tables, {**tables, "connections": slower}, 0.02)
    assert part is not None
    assert part.t_us == times[len(times) // 2]
    assert part.delivered[1] < part.delivered[0]
    late = {
        "connections": slower,
        "subflows": tables["subflows"],
    }  # of an engine on which computing takes time
    later = {name: table.with_columns(pl.col("t_us") + 37) for name, table in late.items()}
    assert divergence(plan, tables, {**tables, **later}, 0.02) == part


class SlowEngine(FakeEngine):
    """A fake engine whose flows deliver nine tenths of the bytes."""

    def identity(self) -> EngineIdentity:
        return EngineIdentity("slow", "0" * 64, "0.0", "f" * 64)

    def execute(self, job: Job) -> None:

        original = fake_engine.fake_tables
        try:
            fake_engine.fake_tables = lambda plan: _slowed(original(plan))
            super().execute(job)
        finally:
            fake_engine.fake_tables = original


def _slowed(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    names = {"flows": ("received_bytes",), "connections": ("acked_bytes",)}
    return {
        name: frame.with_columns([(pl.col(column) * 9 // 10) for column in names.get(name, ())])
        for name, frame in tables.items()
    }


def test_a_slower_engine_is_shown_and_the_first_difference_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    engines = {"virtual": FakeEngine(), "machine": SlowEngine()}
    folder, _ = perform(
        parse(TEXT, "t.yaml"), "t", engines.__getitem__, Options(repeat=2, jobs=1),
        folder=tmp_path / "out", watch=silent, notify=lambda _: None,
    )  # fmt: skip
    study = read_study(folder)
    check = cross_check(study.cases, ["virtual", "machine"], 0.02)
    assert [row.metric for row in check.beyond] == ["goodput_bps"]
    shown = io.StringIO()
    show_cross_check(check, explain_first(folder, study.cases, check), shown)
    text = " ".join(shown.getvalue().split())
    assert "differ by more than 2 %" in text
    assert "First difference: goodput is" in text
    assert "delivered on virtual" in text
    show_cross_check(cross_check(study.cases, ["virtual", "machine"], 0.2), "", shown)
    assert "are within 20 %" in shown.getvalue()


@pytest.mark.parametrize("engines", ["virtual", "virtual,virtual", "virtual,fast", ""])
def test_two_engines_that_exist_are_needed(engines: str) -> None:
    with pytest.raises(RequestError, match="--engines"):
        crosscheck.command("two-paths", engines=engines)
