"""Compares coupled congestion control as a BPF program with its module on networks, by long trials.

    python bench/bpf_networks.py --out DIR [--modules LIB/MODULES/VERSION] [--networks ..] [--seeds N] [--seconds S]

Three arms: the module in `virtual`, the program in `machine`, and with `--modules` the module in `machine`: a folder of
the stock kernel's modules to which somebody has added plait's (`kernel/net/ipv4/tcp_olia.ko` and so on).
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
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
  - bulk: {from: multi, to: server, duration: DURs, start_jitter: 2s}
  - bulk: {from: single, to: server, duration: DURs, start_jitter: 2s, transport: tcp, congestion_control: reno}
"""
KHALILI_A = """\
title: Khalili's scenario A
network: {generator: khalili-a, n1: 3, n2: 3, c1: 1mbit, c2: 1mbit, aqm: droptail}
traffic:
  - pairs: {from: server1, to: multi*, each: {bulk: {duration: DURs, reverse: true, start_jitter: 2s}}}
  - pairs:
      from: server2
      to: single*
      each: {bulk: {duration: DURs, reverse: true, start_jitter: 2s, transport: tcp, congestion_control: reno}}
"""
UNEQUAL = """\
title: Paths of unequal rates and delays
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 2mbit, delay: 10ms, queue: 15pkt}
    h1-h2#2: {rate: 3mbit, delay: 40ms, queue: 20pkt}
traffic:
  - bulk: {from: h1, to: h2, duration: DURs, start_jitter: 2s}
"""
DIES = """\
title: A path that vanishes for 5 s in each period of 20 s
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 2mbit, delay: 20ms, queue: 40pkt}
    h1-h2#2: {rate: 2mbit, delay: 20ms, queue: 40pkt}
events: [EVENTS]
traffic:
  - bulk: {from: h1, to: h2, duration: DURs, start_jitter: 2s}
"""
NETWORKS = {"unequal": UNEQUAL, "dies": DIES, "shared": SHARED, "khalili-a": KHALILI_A}
COMMON = "tcp: {congestion_control: CC}\nmptcp: {scheduler: default}\nsample: 200ms\n"
START_S, PERIOD_S = 20, 20
"""The comparison leaves out the first seconds; blocks and periods of the path that dies have this length."""
Values = dict[str, float]


def text_of(network: str, algorithm: str, seconds: int) -> str:
    """Return the scenario of a trial."""
    events = ", ".join(
        f"{{at: {start + 8}s, cut: h1-h2}}, {{at: {start + 13}s, up: h1-h2}}"
        for start in range(START_S, seconds, PERIOD_S)
    )
    text = NETWORKS[network] + COMMON.replace("CC", algorithm)
    return text.replace("DUR", str(seconds)).replace("EVENTS", events)


def run(folder: Path, engine: Engine, text: str, seeds: int) -> list[Path]:
    """Run the trials of one arm, unless they are there, and return their folders."""
    trials = [folder / str(seed) for seed in range(1, seeds + 1)]
    for seed, trial in enumerate(trials, start=1):
        if not (trial / "data/flows.arrow").exists():
            shutil.rmtree(trial, ignore_errors=True)  # of an interrupted run
            trial.mkdir(parents=True)
            engine.execute(Job(resolve(expand(parse(text, "network"))[0].scenario, seed), {}, trial))
            if not json.loads((trial / "status.json").read_text())["ok"]:
                sys.exit((trial / "status.json").read_text().strip())
    return trials


def table(trial: Path, name: str) -> pl.DataFrame:
    """Return a table of a trial."""
    return pl.read_ipc_stream(trial / "data" / f"{name}.arrow")


