"""One line of text for each measured line, for the terminal. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plait.measure.model import DirectionEstimate, LineEstimate

_WIDTH = 80
_SHOWN_LOSS = 0.0005
"""A smaller loss ratio shows as 0.0 %."""


def summary(
    lines: Sequence[LineEstimate], labels: Mapping[str, str] | None = None, client: str | None = None
) -> str:
    """Return a table with a row for each line: its rates, base RTT, waits under load, and loss in each direction.

    Where a row has no room in 80 columns, waits and losses follow on a second one.
    With `client`, the directions are down and up as that host sees them; `labels` replace the names of lines.
    """
    rows = [_row(line, (labels or {}).get(line.name, line.name), client) for line in lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    whole = ["   ".join(row).rstrip() for row in padded]
    if max(map(len, whole), default=0) <= _WIDTH:
        return "\n".join(whole)
    indent = " " * (widths[0] + 3)
    halves = (part for row in padded for part in (row[:3], [indent + row[3], row[4]]))
    return "\n".join("   ".join(half).rstrip() for half in halves)


def _row(line: LineEstimate, name: str, client: str | None) -> list[str]:
    ways = (line.forward, line.backward)
    if client is not None and line.forward.source == client:
        ways = (line.backward, line.forward)
    words = ("down", "up") if client is not None else tuple(f"to {way.target}" for way in ways)
    rates = " / ".join(f"{_rate(way)} {word}" for way, word in zip(ways, words, strict=True))
    rtt = line.base_rtt_us.value
    return [
        name,
        f"{rates} Mbit/s",
        "RTT unknown" if rtt is None else f"{_digits(rtt / 1000)} ms",
        f"{' / '.join(map(_wait, ways))} ms loaded",
        f"loss {' / '.join(map(_percent, ways))} %{_pattern(ways)}{' (by TCP: UDP is blocked)' if line.remark else ''}",
    ]


def _rate(way: DirectionEstimate) -> str:
    rate = way.rate_bps
    if rate.value is None:
        return "unknown" if rate.low is None else f"at least {_digits(rate.low / 1e6)}"
    if way.bucket is not None and way.bucket.baseline_bps.value is not None:
        return f"{_digits(rate.value / 1e6)} then {_digits(way.bucket.baseline_bps.value / 1e6)}"
    return _digits(rate.value / 1e6)


def _wait(way: DirectionEstimate) -> str:
    wait_us = way.queue.wait_us
    return "+?" if wait_us is None else f"+{_digits(max(0.0, wait_us / 1000))}"


def _percent(way: DirectionEstimate) -> str:
    ratio = way.loss_ratio.value
    return (
        "?"
        if ratio is None
        else f"{100 * ratio:.1f}"
        if ratio < _SHOWN_LOSS or ratio >= 0.01
        else f"{100 * ratio:.2g}"
    )


def _pattern(ways: Sequence[DirectionEstimate]) -> str:
    in_bursts = (way.loss_model is not None and way.loss_model.kind != "independent" for way in ways)
    return " in bursts" if any(in_bursts) else ""


def _digits(value: float) -> str:
    """Return a number as people read it: two significant digits below 10, whole from there on."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"
