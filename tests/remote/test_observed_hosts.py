"""`plait observe --host ..` over real sshd in a guest: both ends make one observation, and nothing is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

from guest_runs import NEEDS_SSHD, in_guest, netem, tbf
from plait.cli import app
from plait.dataset.trial import read_trial, trial_folder
from plait.errors import RequestError
from plait.results.explain import explain_study

if TYPE_CHECKING:
    from plait.dataset.trial import Trial

pytestmark = [pytest.mark.guest, NEEDS_SSHD]
PROGRAM = Path(__file__).parents[1] / "observe" / "download_between_hosts.py"
RATES = {"10.1.1.1": 10e6, "10.1.2.1": 4e6}
"""The rate of each line in bit/s, by the address of h1."""
HOSTS = """\
hosts: {h1: {ssh: h1, addresses: {h1-h2: 10.1.1.1}}, h2: {ssh: h2, addresses: {h1-h2: 10.1.1.2}}}
limits: {rate: 100mbit, bytes: 1GB, time: 10min}
"""
LINES = [
    ["h1-h2", [netem(10), tbf(10)], [netem(10), tbf(10)]],
    ["h1-h2#2", [netem(30), tbf(4)], [netem(30), tbf(4)]],
]
BEFORE = [
    ["h1", "ip", "mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", "4"],
    ["h2", "ip", "mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", "4"],
    ["h1", "ip", "mptcp", "endpoint", "add", "10.1.2.1", "dev", "l2", "subflow"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the observations `both` and `alone` of one download, and what they print."""
    folder = tmp_path_factory.mktemp("observed")
    words = ["--hosts", "{hosts}", "--ssh-config", "{ssh_config}", "--port", "5001"]
    words += ["--for", "6s", "--every", "500ms"]
    both = ["--host", "h1", "--host", "h2", "--out", "{folder}/both"]
    alone = ["--host", "h2", "--out", "{folder}/alone"]
    request = {
        "lines": LINES,
        "limits": "rate: 100mbit, bytes: 1GB, time: 10min",
        "before": BEFORE,
        "program": str(PROGRAM),
        "command": [*words, *both, "and", *words, *alone],
    }
    (folder / "output").write_text(in_guest(folder, request), encoding="utf-8")
    return folder


def trial(folder: Path, name: str) -> Trial:
    return read_trial(trial_folder(folder / name, "observed", 0))


def test_both_ends_make_one_observation_and_leave_nothing(folder: Path) -> None:
    output = (folder / "output").read_text(encoding="utf-8")
    assert output.count("1 MPTCP connection, of which 0 fell back") == 2, output
    seen = trial(folder, "both")
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
    receiver = seen.tables["connections"].filter(side="client").sort("t_us")
    assert row["received_bytes"] == receiver["received_bytes"][-1] - receiver["received_bytes"][0]
    waiting = receiver["receive_memory_bytes"].max()
    assert abs(row["received_bytes"] - carried.filter(side="client")["bytes"].sum()) <= waiting, (
        "the connection counts in order: it differs from its subflows by what waits for a gap to close"
    )
    facts = json.loads((seen.path / "provenance.json").read_text(encoding="utf-8"))["host"]
    assert {"h1.clock_error_us", "h2.clock_error_us"} <= facts.keys()
    (explained,) = explain_study(folder / "both").cases[0].flows
    assert "too-short" not in explained.named


def test_one_host_is_observed_alone(folder: Path) -> None:
    seen = trial(folder, "alone")
    (flow,) = seen.tables["program_flows"].iter_rows(named=True)
    assert (flow["client"], flow["server"]) == ("10.1.1.1", "h2")
    assert seen.tables["subflows"]["side"].unique().to_list() == ["server"]


def test_a_host_that_the_file_lacks_is_named(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text(HOSTS, encoding="utf-8")
    words = ["observe", "--hosts", str(hosts), "--host", "h3", "--for", "6s", "--out", str(tmp_path / "out")]
    error = CliRunner().invoke(app, words, standalone_mode=False).exception
    assert isinstance(error, RequestError)
    assert "--host h3: the hosts file has no such host; it has h1, h2" in str(error)