def values(trial: Path, start_s: int, end_s: int) -> Values:
    """Return share of the first subflow, goodput of an MPTCP to a TCP flow, and mean windows in a part of a trial."""
    kinds = table(trial, "flows")["transport"].to_list()
    coupled = [number for number, kind in enumerate(kinds) if kind == "mptcp"]
    rows = table(trial, "subflows").filter(pl.col("t_us").is_between(start_s * 10**6, end_s * 10**6))
    sent = rows.group_by("flow", "side").agg(pl.col("acked_bytes").max()).sort("acked_bytes")
    rows = rows.join(sent.group_by("flow").agg(pl.col("side").last()), on=["flow", "side"], how="semi")
    acked = pl.col("acked_bytes").max() - pl.col("acked_bytes").min()
    means = rows.group_by("flow", "subflow").agg(acked.alias("bytes"), pl.col("cwnd_segments").mean())
    ours = means.filter(pl.col("flow").is_in(coupled))
    first = ours.filter(pl.col("subflow") == 0)["bytes"].sum()
    found = {"share": 100 * first / ours["bytes"].sum()}
    others = means.filter(~pl.col("flow").is_in(coupled))["bytes"].sum()
    if others:
        found["to TCP"] = ours["bytes"].sum() / len(coupled) / (others / (len(kinds) - len(coupled)))
    for subflow in (0, 1):
        found[f"window {subflow}"] = ours.filter(pl.col("subflow") == subflow)["cwnd_segments"].mean()
    return found


def students_t(freedom: int) -> float:
    """Return the quantile of Student's t for an interval of 95 % (Cornish-Fisher, 1 % too small with 3 degrees)."""
    z = 1.959964
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def compare(left: list[Values], right: list[Values], key: str, *, paired: bool) -> str:
    """Return the means of two arms, and their difference with an interval of 95 % (paired, or Welch's)."""
    arms = [[value[key] for value in arm] for arm in (left, right)]
    means = [statistics.mean(arm) for arm in arms]
    if paired:
        arms = [[after - before for before, after in zip(*arms, strict=True)]]
    squares = [(statistics.variance(arm) / len(arm), len(arm) - 1) for arm in arms]
    error = sum(square for square, _ in squares)
    freedom = error**2 / max(sum(square**2 / count for square, count in squares), 1e-300)
    scale, unit = (1.0, "points") if key == "share" else (100 / means[0], "%")
    half = students_t(max(1, round(freedom))) * math.sqrt(error)
    return (
        f"{means[0]:.2f} -> {means[1]:.2f}, {scale * (means[1] - means[0]):+.2f} +- {scale * half:.2f} {unit}"
    )


def main() -> None:
    """Run each network with each algorithm, and print how the arms differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--modules", type=Path, help="modules of the stock kernel, with plait's among them")
    parser.add_argument("--algorithms", nargs="+", default=["olia"])
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--seeds", type=int, default=1, help="trials in `machine`; one is cut into blocks")
    parser.add_argument("--virtual-seeds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=100)
    arguments = parser.parse_args()
    engines = {"virtual": make_engine("virtual")}
    if arguments.modules:
        request = EngineRequest(kernel=str(stock.of_distribution("6.12").image), modules=arguments.modules)
        engines["module"] = make_engine("machine", request)
    engines["program"] = make_engine("machine", EngineRequest(kernel="debian:6.12"))
    for algorithm in arguments.algorithms:
        for network in arguments.networks:
            arms = {}
            for name, engine in engines.items():
                folder = arguments.out / f"{network}-{algorithm}-{arguments.seconds}" / name
                seeds = arguments.virtual_seeds if name == "virtual" else arguments.seeds
                trials = run(folder, engine, text_of(network, algorithm, arguments.seconds), seeds)
                parts = [(START_S, arguments.seconds)]
                if len(trials) == 1:
                    parts = [
                        (start, start + PERIOD_S) for start in range(START_S, arguments.seconds, PERIOD_S)
                    ]
                arms[name] = [values(trial, *part) for trial in trials for part in parts]
            for name in list(arms)[:-1]:
                for key in arms[name][0]:
                    line = compare(arms[name], arms["program"], key, paired=arguments.seeds == 1)
                    sys.stdout.write(f"{network} {algorithm}, module in {name} -> program, {key}: {line}\n")


if __name__ == "__main__":
    main()
