"""Compares how OLIA's windows grow with its formula, on a bottleneck that two subflows share with a flow of TCP.

    python bench/coupled_growth.py [--engine machine --kernel debian:6.12] [--trials 8] [--jitter 1ms]

The engine `virtual` has the module, the engine `machine` the BPF program. Between two samples, a window in congestion
avoidance grows by the segments that were acknowledged, times (w / rtt^2) / (sum w / rtt)^2
(draft-khalili-mptcp-congestion-control-05, without the part that moves windows), or times 1 / w as Reno does once the
other subflow has been silent. Each trial has a line: segments grown and what both formulas give, while the other
subflow carried data and while it was silent, and the goodput of MPTCP to that of TCP.
"""

from __future__ import annotations

import argparse
import tempfile
from random import Random
from typing import Any

import polars as pl
from polars import selectors as cs

import plait

SECONDS, FIRST_S, SAMPLE_MS, SILENT_S = 60, 10, 20, 1.0
"""SILENT_S: three timeouts of some 330 ms."""


def scenario(seed: int, engine: str, jitter: str) -> plait.Scenario:
    """Return the network with starts that `seed` draws within 0.2 s, and jitter on each link of a sender."""
    random, near = Random(seed), {"delay": "2ms", "jitter": {"within": jitter, "reorder": False}}
    traffic: list[dict[str, Any]] = [
        {"bulk": {"from": name, "to": "server", "duration": f"{SECONDS}s", "name": name, "start": start}}
        for name in ("mptcp", "tcp")
        for start in [f"{100 + random.randrange(200)}ms"]
    ]
    traffic[1]["bulk"] |= {"transport": "tcp", "congestion_control": "reno"}
    return plait.scenario(
        {
            "title": "growth",
            "seed": seed,
            "engine": engine,
            "sample": f"{SAMPLE_MS}ms",
            "network": {
                "hosts": ["mptcp", "tcp", "server"],
                "routers": ["a", "b"],
                "links": {
                    **dict.fromkeys(("mptcp-a", "mptcp-a#2", "tcp-a"), near if jitter else {"delay": "1ms"}),
                    "a-b": {"rate": "4mbit", "delay": "10ms", "queue": "40pkt"},
                    "b-server": {"delay": "1ms"},
                },
            },
            "tcp": {"congestion_control": "olia"},
            "traffic": traffic,
        }
    )


def steps(subflows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each two samples of a subflow: segments grown, by which formula, and seconds of silence."""
    moved = pl.col("acked_bytes") != pl.col("acked_bytes").shift().over("subflow")
    samples = subflows.with_columns(
        pl.when(moved).then("t_us").forward_fill().over("subflow").alias("heard_us"),
        (pl.col("t_us") // (SAMPLE_MS * 1000)).alias("step"),
        pl.col("ssthresh_segments").fill_null(2**31),
    )
    other = samples.select(
        "step",
        (1 - pl.col("subflow")).alias("subflow"),
        "heard_us",
        other="cwnd_segments",
        other_rtt="rtt_us",
        other_t="t_us",
    )
    both = samples.drop("heard_us").join(other, on=["step", "subflow"]).sort("subflow", "t_us")
    window, following = pl.col("cwnd_segments"), pl.all().shift(-1).over("subflow").name.prefix("next_")
    rate = window / pl.col("rtt_us")
    return (
        both.with_columns(following)
        .filter(
            (pl.col("congestion_state") == "Open") & (pl.col("next_congestion_state") == "Open"),
            pl.col("ssthresh_segments") == pl.col("next_ssthresh_segments"),
            window >= pl.col("ssthresh_segments"),
            pl.col("next_step") == pl.col("step") + 1,
        )
        .with_columns(acked=(pl.col("next_acked_bytes") - pl.col("acked_bytes")) / pl.col("mss_bytes"))
        .select(
            grown=pl.col("next_cwnd_segments") - window,
            coupled=pl.col("acked")
            * rate
            / pl.col("rtt_us")
            / (rate + pl.col("other") / pl.col("other_rtt")) ** 2,
            reno=pl.col("acked") / window,
            silent=((pl.col("next_other_t") - pl.col("next_heard_us")) / 1e6 >= SILENT_S).fill_null(True),
        )
    )


def main() -> None:
    """Run the trials, print a line for each, and the sums."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", default="virtual", choices=["virtual", "machine"])
    parser.add_argument("--kernel", help="of the engine machine, as for plait run")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--jitter", default="", help="as 1ms; none unless given")
    given = parser.parse_args()
    parts = []
    for seed in range(500, 500 + given.trials):
        with tempfile.TemporaryDirectory() as folder:
            request = scenario(seed, given.engine, given.jitter)
            study = plait.run(request, out=f"{folder}/out", kernel=given.kernel, progress=False)
            flows, subflows = study.table("flows"), study.table("subflows")
        of = dict(flows.select("name", "flow").rows())
        sent = subflows.filter(pl.col("side") == "client")
        part = (
            steps(sent.filter(pl.col("flow") == of["mptcp"]))
            .group_by("silent")
            .sum()
            .with_columns(cs.float().round(1))
        )
        late = sent.filter(pl.col("t_us").is_between(FIRST_S * 1_000_000, SECONDS * 1_000_000))
        acked = late.group_by("flow", "subflow").agg(
            pl.col("acked_bytes").max() - pl.col("acked_bytes").min()
        )
        goodput = dict(acked.group_by("flow").agg(pl.col("acked_bytes").sum()).rows())
        print(
            seed, part.sort("silent").rows(), f"{goodput[of['mptcp']] / goodput[of['tcp']]:.3f}", flush=True
        )
        parts.append(part)
    whole = pl.concat(parts).group_by("silent").sum()
    print("silent, grown, coupled, reno:", *whole.sort("silent").rows())


if __name__ == "__main__":
    main()
