"""The kernel's own self-test of simultaneous flows finishes within its own bound, in its cases with equal rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from conftest import RunTrial

pytestmark = pytest.mark.guest

CASES = 8
RATES = 2 * 10_000_000
BOUND_US = 1000 * (16 * 2**20 * 8 * 10 * 1000 // (RATES * 9)) + 450_000
"""Of simult_flows.sh: nine tenths of both rates, and 450 ms."""


@pytest.mark.parametrize("case", range(CASES))
def test_simultaneous_flows_finish_within_the_kernels_own_bound(run_trial: RunTrial, case: int) -> None:
    assert BOUND_US == 7_906_000
    ran = run_trial("simult-flows", case=case, repeat=case)
    flows = ran.tables["flows"]
    assert [flow.connection for flow in ran.plan.flows] == [None, 0], (
        "one connection, as in the kernel's test"
    )
    assert ran.tables["subflows"].filter(pl.col("acked_bytes") > 0)["subflow"].n_unique() == 2
    assert flows["completed"].to_list() == [True, True]
    sizes = sorted(flows["received_bytes"].to_list())
    assert sizes == [80 * 1024, 16 * 2**20]
    took = flows["end_us"].max() - flows["start_us"].min()
    assert took <= BOUND_US


def test_seeds_are_trials_of_their_own(run_trial: RunTrial) -> None:
    """Each seed has other delays, so that fifty are fifty; equal times would say that one was run fifty times."""
    ends = {
        run_trial("simult-flows", case=6, repeat=seed).tables["flows"]["end_us"].max() for seed in range(3)
    }
    assert len(ends) == 3


START = """
title: One connection, 16 MiB one way and 80 KiB the other
network:
  hosts: [client, server]
  links:
    client-server: {rate: 10mbit, delay: 1ms}
    client-server#2: {rate: 10mbit, delay: 25ms}
traffic:
  - transfer: {from: client, to: server, start_jitter: 0s, bytes: 4MiB, back: 80KiB, first: 100B, gap: 200ms}
"""


def test_a_side_with_little_to_send_stays_for_the_second_subflow(run_trial: RunTrial) -> None:
    """A connection of which one side has ended its stream takes no further subflow; the start waits for it."""
    waited = run_trial(START)
    at_once = run_trial(START.replace(", first: 100B, gap: 200ms", ""))
    used = [
        ran.tables["subflows"].filter((pl.col("side") == "client") & (pl.col("acked_bytes") > 10_000))
        for ran in (waited, at_once)
    ]
    assert [rows["subflow"].n_unique() for rows in used] == [2, 1]
    flows = waited.tables["flows"].sort("flow")
    assert flows["received_bytes"].to_list() == [4 * 2**20, 80 * 1024]
    assert flows["sent_bytes"].to_list() == [4 * 2**20, 80 * 1024]
    # 100 bytes after a round trip or two, and nothing more until 200 ms after they were written
    early = waited.series("connections", flow=0, side="server").filter(pl.col("t_us") <= 200_000)
    assert set(early["received_bytes"].drop_nulls()) <= {0, 100}
    assert 100 in early["received_bytes"].to_list()
