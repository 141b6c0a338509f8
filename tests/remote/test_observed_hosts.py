"""`plait observe --host ..` over real sshd in a guest: both ends make one observation, and nothing is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from guest_runs import NEEDS_SSHD, in_guest, netem, tbf
from plait.dataset.trial import read_trial, trial_folder
from plait.results.explain import explain_study

if TYPE_CHECKING:
    from plait.dataset.trial import Trial

pytestmark = [pytest.mark.guest, NEEDS_SSHD]
PROGRAM = Path(__file__).parents[1] / "observe" / "download_between_hosts.py"
RATES = {"10.1.1.1": 20e6, "10.1.2.1": 8e6}
"""The rate of each line in bit/s, by the address of h1."""
LINES = [
    ["h1-h2", [netem(10), tbf(20)], [netem(10), tbf(20)]],
    ["h1-h2#2", [netem(30), tbf(8)], [netem(30), tbf(8)]],
]
BEFORE = [
    ["h1", "ip", "mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", "4"],
    ["h2", "ip", "mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", "4"],
    ["h1", "ip", "mptcp", "endpoint", "add", "10.1.2.1", "dev", "l2", "subflow"],
]


def observed(folder: Path, *options: str, code: int = 0, **request: Any) -> str:
    words = ["--hosts", "{hosts}", "--ssh-config", "{ssh_config}"]
    words += ["--for", "6s", "--every", "500ms", "--out", "{folder}/out", *options]
    limits = "rate: 100mbit, bytes: 1GB, time: 10min"
    wanted = {"lines": LINES, "limits": limits, "before": BEFORE, "program": str(PROGRAM), "command": words}
    return in_guest(folder, {**wanted, **request}, code=code)


def trial(folder: Path) -> Trial:
    return read_trial(trial_folder(folder / "out", "observed", 0))


def test_both_ends_make_one_observation_and_leave_nothing(tmp_path: Path) -> None:
    output = observed(tmp_path, "--host", "h1", "--host", "h2", "--port", "5001")
    assert "1 MPTCP connection, of which 0 fell back" in output
    seen = trial(tmp_path)
    (flow,) = seen.tables["program_flows"].iter_rows(named=True)
    assert (flow["client"], flow["server"], flow["sender"]) == ("h1", "h2", "server")
    assert [path.name for path in seen.plan.peers[0].paths] == ["l1", "l2"]
    carried = (
        seen.tables["subflows"]
        .with_columns(
            near=pl.when(side="client").then("local_address").otherwise("remote_address"),
            bytes=pl.when(side="client").then("received_bytes").otherwise("acked_bytes"),
        )
        .group_by("side", "near")
        .agg(pl.col("bytes").max() - pl.col("bytes").min())
    )
    assert carried.height == 4
    for address, rate in RATES.items():
        got, acked = carried.filter(near=address)["bytes"]
        assert abs(got - acked) < rate / 8, carried
        assert got > rate / 8
    (row,) = seen.tables["flows"].iter_rows(named=True)
    assert 24 < row["received_bytes"] * 8 / (row["end_us"] - row["start_us"]) < 28
    facts = json.loads((seen.path / "provenance.json").read_text(encoding="utf-8"))["host"]
    assert {"h1.clock_error_us", "h2.clock_error_us"} <= facts.keys()
    (explained,) = explain_study(tmp_path / "out").cases[0].flows
    assert "too-short" not in explained.named


def test_one_host_is_observed_alone(tmp_path: Path) -> None:
    observed(tmp_path, "--host", "h2", "--port", "5001")
    seen = trial(tmp_path)
    (flow,) = seen.tables["program_flows"].iter_rows(named=True)
    assert (flow["client"], flow["server"]) == ("10.1.1.1", "h2")
    assert seen.tables["subflows"]["side"].unique().to_list() == ["server"]


def test_a_host_that_the_file_lacks_is_named(tmp_path: Path) -> None:
    output = observed(tmp_path, "--host", "h3", code=2)
    assert "--host h3: the hosts file has no such host; it has h1, h2" in output
