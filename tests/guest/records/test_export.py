"""A flow exported in iperf3's JSON format has the figures of the tables; packetdrill plays an exported connection."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from plait.analysis.iperf3 import exportable, iperf3_document
from plait.cli import app
from plait.errors import RequestError
from plait.results.export import export_flow

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import RunTrial

pytestmark = pytest.mark.guest


@pytest.mark.parametrize("reverse", [False, True])
def test_figures_of_an_exported_flow_are_those_of_the_trial(run_trial: RunTrial, reverse: bool) -> None:
    overrides = ("traffic.0.bulk.duration=3s", f"traffic.0.bulk.reverse={str(reverse).lower()}")
    ran = run_trial("two-paths", case=1, overrides=overrides)
    [flow] = exportable(ran.plan)
    document = iperf3_document(flow, ran.tables, "0")
    row = ran.tables["flows"].row(0, named=True)
    end = document["end"]
    assert end["sum_sent"]["bytes"] == row["sent_bytes"]
    assert end["sum_received"]["bytes"] == row["received_bytes"]
    assert end["sum_received"]["bits_per_second"] == pytest.approx(row["received_bytes"] * 8 / 3, rel=1e-9)
    assert document["start"]["test_start"]["reverse"] == int(reverse)
    subflows = end["streams"][0]["subflows"]
    assert [exported["id"] for exported in subflows] == [0, 1]
    assert {exported["path"] for exported in subflows} == {"h1-s1-h2", "h1-s2-h2"}
    assert [round(exported["sum"]["end"]) for exported in document["intervals"]] == [1, 2, 3]
    # The connection counts what it has given to a subflow, the subflow what has left.
    for exported in document["intervals"][1:]:
        parts = [part["bytes"] for part in exported["streams"][0]["subflows"]]
        assert len(parts) == 2
        assert min(parts) > 0.3 * exported["sum"]["bytes"]
        assert sum(parts) == pytest.approx(exported["sum"]["bytes"], rel=0.2)
    moved = sum(exported["sum"]["bytes"] for exported in document["intervals"])
    assert row["received_bytes"] <= moved <= row["sent_bytes"]


def test_plait_reports_a_flow_that_it_cannot_export(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no result folder"):
        export_flow(tmp_path)
    for case in ("a", "b"):
        (tmp_path / "trials" / case).mkdir(parents=True)
    with pytest.raises(
        RequestError,
        match=r"there are 2 \(--format csv has all cases\); choose with --case NAME, a part of it, or its number: a; b",
    ):
        export_flow(tmp_path)
    with pytest.raises(RequestError, match="no such trial"):
        export_flow(tmp_path, case="a", trial=3)


@pytest.mark.skipif(
    shutil.which(os.environ.get("PLAIT_PACKETDRILL", "packetdrill")) is None,
    reason="packetdrill is not installed, and Debian has no package of it; see docs/limitations.md",
)
def test_packetdrill_plays_the_connection_of_a_trial_from_either_side(tmp_path: Path) -> None:
    options = ["--set", "vary.transport=[mptcp]", "--set", "traffic.0.bulk.duration=1s", "--repeat", "1"]
    for host in ("h1", "h2"):
        out, script = str(tmp_path / host), str(tmp_path / f"{host}_v4.pkt")
        for words in (
            ["run", "two-paths", "--out", out, "--set", f"monitors.capture=[{host}]", *options],
            ["export", out, "--format", "packetdrill", "--out", script],
        ):
            assert CliRunner().invoke(app, words, standalone_mode=False).return_value in (0, None)
    result = CliRunner().invoke(
        app, ["selftest", "packetdrill", str(tmp_path), "--tap"], standalone_mode=False
    )
    assert result.return_value == 0, result.output
    assert result.output.count("\nok ") == 4, "over IPv4 and mapped addresses"
