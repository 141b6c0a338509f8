"""Quantities with units mean what they say, refuse what they must, and print without loss."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.units import Duration, Queue, Rate, Ratio, Size


@pytest.mark.parametrize(
    ("kind", "text", "base"),
    [
        (Rate, "5mbit", 5_000_000),
        (Rate, "5 mbit", 5_000_000),
        (Rate, "5Mbit", 5_000_000),
        (Rate, "+1.5gbit", 1_500_000_000),
        (Rate, "0.008mbit", 8_000),
        (Rate, "1234567bit", 1_234_567),
        (Duration, "20ms", 20_000_000),
        (Duration, "500us", 500_000),
        (Duration, "10s", 10_000_000_000),
        (Duration, ".5s", 500_000_000),
        (Duration, "2min", 120_000_000_000),
        (Duration, "0s", 0),
        (Duration, "1ns", 1),
        (Size, "64KB", 64_000),
        (Size, "64kB", 64_000),
        (Size, "64KiB", 65_536),
        (Size, "1.5MiB", 1_572_864),
        (Size, "45MB", 45_000_000),
        (Size, "1B", 1),
    ],
)
def test_a_quantity_means_what_its_unit_says(kind: type, text: str, base: int) -> None:
    assert kind.parse(text) == base


def test_a_ratio_is_a_percentage() -> None:
    assert Ratio.parse("1%") == 0.01
    assert Ratio.parse("0.1 %") == 0.001
    assert Ratio.parse("100%") == 1.0
    assert str(Ratio.parse("0.1%")) == "0.1%"


def test_a_queue_has_packets_bytes_or_products() -> None:
    assert (Queue.parse("100pkt").amount, Queue.parse("100pkt").unit) == (100, "pkt")
    assert (Queue.parse("64KiB").amount, Queue.parse("64KiB").unit) == (65_536, "B")
    assert (Queue.parse("1.5bdp").amount, Queue.parse("1.5bdp").unit) == (Fraction(3, 2), "bdp")
    assert [str(Queue.parse(text)) for text in ("100pkt", "64KiB", "0.5 BDP")] == [
        "100pkt",
        "64KiB",
        "0.5bdp",
    ]


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Rate, 5, "5 has no unit; write for example 5mbit"),
        (Rate, "5", "'5' has no unit"),
        (Rate, 5.0, "has no unit"),
        (Rate, "-5mbit", "is negative"),
        (Rate, "5mbps", "it could mean bits or bytes: write mbit"),
        (Rate, "5 MB/s", "write mbit"),
        (Rate, "5mb", "write mbit"),
        (Rate, "5furlong", "units are bit, kbit, mbit, gbit, tbit"),
        (Rate, "1bit", "out of range; write something from 1kbit to 1tbit"),
        (Rate, "2tbit", "out of range"),
        (Rate, "0.3bit", "finer than 1 bit"),
        (Rate, "9" * 400 + "mbit", "has too many digits"),
        (Rate, "1e9bit", "is not a rate"),
        (Rate, "nan", "is not a rate"),
        (Rate, float("nan"), "is not a rate"),
        (Rate, float("inf"), "is not a rate"),
        (Rate, None, "nothing is not a rate"),
        (Rate, True, "true/false is not a rate"),
        (Rate, [], "a list is not a rate"),
        (Rate, {}, "a mapping is not a rate"),
        (Rate, "", "is not a rate"),
        (Rate, "٣mbit", "is not a rate"),
        (Duration, "20m", "write ms or min"),
        (Duration, "20 µs", "write us"),
        (Duration, "48h", "out of range"),
        (Duration, "0.1ns", "finer than 1 ns"),
        (Size, "64kb", "write KB for 1000 bytes"),
        (Size, "64kib", "write KiB for 1024 bytes"),
        (Size, "64K", "write KB or KiB"),
        (Size, "64", "has no unit"),
        (Size, "0B", "out of range"),
        (Size, "8kbit", "sizes are in bytes"),
        (Ratio, 0.01, "0.01 has no unit; write for example 1%"),
        (Ratio, "101%", "out of range; write something from 0% to 100%"),
        (Ratio, "1permille", "write a percentage"),
        (Queue, 100, "100 has no unit; write for example 100pkt, 64KiB or 1bdp"),
        (Queue, "10 packets", "write 10pkt"),
        (Queue, "0pkt", "out of range"),
        (Queue, "1.5pkt", "out of range"),
        (Queue, "0bdp", "out of range"),
        (Queue, "64kb", "not a unit of a queue; write KB"),
        (Queue, "3cars", "not a unit of a queue; write for example 100pkt, 64KiB or 1bdp"),
    ],
)
def test_a_wrong_quantity_is_refused_with_an_example_of_a_right_one(
    kind: type, value: object, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        kind.parse(value)


@given(st.text(max_size=200) | st.integers() | st.floats() | st.binary() | st.none())
def test_whatever_is_written_is_a_quantity_or_one_line_of_reason(value: object) -> None:
    for kind in (Rate, Duration, Size, Ratio, Queue):
        reason = refusal(kind, value)
        assert len(reason) < 300
        assert "\n" not in reason


def refusal(kind: type, value: object) -> str:
    """Return why the value is none of this kind; empty when it is."""
    try:
        kind.parse(value)
    except ValueError as wrong:
        return str(wrong)
    return ""


@given(st.integers(1_000, 10**12))
def test_printing_and_reading_a_rate_loses_nothing(bps: int) -> None:
    assert Rate.parse(str(Rate(bps))) == bps


@given(st.integers(0, 24 * 3600 * 10**9))
def test_printing_and_reading_a_time_loses_nothing(ns: int) -> None:
    assert Duration.parse(str(Duration(ns))) == ns


@given(st.integers(1, 10**12))
def test_printing_and_reading_a_size_loses_nothing(size: int) -> None:
    assert Size.parse(str(Size(size))) == size


def test_quantities_print_in_the_largest_exact_unit() -> None:
    assert [str(Rate(n)) for n in (5_000_000, 1_500_000, 1_234_567)] == ["5mbit", "1500kbit", "1234567bit"]
    assert [str(Duration(n)) for n in (0, 90 * 10**9, 1_500_000)] == ["0s", "90s", "1500us"]
    assert [str(Size(n)) for n in (65_536, 64_000, 3)] == ["64KiB", "64KB", "3B"]
