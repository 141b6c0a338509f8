"""The published experiments that ship as scenarios give the published figures."""

from __future__ import annotations

import pytest

TYPE = pytest.mark.guest


def goodput_mbps(ran) -> float:
    row = ran.tables["flows"].row(0, named=True)
    assert row["error"] is None
    assert row["completed"]
    return row["received_bytes"] * 8 / (row["end_us"] - row["start_us"])


@TYPE
@pytest.mark.parametrize(
    ("scenario", "case", "published"),
    [
        ("two-paths", 0, 4.79),
        ("two-paths", 1, 9.15),
        ("file-transfer", 0, 9.4),
        ("file-transfer", 1, 18.4),
    ],
)
def test_within_3_percent_of_the_published_goodput(run_trial, scenario, case, published) -> None:
    measured = goodput_mbps(run_trial(scenario, case=case))
    assert abs(measured / published - 1) < 0.03, f"{scenario}: {measured:.3f} Mbit/s, published {published}"


@TYPE
def test_two_paths_are_both_used_and_their_bytes_add_up(run_trial) -> None:
    ran = run_trial("two-paths", case=1)
    last = ran.series("subflows", side="server").group_by("subflow").last().sort("subflow")
    received = last["received_bytes"].to_list()
    assert len(received) == 2
    assert 0.45 < received[1] / sum(received) < 0.55
    connection = ran.series("connections", side="server")["received_bytes"][-1]
    assert connection <= sum(received) <= connection * 1.01
