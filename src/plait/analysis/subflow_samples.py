"""Each subflow of a flow, sample by sample: what the formats of other tools show of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from plait.analysis.series import subflow_parts
from plait.plan.model.plan import Flow

_SENDERS = (
    "rtt_us",
    "cwnd_segments",
    "delivery_rate_bps",
    "sent_bytes",
    "retransmitted_bytes",
    "acked_bytes",
)


@dataclass(frozen=True)
class SubflowSamples:
    """One subflow: its number at the sender, its path, its addresses there, and its samples."""

    number: int
    label: str
    """The path; with ` #2` for a second subflow of the path."""
    local: str
    remote: str
    samples: pl.DataFrame
    """One row per sample of the sender: `t_us`, `goodput_bps` from the sample before, and columns of `subflows`.

    The first row has no `goodput_bps`.
    """


def subflow_samples(flow: Flow, subflows: pl.DataFrame) -> list[SubflowSamples]:
    """Return the subflows of a flow in the order in which they appeared at the sender; none if it was not sampled."""
    if flow.unsampled:
        return []
    rows = subflows.filter(pl.col("flow") == flow.carrier).sort("t_us", maintain_order=True)
    shown: list[SubflowSamples] = []
    for _, label, sent, arrived in subflow_parts(flow, rows):
        first = sent.row(0, named=True)
        ends = _endpoint(first, "local"), _endpoint(first, "remote")
        shown.append(SubflowSamples(first["subflow"], label, *ends, _samples(sent, arrived)))
    return shown


def _endpoint(row: Mapping[str, object], side: str) -> str:
    address, port = row[f"{side}_address"], row[f"{side}_port"]
    return f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"


def _samples(sent: pl.DataFrame, arrived: pl.DataFrame) -> pl.DataFrame:
    """Return the samples of the sender, with the goodput between each and the one before (bit/s)."""
    joined = sent.select("t_us", *_SENDERS).join(
        arrived.unique("t_us", keep="last", maintain_order=True), on="t_us", how="left", maintain_order="left"
    )
    rate = pl.col("count").diff() * 8e6 / pl.col("t_us").diff()
    return joined.with_columns(
        goodput_bps=pl.when(pl.col("t_us").diff() > 0).then(rate).otherwise(None)
    ).drop("count")
