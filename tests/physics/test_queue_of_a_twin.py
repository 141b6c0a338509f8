"""Packets wait in the full queue of a measured line as long as in that of its twin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from probes import DEVICES

from plait.measure.model import (
    NOT_MEASURED,
    DirectionEstimate,
    LineEstimate,
    MeasuredValue,
    QueueEstimate,
)
from plait.measure.written import scenario_text

if TYPE_CHECKING:
    from conftest import RunTrial

pytestmark = pytest.mark.guest

RATE, LIMIT, FRAME, RTT_US = 3_000_000, 15_000, 1514, 20_000.0
FITTING = LIMIT // FRAME
"""The frames that a shaper with this limit holds, as `tc` counts: the one that leaves next is among them."""
OVERLOAD = "udp: {name: flood, from: a, to: b, packet: 1472B, every: 3ms, duration: 2s}"


def known(value: float) -> MeasuredValue:
    return MeasuredValue(value, value, value)


def test_a_full_queue_of_the_twin_lets_packets_wait_as_long_as_that_of_the_line(run_trial: RunTrial) -> None:
    """The twin held one frame more, that on the line, so RTTs over a queue of nine were 9 % longer."""
    queue = QueueEstimate("drop-tail", known(LIMIT))
    ways = (
        DirectionEstimate(
            source, target, known(RATE), None, 9.0, queue, NOT_MEASURED, None, known(0.0), 0.0, 0
        )
        for source, target in (("a", "b"), ("b", "a"))
    )
    text = scenario_text([LineEstimate("a-b", *ways, known(RTT_US))])
    ran = run_trial(text[: text.index("traffic:")] + f"transport: tcp\ntraffic:\n  - {OVERLOAD}\n")
    delays_us = (pl.col("received_us") - pl.col("sent_us")).alias("delay_us")
    longest_us = ran.tables["messages"].select(delays_us).max().item() - RTT_US / 2
    waited = longest_us / (FRAME * 8e6 / RATE)
    assert FITTING - (1 if DEVICES else 2) < waited <= FITTING + 0.01  # a chain holds as `tc` counts
