"""`plait observe --pcap` of a trial's captures agrees with the kernel's counters of the trial, sample by sample."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which

import polars as pl
import pytest

from plait.engine.engine import Job
from plait.observe.captures.engine import CaptureReader
from plait.observe.captures.rows import tables_of
from plait.observe.study import read_captures
from plait.observe.watching import Selection, observing_plan
from plait.observe.words import sentences
from plait.results.export import export_flow
from plait.results.read import read_study
from result_folders import run_unreported

pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(which("tshark") is None, reason="this machine has no tshark"),
]

SCENARIO = """\
title: Captured transfers, and a path that fails
network:
  hosts: [client, server]
  links:
    client-server: {rate: 20mbit, delay: 10ms, queue: 60pkt}
    client-server#2: {rate: 8mbit, delay: 30ms, loss: 0.5%, queue: 60pkt}
transport: mptcp
traffic:
  - transfer: {from: client, to: server, bytes: 6MB}
  - transfer: {from: server, to: client, bytes: 3MB}
events:
  - {at: 1s, cut: client-server#2}
sample: 100ms
monitors: {capture: {on: [client, server], bytes: 128}}
"""
ENDS = ("local_address", "local_port", "remote_address", "remote_port")
EXACT = (
    "sent_bytes",
    "retransmitted_bytes",
    "retransmitted_segments",
    "acked_bytes",
    "received_bytes",
    "out_of_order_segments",
    "unacked_segments",
)
SAMPLE_US = 100_000


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a trial in which one path fails, with captures of both ends."""
    folder = tmp_path_factory.mktemp("captured")
    (folder / "captured.yaml").write_text(SCENARIO, encoding="utf-8")
    study = run_unreported(folder / "captured.yaml", folder / "out", fresh=True)
    assert not study.failed
    return next((folder / "out" / "trials").glob("*/000"))


def captures(trial: Path, host: str) -> list[Path]:
    return sorted((trial / "pcap").glob(f"{host}.*.pcapng"))


@pytest.fixture(scope="module")
def derived(trial: Path) -> dict[str, pl.DataFrame]:
    """Return the tables that captures of both ends give, with the times of the trial."""
    reader = CaptureReader([*captures(trial, "server"), *captures(trial, "client")], Selection())
    assert [len(files) for files in (reader.here, reader.there)] == [2, 2]
    reader.zero_us = 0
    job = Job(observing_plan(reader.node, Selection(), 60, SAMPLE_US / 1e6), {}, trial)
    samples = [reader._follow(files, job) for files in (reader.here, reader.there)]
    tables, joined = tables_of(samples, ["server", "client"], 0)
    assert len(joined.pairs) == 2
    assert joined.clock_offset_us is None  # one machine has one clock
    return tables


def test_every_sample_of_every_subflow_has_the_kernels_bytes(
    trial: Path, derived: dict[str, pl.DataFrame]
) -> None:
    kernel = pl.read_parquet(trial / "subflows.parquet").filter(
        pl.col("t_us") % SAMPLE_US == 0, pl.col("state") == "ESTABLISHED"
    )
    both = kernel.join(derived["subflows"], on=[*ENDS, "side", "t_us"])
    assert both.height > 100
    carried = both.filter(pl.col("sent_bytes") + pl.col("received_bytes") > 0)
    assert len(carried.select(ENDS).unique()) == 8
    for name in EXACT:
        differing = both.filter(pl.col(name) != pl.col(f"{name}_right"))
        assert differing.is_empty(), (name, differing.select("t_us", *ENDS, name, f"{name}_right"))


def test_rtts_are_those_of_the_kernel(trial: Path, derived: dict[str, pl.DataFrame]) -> None:
    kernel = pl.read_parquet(trial / "subflows.parquet").filter(pl.col("sent_bytes") > 100_000)
    both = kernel.join(derived["subflows"], on=[*ENDS, "side", "t_us"])
    medians = both.group_by(ENDS).agg(pl.col("rtt_us", "rtt_us_right").median())
    assert medians.height >= 4
    assert ((medians["rtt_us"] / medians["rtt_us_right"] - 1).abs() < 0.05).all(), medians


def test_reinjected_bytes_are_what_the_kernels_subflows_sent_beyond_the_data(
    trial: Path, derived: dict[str, pl.DataFrame]
) -> None:
    """The kernel's own counter is lower: it lacks what MPTCP sends again after a subflow has become stale."""
    subflows = pl.read_parquet(trial / "subflows.parquet").group_by("flow", "side", "subflow").last()
    sent = subflows.group_by("flow", "side").agg(
        (pl.col("sent_bytes") - pl.col("retransmitted_bytes")).sum().alias("on_subflows")
    )
    kernel = (
        pl.read_parquet(trial / "connections.parquet")
        .group_by("flow", "side")
        .last()
        .join(sent, on=["flow", "side"])
    )
    beyond = sorted(kernel["on_subflows"] - kernel["sent_bytes"])
    seen = derived["connections"].group_by("flow", "side").agg(pl.col("retransmitted_bytes").max())
    assert sorted(seen["retransmitted_bytes"]) == beyond
    assert beyond[-1] > kernel["retransmitted_bytes"].max() > 0


def test_a_study_of_captures_has_the_goodput_and_the_paths_of_the_trial(trial: Path, tmp_path: Path) -> None:
    files = [*captures(trial, "client"), *captures(trial, "server")]
    read_captures(tmp_path / "seen", files, Selection(), interval_s=0.1, command="plait observe")
    (seen_row,) = read_study(tmp_path / "seen").cases[0].rows
    flows = pl.read_parquet(trial / "flows.parquet")
    (path,) = (tmp_path / "seen" / "trials").glob("*/000")
    got = pl.read_parquet(path / "flows.parquet")
    assert sorted(got["received_bytes"]) == sorted(flows["received_bytes"])
    assert sorted(got["transport"]) == ["mptcp", "mptcp"]
    names = set(pl.read_parquet(path / "flows.parquet")["name"])
    exported = [export_flow(tmp_path / "seen", flow=name)["end"]["sum_sent"]["bytes"] for name in names]
    assert len(set(exported)) == len(names) == 2
    (trial_row,) = read_study(trial.parents[2]).cases[0].rows
    assert seen_row.metrics["goodput_bps"] == pytest.approx(trial_row.metrics["goodput_bps"], rel=0.05)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (("-s", "60"), "packets were cut within their TCP header"),
        (("1-9",), "The captures begin after the handshake of 2 connections"),
        (None, "the file ends in the middle of a packet; plait used what is before"),
    ],
    ids=["cut-packets", "no-handshake", "ends-early"],
)
def test_a_capture_that_lacks_something_says_what_follows(
    trial: Path, tmp_path: Path, damage: tuple[str, ...] | None, sentence: str
) -> None:
    files = []
    for whole in captures(trial, "client"):
        files.append(tmp_path / whole.name)
        if damage is None:
            files[-1].write_bytes(whole.read_bytes()[:-10])
        else:
            options, packets = ([*damage], []) if damage[0] == "-s" else ([], [*damage])
            subprocess.run(["editcap", *options, whole, files[-1], *packets], check=True, timeout=300)
    read_captures(tmp_path / "seen", files, Selection(), interval_s=0.1, command="plait observe")
    assert sentence in "\n".join(sentences(tmp_path / "seen"))
