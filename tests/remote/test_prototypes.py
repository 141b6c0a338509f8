"""Prototype flows over a real sshd: limits hold, a scheduler reaches nothing of its host, its errors have a line."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from prototype_samples import LINES, WRONG, scenario, scheduler
from remote_runs import agents, left, programs, start, wait_until

from real_hosts import HOSTS, SSHD, PlantedLine, RealHosts

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.users,  # the guest's tests show the same to everybody
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path(SSHD).exists() or shutil.which("ssh") is None,
        reason="needs root for network namespaces, and openssh-server; see docs/limitations.md",
    ),
]
TRANSFER = scenario("bytes: 3MB, scheduler: minrtt")


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[RealHosts]:
    tmp_path.chmod(0o755)
    shapes = [(name, (f"tbf rate {mbit}mbit burst 5k limit 60k",)) for name, mbit, _ in LINES]
    lines = [PlantedLine(name, shape, shape) for name, shape in shapes]
    with RealHosts(tmp_path, lines) as made:
        yield made


def tables(hosts: RealHosts, *names: str) -> list[pl.DataFrame]:
    (folder,) = (hosts.folder / "out" / "trials").glob("*/000")
    return [pl.read_parquet(folder / f"{name}.parquet") for name in names]


def test_a_transfer_is_measured_on_both_paths_and_leaves_nothing_behind(hosts: RealHosts) -> None:
    run = start(hosts, TRANSFER)
    output, _ = run.communicate(timeout=180)
    assert run.returncode == 0, output
    flows, subflows = tables(hosts, "flows", "subflows")
    row = flows.row(0, named=True)
    assert (row["received_bytes"], row["completed"], row["error"]) == (3_000_000, True, None)
    # No load of this machine makes the lines faster; the buckets of 5 kB are full at the start.
    wire_s = (3e6 - 2 * 5000) * 8 / sum(mbit * 1e6 for _, mbit, _ in LINES)
    assert (row["end_us"] - row["start_us"]) / 1e6 > wire_s
    sent = subflows.filter(pl.col("side") == "client").sort("t_us").group_by("subflow").last().sort("subflow")
    received = subflows.filter(pl.col("side") == "server").group_by("subflow").agg(pl.max("received_bytes"))
    assert sent["sent_bytes"].min() > 300_000  # type: ignore[operator]
    for name in ("rtt_us", "cwnd_segments", "retransmitted_bytes", "unacked_segments"):
        assert sent[name].null_count() == 0, name
    assert sent["rtt_us"].min() > 0  # type: ignore[operator]
    assert received["received_bytes"].sum() >= 3_000_000
    assert subflows.filter(pl.col("side") == "server")["out_of_order_segments"].null_count() == 0
    assert left(hosts) == []
    assert (agents(hosts), programs(hosts)) == ([], [])


def test_a_cut_connection_ends_the_programs_and_leaves_nothing_behind(hosts: RealHosts) -> None:
    run = start(hosts, TRANSFER.replace("3MB", "60MB"))
    wait_until(lambda: len(programs(hosts)) == len(HOSTS), "two programs run")
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    clients = [int(pid) for pid in children if "ssh" in Path(f"/proc/{pid}/comm").read_text()]
    os.kill(clients[0], signal.SIGKILL)
    output, _ = run.communicate(timeout=180)
    assert run.returncode == 1
    assert "the connection to" in output
    wait_until(lambda: not (agents(hosts) or programs(hosts) or left(hosts)), "the hosts clean up alone")


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ("rate: 2mbit, bytes: 1GB, time: 60s", r"bits in a second, and the limit is 2000000 bit/s"),
        ("rate: 1gbit, bytes: 500KB, time: 60s", r"want to send \d{6} bytes, and the limit is 497440"),
    ],
    ids=["rate", "bytes"],
)
def test_a_prototype_keeps_the_limits_of_the_file(hosts: RealHosts, limits: str, error: str) -> None:
    # What tries the two lines before the trial counts as well: 20 packets of 64 bytes on each.
    run = start(hosts, scenario("duration: 20s, scheduler: minrtt"), limits=limits)
    output, _ = run.communicate(timeout=180)
    assert run.returncode == 1, output
    assert re.search(error, " ".join(output.split())), output
    assert left(hosts) == []
    assert (agents(hosts), programs(hosts)) == ([], [])


def test_a_prototype_ends_with_the_time_of_the_file_and_does_not_complete(hosts: RealHosts) -> None:
    run = start(
        hosts,
        scenario("duration: 20s, scheduler: minrtt"),
        limits="rate: 1gbit, bytes: 1GB, time: 8s",
    )
    output, _ = run.communicate(timeout=180)
    assert "did not complete" in output
    flows, subflows = tables(hosts, "flows", "subflows")
    assert flows["completed"].to_list() == [False]
    last_us = subflows["t_us"].max()
    assert isinstance(last_us, int)
    assert 1_000_000 < last_us < 8_000_000, "the time before the trial counts as well"
    assert left(hosts) == []
    assert (agents(hosts), programs(hosts)) == ([], [])


def test_a_bad_scheduler_fails_alone_with_its_file_and_line(hosts: RealHosts) -> None:
    names = []
    for number, body in enumerate(WRONG):
        folder = hosts.folder / f"s{number}"
        folder.mkdir()
        (folder / "mine.py").write_text(scheduler(body), encoding="utf-8")
        names.append(f"s{number}/mine.py:Mine")
    chosen = ", ".join([*names, "minrtt"])
    text = scenario("bytes: 200KB", f"vary: {{traffic.0.prototype.scheduler: [{chosen}]}}\n")
    run = start(hosts, text, "--progress", "json")
    output, _ = run.communicate(timeout=600)
    assert run.returncode == 1, output
    ended = [json.loads(line) for line in output.splitlines() if line.startswith('{"case"')]
    assert len(ended) == len(names) + 1, output
    wrong = [
        f"{body}: {trial['error']}"
        for (body, error), trial in zip(WRONG.items(), ended, strict=False)
        if not re.search(error, trial["error"] or "")
    ]
    assert not wrong, "\n".join(wrong)
    assert ended[-1]["error"] is None
    assert left(hosts) == []
    assert (agents(hosts), programs(hosts)) == ([], [])
