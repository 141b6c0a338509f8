"""The scenario that resembles an observation: its rates, delays and losses, and what it says nobody could see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.dataset.model import FLOWS, PROGRAM_FLOWS, SUBFLOWS
from plait.errors import MachineError
from plait.observe.seen import with_paths
from plait.observe.twin import twin_text
from plait.observe.watching import Selection, observing_plan
from scenario_samples import plan_of

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan

FAR = "203.0.113.7"
LINES = {"192.0.2.1": (18_000, 1_428_000), "198.51.100.1": (60_000, 714_000)}
"""Base RTT in us, and the payload of each second in bytes, by local address."""
FRAMES = 1514 / 1424
"""Bytes on the wire for each byte of MPTCP payload: a full segment has 1448 bytes less a DSS option of 24."""


def observation(
    column: str, lines: dict[str, tuple[int, int]], lost: int = 0
) -> tuple[Plan, dict[str, pl.DataFrame]]:
    """Return an MPTCP connection that home opened, with 11 samples, and `lost` retransmissions a second and subflow."""
    rows = [
        {
            "t_us": 1_000_000 * (second + 1),
            "flow": 0,
            "side": "client",
            "subflow": number,
            "local_address": local,
            "remote_address": FAR,
            "min_rtt_us": rtt,
            "rtt_us": 2 * rtt,
            "mss_bytes": 1448,
            "received_bytes": 0,
            "acked_bytes": 0,
            "sent_bytes": each * second if column == "acked_bytes" else 0,
            "retransmitted_segments": lost * second,
            column: each * second,
        }
        for second in range(11)
        for number, (local, (rtt, each)) in enumerate(lines.items())
    ]
    flow = {"flow": 0, "transport": "mptcp", "client": "home", "server": FAR}
    tables = {
        name: pl.DataFrame(
            [{column: row.get(column) for column in schema} for row in content], schema=schema, strict=False
        )
        for name, schema, content in (
            ("subflows", SUBFLOWS, rows),
            ("flows", FLOWS, [flow]),
            ("program_flows", PROGRAM_FLOWS, [flow]),
        )
    }
    names = {"192.0.2.1": "cable", "198.51.100.1": "lte"}
    return with_paths(observing_plan("home", Selection(), 11, 1), tables, names), tables


def value(text: str, link: str, way: str, name: str) -> float:
    """Return a number of a direction of a link as the text has it."""
    block = text.partition(f"    {link}:\n")[2].partition(f"      {way}:\n")[2]
    return float(block.partition(f"{name}: ")[2].partition("  #")[0].rstrip("kbitus%"))


def test_a_download_gives_rates_backward_and_half_of_the_base_rtt_each_way() -> None:
    text = twin_text(*observation("received_bytes", LINES))
    for link, (rtt, each) in zip(("here-there", "here-there#2"), LINES.values(), strict=True):
        assert value(text, link, "backward", "rate") == pytest.approx(each * 8e-3 * FRAMES, abs=1)
        assert value(text, link, "forward", "delay") == value(text, link, "backward", "delay") == rtt / 2
    assert "median of 10 samples" in text
    assert "from: there, to: here, duration: 10s, reverse: true" in text
    assert text.count("# loss: not seen; the sender alone knows it, and it is the other end") == 2
    assert "loss: " not in text.replace("# loss: ", "")
    (flow,) = plan_of(text).flows
    assert {path.base_rtt_us for path in flow.paths} == {18_000, 60_000}


def test_an_upload_gives_losses_forward_with_their_interval() -> None:
    text = twin_text(*observation("acked_bytes", LINES, lost=2))
    for link, (_, each) in zip(("here-there", "here-there#2"), LINES.values(), strict=True):
        assert value(text, link, "forward", "loss") == pytest.approx(2 / (each / 1424) * 100, rel=0.01)
    assert "from: here, to: there, duration: 10s}" in text
    assert "20 retransmissions of 10028 segments" in text


def test_an_upload_without_retransmissions_bounds_the_loss() -> None:
    text = twin_text(*observation("acked_bytes", LINES))
    assert "# loss: no retransmission of 10028 segments, so below 0.0528 %" in text


def test_an_idle_line_has_no_rate_and_is_left_out() -> None:
    """A link without a rate would be the fastest one."""
    text = twin_text(*observation("received_bytes", LINES | {"198.51.100.1": (60_000, 100)}))
    assert "# Left out: lte, which carried too little to show its rate." in text
    assert "here-there#2" not in text


def test_an_observation_without_data_says_so() -> None:
    with pytest.raises(MachineError, match="no connection carried data in this time"):
        twin_text(*observation("received_bytes", {"192.0.2.1": (18_000, 0)}))
