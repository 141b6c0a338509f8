"""The scenario that emulates measured lines, as text with the intervals as comments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plait.scenario.names import read_link_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plait.measure.model import DirectionEstimate, LineEstimate, MeasuredValue

_LEAST_JITTER_US = 100.0
"""Less jitter than this is that of the hosts' own timers."""
_MOST_REPEATS = 5


def scenario_text(lines: Sequence[LineEstimate]) -> str:
    """Return the text of a scenario with a link for each line."""
    hosts = list(dict.fromkeys(host for line in lines for host in (line.forward.source, line.forward.target)))
    first = lines[0].forward
    parts = [
        "# `plait measure` wrote this file from real lines. The intervals in comments have a confidence of 95 %.",
        "# Rates and queues count Ethernet frames without their check sequence. The delay of each direction is half",
        "# of the base RTT, because clocks of two hosts cannot divide it.",
        f"title: Measured lines between {' and '.join(hosts)}",
        "network:",
        f"  hosts: [{', '.join(hosts)}]",
        "  links:",
        *(text for line in lines for text in _link(line, hosts)),
        "traffic:",
        f"  - bulk: {{from: {first.source}, to: {first.target}, duration: 10s}}",
        *(["vary:", "  transport: [tcp, mptcp]"] if len(lines) > 1 else []),
        f"repeat: {_MOST_REPEATS}",
    ]
    return "\n".join(parts) + "\n"


def _link(line: LineEstimate, hosts: Sequence[str]) -> Iterator[str]:
    yield f"    {line.name}:"
    yield f"      # base RTT {_interval(line.base_rtt_us, _time)}"
    forward = read_link_name(line.name, hosts).a == line.forward.source
    directions = (line.forward, line.backward) if forward else (line.backward, line.forward)
    for name, direction in zip(("forward", "backward"), directions, strict=True):
        yield f"      {name}:"
        for field, comment in _conditions(direction, line.base_rtt_us):
            yield f"        {field}  # {comment}" if field else f"        # {comment}"


def _conditions(way: DirectionEstimate, rtt: MeasuredValue) -> Iterator[tuple[str, str]]:
    """Yield each condition with its comment; an empty condition is one that plait could not measure."""
    yield from _rate(way)
    jitter = way.jitter_us.value or 0.0
    jittery = jitter >= _LEAST_JITTER_US
    if rtt.value is not None:
        delay_us = max(0.0, rtt.value / 2) + (way.mean_above_least_us if jittery else 0.0)
        yield (
            f"delay: {round(delay_us)}us",
            "half of the base RTT" + (", plus the mean jitter" if jittery else ""),
        )
    if jittery:
        yield f"jitter: {{deviation: {round(jitter)}us}}", _interval(way.jitter_us, _time)
    elif way.jitter_us.value is not None:
        yield "", f"jitter {_time(jitter)}, which is that of the hosts' timers"
    if way.loss_ratio.value:
        yield (
            f"loss: {way.loss_ratio.value:.4%}",
            f"{_interval(way.loss_ratio, _ratio)}, of {way.probes} packets",
        )
    elif way.loss_ratio.high is not None:
        yield "", f"loss: none of {way.probes} packets, so below {_ratio(way.loss_ratio.high)}"
    if way.queue_bytes.value is not None:
        yield f"queue: {max(1600, round(way.queue_bytes.value))}B", _interval(way.queue_bytes, _size)
    elif way.queue_bytes.low is not None:
        yield "", f"queue: at least {_size(way.queue_bytes.low)}; it did not overflow"
    else:
        yield "", "queue: not measured"


def _rate(way: DirectionEstimate) -> Iterator[tuple[str, str]]:
    rate = way.rate_bps
    if rate.value is not None:
        yield f"rate: {_kbit(rate.value)}", _interval(rate, _mbit)
    elif rate.low is not None:
        yield f"rate: {_kbit(rate.low)}", "at least; the packets did not fill the line, so raise limits.rate"
    else:
        yield "", "rate: not measured; too few packets arrived"
    if way.bucket is not None:
        burst, baseline = way.bucket.burst_bytes, way.bucket.baseline_bps
        fields = f"{{baseline: {_kbit(baseline.value or 0)}, burst: {round(burst.value or 0)}B}}"
        yield f"bucket: {fields}", f"baseline {_interval(baseline, _mbit)}; burst {_interval(burst, _size)}"


def _interval(estimate: MeasuredValue, show: Callable[[float], str]) -> str:
    if estimate.value is None:
        return "not measured"
    if estimate.low is None or estimate.high is None:
        return show(estimate.value)
    return f"{show(estimate.value)} ({show(estimate.low)} to {show(estimate.high)})"


def _kbit(bps: float) -> str:
    return f"{max(1, round(bps / 1000))}kbit"


def _digits(value: float) -> str:
    """Return a number with four significant digits."""
    if value == 0 or not math.isfinite(value):
        return "0"
    return f"{value:.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"


def _mbit(bps: float) -> str:
    return f"{_digits(bps / 1e6)} Mbit/s"


def _time(us: float) -> str:
    return f"{_digits(us / 1000)} ms"


def _size(size: float) -> str:
    return f"{_digits(size / 1000)} KB"


def _ratio(ratio: float) -> str:
    return f"{_digits(ratio * 100)} %"
