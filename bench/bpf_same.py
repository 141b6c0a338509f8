"""Compares the coupled congestion controls as BPF programs on a stock kernel with the modules they compile from.

    python bench/bpf_same.py --out DIR [--modules LIB/MODULES/VERSION] [--algorithms olia ..] [--networks dies ..]

Each network runs with each algorithm on the engines `virtual` (modules) and `machine` (BPF). With `--modules`, a folder
of the stock kernel's modules to which somebody has added the built modules (`tcp_olia.ko` and so on beside the kernel's
own), it runs a third time, with the modules on that same stock kernel. Reno shows what the engines alone differ by.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import polars as pl

from plait.engine.engine import Engine, Job
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.kernel import stock
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

SHARED = """\
title: Two subflows and a TCP flow on one bottleneck
network:
  hosts: [multi, single, server]
  routers: [in, out]
  links:
    multi-in: {delay: 1ms}
    multi-in#2: {delay: 1ms}
    single-in: {delay: 1ms}
    in-out: {rate: 4mbit, delay: 20ms, queue: 40pkt}
    out-server: {delay: 1ms}
traffic:
  - bulk: {from: multi, to: server, duration: 20s}
  - bulk: {from: single, to: server, duration: 20s, transport: tcp, congestion_control: reno}
"""
KHALILI_A = """\
title: Khalili's scenario A
network: {generator: khalili-a, n1: 3, n2: 3, c1: 1mbit, c2: 1mbit, aqm: droptail}
traffic:
  - pairs: {from: server1, to: multi*, each: {bulk: {duration: 20s, reverse: true, start_jitter: 2s}}}
  - pairs:
      from: server2
      to: single*
      each: {bulk: {duration: 20s, reverse: true, start_jitter: 2s, transport: tcp, congestion_control: reno}}
"""
UNEQUAL = """\
title: Paths of unequal rates and delays
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 2mbit, delay: 10ms, queue: 15pkt}
    h1-h2#2: {rate: 3mbit, delay: 40ms, queue: 20pkt}
traffic:
  - bulk: {from: h1, to: h2, duration: 20s}
"""
DIES = """\
title: A path that vanishes after 8 s, and is back after 13 s
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 2mbit, delay: 20ms, queue: 40pkt}
    h1-h2#2: {rate: 2mbit, delay: 20ms, queue: 40pkt}
events: [{at: 8s, cut: h1-h2}, {at: 13s, up: h1-h2}]
traffic:
  - bulk: {from: h1, to: h2, duration: 20s}
