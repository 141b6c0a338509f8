"""Lines that carry less at once than alone share a bottleneck, and the sentence has the figures of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from plait.hosts.model import Limits
from plait.measure.estimates.packets import PacketTimes
from plait.measure.model import DirectionEstimate, LineEstimate, MeasuredValue, QueueEstimate
from plait.measure.probing import LineEnd
from plait.measure.together import Together, Way, at_once, not_together_text, together_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.measure.probing import PacketBurst

NOTHING = MeasuredValue(None, None, None)
ENDS = {
    name: (LineEnd("laptop", address, None, 5001), LineEnd("vps", "198.51.100.2", "198.51.100.2", 5001))
    for name, address in (("laptop-vps", "192.168.1.2"), ("laptop-vps#2", "10.0.0.7"))
}
LABELS = {"laptop-vps": "eth0", "laptop-vps#2": "wwan0"}
BYTES = dict.fromkeys(ENDS, 1400)


def way(source: str, target: str, bps: float | None) -> DirectionEstimate:
    rate = MeasuredValue(bps, bps, bps)
    return DirectionEstimate(
        source, target, rate, None, 10.0, QueueEstimate("unknown"), NOTHING, None, NOTHING, 0.0, 100
    )


def line(name: str, up: float | None, down: float) -> LineEstimate:
    return LineEstimate(name, way("laptop", "vps", up), way("vps", "laptop", down), NOTHING)


LINES = [line("laptop-vps", 10e6, 40e6), line("laptop-vps#2", 20e6, 20e6)]


class SharedUplink:
    """A prober whose lines carry what each is measured to carry, and 15 Mbit/s together up."""

    def __init__(self) -> None:
        self.bursts: Sequence[PacketBurst] = ()

    def send(self, bursts: Sequence[PacketBurst]) -> list[PacketTimes]:
        self.bursts = bursts
        alone = {("vps", "192.168.1.2"): 40e6, ("vps", "10.0.0.7"): 20e6}
        return [
            self._packets(burst, alone.get((burst.source.host, burst.target.address), 7.5e6))
            for burst in bursts
        ]

    @staticmethod
    def _packets(burst: PacketBurst, bps: float) -> PacketTimes:
        sent = burst.start_us + np.arange(burst.count) * (burst.interval_ns / 1000)
        spacing_us = burst.frame_bytes * 8e6 / bps
        arrived = sent[0] + 10_000 + np.arange(burst.count) * spacing_us
        return PacketTimes(np.asarray(sent, float), np.asarray(arrived, float), burst.frame_bytes)


def limits(rate: str, size: str) -> Limits:
    return Limits.model_validate({"rate": rate, "bytes": size, "time": "10min"})


def test_only_the_direction_with_a_common_bottleneck_is_shared() -> None:
    prober = SharedUplink()
    down, up = at_once(LINES, ENDS, limits("300mbit", "2GB"), prober, BYTES)
    assert (down.way, down.is_shared) == ("down", False)
    assert (up.way, up.is_shared) == ("up", True)
    assert down.part == pytest.approx(1, rel=0.01)
    assert up.part == pytest.approx(0.5, rel=0.01)
    assert prober.bursts[2].start_us > prober.bursts[0].end_us


def test_lines_get_no_more_than_the_rate_of_the_host_and_are_judged_by_that() -> None:
    prober = SharedUplink()
    down, _ = at_once(LINES, ENDS, limits("30mbit", "2GB"), prober, BYTES)
    sent = sum(burst.frame_bytes * 8e9 / burst.interval_ns for burst in prober.bursts[:2])
    assert sent == pytest.approx(30e6, rel=0.01)
    assert sum(down.alone_bps.values()) == pytest.approx(30e6)


def test_a_direction_whose_rates_are_not_known_or_whose_bytes_do_not_suffice_is_left_out() -> None:
    prober = SharedUplink()
    unknown = [line("laptop-vps", None, 40e6), LINES[1]]
    assert [shared.way for shared in at_once(unknown, ENDS, limits("300mbit", "2GB"), prober, BYTES)] == [
        "down"
    ]
    assert at_once(LINES, ENDS, limits("300mbit", "1MB"), prober, BYTES) == []


def test_the_sentence_has_the_figures_of_all_lines_and_of_each() -> None:
    shared = Together(
        "up", {"laptop-vps": 10e6, "laptop-vps#2": 20e6}, {"laptop-vps": 5e6, "laptop-vps#2": 10e6}
    )
    assert list(together_text([shared], LABELS)) == [
        "up: at once the lines carry 15 of 30 Mbit/s (eth0 5 of 10, wwan0 10 of 20), so they share a bottleneck"
    ]


@pytest.mark.parametrize(
    ("remark", "measured", "sentence"),
    [
        ("", {"down", "up"}, None),
        (
            "",
            {"down"},
            (
                "up: whether eth0, wwan0 share a bottleneck is not known, because the rate of a line is not known, or "
                "limits.bytes (--bytes) do not suffice"
            ),
        ),
        (
            "TCP measured this line",
            set(),
            "down and up: whether eth0, wwan0 share a bottleneck is not known, because UDP does not pass wwan0",
        ),
    ],
)
def test_what_no_packets_filled_at_once_is_said_with_its_reason(
    remark: str, measured: set[Way], sentence: str | None
) -> None:
    lines = [LINES[0], replace(LINES[1], remark=remark)]
    assert list(not_together_text(lines, LABELS, measured)) == ([] if sentence is None else [sentence])
    assert not list(not_together_text(lines[1:], LABELS, set()))
