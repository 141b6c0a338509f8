"""`plait observe` beside an MPTCP download in a guest, at both ends and without root."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import plait
from plait.results.explain import explain_study
from plait.results.read import read_study

pytestmark = pytest.mark.guest

PROGRAM = Path(__file__).with_name("observed_in_guest.py")
FAST, SLOW = ("10.7.1.1", "10.7.1.2"), ("10.7.2.1", "10.7.1.2")
SHARE = 20 / 28


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the observations, which one guest makes."""
    folder = tmp_path_factory.mktemp("observed")
    plait = [sys.executable, "-c", "from plait.cli import main; main()"]
    words = [*plait, "exec", "--rw", str(folder), "--env", "PYTHONDONTWRITEBYTECODE=1", "--"]
    done = subprocess.run(
        [*words, sys.executable, str(PROGRAM), str(folder)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    logs = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.log")))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    return folder


def table(folder: Path, name: str, table_name: str) -> pl.DataFrame:
    return pl.read_parquet(folder / name / "out" / "trials" / "observed" / "000" / f"{table_name}.parquet")


def carried(subflows: pl.DataFrame, column: str) -> dict[int, int]:
    """Return what each subflow carried between its first and its last sample."""
    rows = subflows.group_by("subflow").agg(pl.col(column).max() - pl.col(column).min())
    return dict(rows.iter_rows())


def test_both_ends_see_the_same_bytes(observed: Path) -> None:
    """The ends sample up to an interval apart, in which a line carries at most its rate."""
    got = carried(table(observed, "near", "subflows"), "received_bytes")
    acked = carried(table(observed, "far", "subflows"), "acked_bytes")
    assert got.keys() == acked.keys() == {0, 1}
    for subflow, rate in ((0, 20e6), (1, 8e6)):
        assert abs(got[subflow] - acked[subflow]) < rate / 8


@pytest.mark.parametrize(
    ("name", "column"), [("near", "received_bytes"), ("far", "acked_bytes"), ("nobody", "received_bytes")]
)
def test_the_shares_of_paths_are_those_of_the_lines(observed: Path, name: str, column: str) -> None:
    """Also without root, where the kernel does not say to which connection a subflow belongs."""
    flows = table(observed, name, "flows")
    assert flows["transport"].to_list() == ["mptcp"]
    by_subflow = carried(table(observed, name, "subflows"), column)
    assert by_subflow[0] / sum(by_subflow.values()) == pytest.approx(SHARE, abs=0.05)


@pytest.mark.parametrize(
    ("name", "column"), [("near", "received_bytes"), ("far", "acked_bytes"), ("nobody", "received_bytes")]
)
def test_the_goodput_is_that_of_the_observed_time(observed: Path, name: str, column: str) -> None:
    """Not of what was carried before.

    A connection counts in order: it differs from its subflows by what waits for a gap to close.
    """
    (row,) = table(observed, name, "flows").iter_rows(named=True)
    counted = table(observed, name, "connections").sort("t_us")[column]
    assert row["received_bytes"] == counted[-1] - counted[0]
    waiting = table(observed, "near", "connections")["receive_memory_bytes"].max()
    by_subflow = carried(table(observed, name, "subflows"), column)
    assert abs(row["received_bytes"] - sum(by_subflow.values())) <= waiting
    goodput = row["received_bytes"] * 8 / (row["end_us"] - row["start_us"])
    study = read_study(observed / name / "out")
    (trial,) = study.cases[0].rows
    assert trial.metrics["goodput_bps"] == pytest.approx(goodput * 1e6, rel=0.01)


@pytest.mark.parametrize("name", ["far"])
def test_a_connection_that_was_open_before_is_not_called_too_short(observed: Path, name: str) -> None:
    """Its counters have counted for longer than the observation: only their growth belongs to it."""
    explained = explain_study(observed / name / "out")
    (flow,) = explained.cases[0].flows
    assert "too-short" not in flow.named
    assert flow.kernel is not None
    assert flow.kernel.busy_us <= 1.01 * flow.kernel.lifetime_us
    report = (observed / name / "out" / "report.html").read_text(encoding="utf-8")
    assert "the same command produces other data each time" in report
    assert 'id="network"' not in report, "it sees no links"


def test_a_twin_has_the_rates_and_the_base_rtts_of_the_lines(observed: Path) -> None:
    """Data goes from `far`, which observes. Both lines are full, so their rates show."""
    scenario = plait.load(observed / "twin.yaml")
    links = scenario.network.links
    for name, rate, rtt_ms in (("here-there", 20e6, 20), ("here-there#2", 8e6, 60)):
        forward = links[name].forward
        assert forward.rate == pytest.approx(rate, rel=0.05)
        assert 2 * forward.delay.us / 1e3 == pytest.approx(rtt_ms, rel=0.05)


def test_a_selection_without_connections_says_so(observed: Path) -> None:
    codes = json.loads((observed / "codes.json").read_text(encoding="utf-8"))
    assert codes == {"near": 0, "far": 0, "nobody": 0, "other": 3, "off": 3}
    logs = [(observed / f"{name}.log").read_text(encoding="utf-8") for name in ("other", "off")]
    assert all("none was seen that matches" in log for log in logs)
    assert ["MPTCP is off on" in log for log in logs] == [False, True]
