"""Measure the table "A shared bottleneck" of docs/explanation/congestion-control.md.

    python bench/shared_bottleneck.py [SEEDS]

Prints, in Markdown, the goodput of an MPTCP connection divided by that of the TCP flow beside it: means over seeds
[default: 5] with 95 % intervals, and the share of packets that each of them lost.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from pathlib import Path

import polars as pl

import plait
from plait.analysis.statistics.student import t_quantile

BOTTLENECKS = {
    "RED": "{rate: 20mbit, delay: 10ms, queue: 200pkt, "
    "aqm: {red: {points: {25pkt: 0%, 50pkt: 10%, 100pkt: 100%}, weight_log: 0}}}",
    "random": "{delay: 10ms, loss: 1%}",
    "drop-tail": "{rate: 20mbit, delay: 10ms, queue: 100pkt}",
    "drop-tail, jitter of 1 ms": "{rate: 20mbit, delay: 10ms, queue: 100pkt, jitter: {within: 1ms}}",
}
CONTROLS = ("reno", "lia", "olia", "balia", "wvegas")
SCENARIO = """
title: A shared bottleneck
network:
  hosts: [multi, single, server]
  routers: [in, out]
  links:
    multi-in: {{delay: 1ms}}
{second}
    single-in: {{delay: 1ms}}
    in-out: {bottleneck}
    out-server: {{delay: 1ms}}
mptcp: {{scheduler: minrtt}}
traffic:
  - bulk: {{name: multi, from: multi, to: server, duration: 60s}}
  - bulk: {{name: single, from: single, to: server, duration: 60s, transport: tcp, congestion_control: reno}}
vary: {{congestion_control: [{controls}]}}
repeat: {seeds}
"""


def measured(
    bottleneck: str, subflows: int, controls: tuple[str, ...], seeds: int, folder: Path
) -> list[str]:
    """Return the ratio for each congestion control, and what both lost with it."""
    text = SCENARIO.format(
        second="    multi-in#2: {delay: 1ms}" if subflows == 2 else "",
        bottleneck=bottleneck,
        controls=", ".join(controls),
        seeds=seeds,
    )
    file = folder / "scenario.yaml"
    file.write_text(text, encoding="utf-8")
    study = plait.run(file, out=Path(tempfile.mkdtemp(dir=folder)), progress=False)
    return [of_case(study, control, case) for control, case in zip(controls, study.cases, strict=True)]


def of_case(study: plait.Study, control: str, case: str) -> str:
    """Return the ratio and the shares of lost packets in a case."""
    flows = study.table("flows", case=case).select(
        "trial",
        "flow",
        "name",
        bps=pl.col("received_bytes") / (pl.col("end_us") - pl.col("start_us")),
    )
    last = ["trial", "flow", "subflow"]
    sent = study.table("subflows", case=case).filter(side="client").sort("t_us").group_by(last).last()
    lost = (
        sent.join(flows, on=["trial", "flow"])
        .group_by("name")
        .agg(pl.col("retransmitted_bytes").sum() / pl.col("sent_bytes").sum())
    )
    shares = dict(lost.iter_rows())
    by_name = flows.pivot("name", index="trial", values="bps")
    ratios = (by_name["multi"] / by_name["single"]).to_list()
    half = t_quantile(len(ratios) - 1) * statistics.stdev(ratios) / math.sqrt(len(ratios))
    return (
        f"{control}: {statistics.fmean(ratios):.2f} \N{PLUS-MINUS SIGN} {half:.2f} "
        f"(lost {shares['multi']:.2%} and {shares['single']:.2%})"
    )


def main() -> None:
    """Measure and print one line for each kind of loss."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        for name, bottleneck in BOTTLENECKS.items():
            (single,) = measured(bottleneck, 1, ("reno",), seeds, Path(folder))
            several = measured(bottleneck, 2, CONTROLS, seeds, Path(folder))
            print(f"{name} | one subflow, {single} | {' | '.join(several)}", flush=True)


if __name__ == "__main__":
    main()