"""
NETWORKS = {"unequal": UNEQUAL, "dies": DIES, "shared": SHARED, "khalili-a": KHALILI_A}
COMMON = "tcp: {congestion_control: CC}\nsample: 100ms\n"
START_S, END_S, WINDOW_S = 5, 20, 5
"""The comparison leaves out slow start; each window is a mean over this many seconds."""


def run(folder: Path, engine: Engine, network: str, algorithm: str, seeds: int) -> list[Path]:
    """Run the trials of one arm, unless they are there, and return their folders."""
    text = NETWORKS[network] + COMMON.replace("CC", algorithm)
    trials = [folder / str(seed) for seed in range(1, seeds + 1)]
    for seed, trial in enumerate(trials, start=1):
        if not (trial / "data/flows.arrow").exists():
            shutil.rmtree(trial, ignore_errors=True)  # of an interrupted run
            trial.mkdir(parents=True)
            engine.execute(Job(resolve(expand(parse(text, network))[0].scenario, seed), {}, trial))
            if not json.loads((trial / "status.json").read_text())["ok"]:
                sys.exit((trial / "status.json").read_text().strip())
    return trials


def table(trial: Path, name: str) -> pl.DataFrame:
    """Return a table of a trial."""
    return pl.read_ipc_stream(trial / "data" / f"{name}.arrow")


def windows(trials: list[Path]) -> pl.DataFrame:
    """Return the mean cwnd of each subflow of coupled flows in each window of time, over the trials (segments)."""
    tables = []
    for trial in trials:
        kinds = table(trial, "flows")["transport"].to_list()
        rows = table(trial, "subflows").filter(
            pl.col("t_us").is_between(START_S * 10**6, END_S * 10**6),
            pl.col("flow").is_in([number for number, kind in enumerate(kinds) if kind == "mptcp"]),
        )
        sent = rows.group_by("flow", "side").agg(pl.col("acked_bytes").max()).sort("acked_bytes")
        sides = sent.group_by("flow").agg(pl.col("side").last())
        rows = rows.join(sides, on=["flow", "side"], how="semi")
        tables.append(rows.select(pl.col("t_us") // (WINDOW_S * 10**6), "subflow", "cwnd_segments"))
    return (
        pl.concat(tables)
        .group_by("t_us", "subflow")
        .agg(pl.col("cwnd_segments").mean())
        .sort("t_us", "subflow")
    )


def shares(trials: list[Path]) -> tuple[float, float]:
    """Return which part of all coupled bytes took the first subflow, and goodput of an MPTCP over a TCP flow."""
    first, whole, rates = 0.0, 0.0, {"mptcp": [], "tcp": []}
    for trial in trials:
        flows = table(trial, "flows")
        for row in flows.iter_rows(named=True):
            rates[row["transport"]].append(row["received_bytes"])
        last = table(trial, "subflows").group_by("flow", "side", "subflow").agg(pl.col("acked_bytes").max())
        for row in last.iter_rows(named=True):
            if flows["transport"][row["flow"]] == "mptcp":
                whole += row["acked_bytes"]
                first += row["acked_bytes"] if row["subflow"] == 0 else 0
    ratio = (
        sum(rates["mptcp"]) / len(rates["mptcp"]) / (sum(rates["tcp"]) / len(rates["tcp"]))
        if rates["tcp"]
        else 0
    )
    return 100 * first / whole, ratio


def compare(left: list[Path], right: list[Path]) -> str:
    """Return a line with the differences of two arms."""
    both = windows(left).join(windows(right), on=["t_us", "subflow"], suffix="_right")
    means = (
        both.group_by("subflow").agg(pl.col("cwnd_segments", "cwnd_segments_right").mean()).sort("subflow")
    )
    whole = means.select(100 * (pl.col("cwnd_segments_right") / pl.col("cwnd_segments") - 1)).to_series()
    apart = both.select((pl.col("cwnd_segments_right") / pl.col("cwnd_segments") - 1).abs() * 100).to_series()
    (share, ratio), (share_right, ratio_right) = shares(left), shares(right)
    each = "/".join(f"{value:+.1f}" for value in whole)
    return (
        f"cwnd {each} %; by {WINDOW_S} s: median {apart.median():.1f}, maximum {apart.max():.1f} %; first path "
        f"{share:.1f} -> {share_right:.1f} %; to TCP {ratio:.2f} -> {ratio_right:.2f}"
    )


def main() -> None:
    """Run each network with each algorithm, and print how the arms differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--modules", type=Path, help="modules of the stock kernel, with plait's among them")
    parser.add_argument("--algorithms", nargs="+", default=["reno", "olia", "lia", "balia", "wvegas"])
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--seeds", type=int, default=1, help="trials of each arm")
    arguments = parser.parse_args()
    kernel = stock.of_distribution("6.12")
    engines = {
        "module in virtual": make_engine("virtual"),
        "BPF in machine": make_engine("machine", EngineRequest(kernel="debian:6.12")),
    }
    if arguments.modules:
        request = EngineRequest(kernel=str(kernel.image), modules=arguments.modules)
        engines["module in machine"] = make_engine("machine", request)
    for algorithm in arguments.algorithms:
        for network in arguments.networks:
            folders = {
                name: run(
                    arguments.out / f"{network}-{algorithm}" / name.replace(" ", "-"),
                    engine, network, algorithm, arguments.seeds,
                )
                for name, engine in engines.items()
                if algorithm != "reno" or name != "module in machine"
            }  # fmt: skip
            for name in list(folders)[:1] + list(folders)[2:]:
                line = compare(folders[name], folders["BPF in machine"])
                sys.stdout.write(f"{network} {algorithm}: {name} -> BPF in machine: {line}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
