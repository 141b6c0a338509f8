"""The row of each measured line on the terminal: rates, round-trip time, waits and losses as people read them."""

from __future__ import annotations

from dataclasses import replace

from plait.measure.model import (
    BucketEstimate,
    DirectionEstimate,
    LineEstimate,
    LossModel,
    MeasuredValue,
    QueueEstimate,
)
from plait.measure.summary import summary


def value(number: float) -> MeasuredValue:
    return MeasuredValue(number, number, number)


def way(source: str, target: str, bps: float, wait_us: float) -> DirectionEstimate:
    queue = QueueEstimate("drop-tail", value(1e5), wait_us, wait_us)
    return DirectionEstimate(
        source, target, value(bps), None, 10.0, queue, value(0.0), None, value(0.0), 0.0, 1000
    )


UP, DOWN = way("laptop", "vps", 9.6e6, 310_000), way("vps", "laptop", 48e6, 95_400)
LINE = LineEstimate("laptop-vps", UP, DOWN, value(14_200))


def test_a_line_of_this_machine_goes_down_and_up() -> None:
    text = summary([LINE], {"laptop-vps": "eth0"}, "laptop")
    assert text == "eth0   48 down / 9.6 up Mbit/s   14 ms   +95 / +310 ms loaded   loss 0.0 / 0.0 %"


def test_a_row_without_room_in_80_columns_has_a_second_line() -> None:
    text = summary([LINE], {"laptop-vps": "wlp0s20f3"}, "laptop")
    assert text == (
        "wlp0s20f3   48 down / 9.6 up Mbit/s   14 ms\n            +95 / +310 ms loaded   loss 0.0 / 0.0 %"
    )


def test_a_line_between_hosts_names_them() -> None:
    assert summary([LINE]).startswith("laptop-vps   9.6 to vps / 48 to laptop Mbit/s   14 ms")


def test_rows_align_and_say_what_is_not_known() -> None:
    lossy = replace(DOWN, loss_ratio=value(0.0031), loss_model=LossModel("gilbert", 0.01, 0.5, 1.0))
    bucket = replace(DOWN, bucket=BucketEstimate(value(1e6), value(4e6)))
    unknown = replace(UP, rate_bps=MeasuredValue(None, None, None), queue=QueueEstimate("unknown"))
    slow = replace(UP, rate_bps=MeasuredValue(None, 30e6, None))
    lines = [replace(LINE, backward=lossy, forward=unknown), replace(LINE, backward=bucket, forward=slow)]
    shown = summary(lines, None, "laptop").splitlines()
    first, loaded, second, _ = shown
    assert max(map(len, shown)) <= 80
    assert "48 down / unknown up Mbit/s" in first
    assert "+95 / +? ms loaded" in loaded
    assert loaded.endswith("loss 0.31 / 0.0 % in bursts")
    assert "48 then 4.0 down / at least 30 up Mbit/s" in second
    assert first.index("14 ms") == second.index("14 ms")
