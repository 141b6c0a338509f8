"""Compute the reference model's statistics from the tables of a trial on the laboratory kernel."""

from __future__ import annotations

import polars as pl
from coupling_networks import FRAME_BITS, Group, Groups

PAYLOAD = {"mptcp": 1424 * 8, "tcp": 1448 * 8}
"""Bits of a full segment."""


def _group(rows: pl.DataFrame, payload: int) -> Group:
    """Return the means over the subflows in `rows`."""
    counters = (
        rows.sort("t_us")
        .group_by("flow", "subflow")
        .agg(
            pl.col("acked_bytes", "retransmitted_segments", "t_us").last()
            - pl.col("acked_bytes", "retransmitted_segments", "t_us").first(),
        )
    )
    seconds = counters["t_us"] / 1e6
    return Group(
        rate=float((counters["acked_bytes"] * 8 / seconds).mean()) * FRAME_BITS / payload,
        cwnd=float(rows["cwnd_segments"].mean()),
        ssthresh=float(rows["ssthresh_segments"].clip(0, 10**6).mean()),
        srtt=float(rows["rtt_us"].mean()) / 1e6,
        losses=float((counters["retransmitted_segments"] / seconds).mean()),
        timeouts=float("nan"),
    )


def sender_rows(tables: dict[str, pl.DataFrame], start: float, end: float) -> pl.DataFrame:
    """Return the samples of the sending side between two times, in seconds."""
    rows = tables["subflows"].filter(pl.col("t_us").is_between(start * 1e6, end * 1e6))
    sides = rows.group_by("side").agg(pl.col("acked_bytes").max()).sort("acked_bytes")
    return rows.filter(pl.col("side") == sides["side"][-1])


def user_groups(tables: dict[str, pl.DataFrame], start: float, end: float) -> Groups:
    """Return the groups `private`, `shared` and `tcp` of scenarios A and C."""
    coupled = [flow for flow, name in enumerate(tables["flows"]["name"]) if "multi" in name]
    rows = sender_rows(tables, start, end)
    multi = rows.filter(pl.col("flow").is_in(coupled))
    return {
        "private": _group(multi.filter(pl.col("subflow") == 0), PAYLOAD["mptcp"]),
        "shared": _group(multi.filter(pl.col("subflow") == 1), PAYLOAD["mptcp"]),
        "tcp": _group(rows.filter(~pl.col("flow").is_in(coupled)), PAYLOAD["tcp"]),
    }


def path_groups(tables: dict[str, pl.DataFrame], start: float, end: float) -> Groups:
    """Return a group per subflow of a single connection: `path0`, `path1`, .."""
    rows = sender_rows(tables, start, end)
    numbers = sorted(rows["subflow"].unique())
    return {
        f"path{place}": _group(rows.filter(pl.col("subflow") == number), PAYLOAD["mptcp"])
        for place, number in enumerate(numbers)
    }
