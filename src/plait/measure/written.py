"""The scenario that emulates measured lines, as text with the intervals as comments."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from plait.frames import DEFAULT_MTU, ETHERNET_HEADER, MIN_MTU
from plait.measure.crossing import Crossing
from plait.measure.estimates.load import SEEN_PART
from plait.measure.estimates.losses import independent_bound
from plait.measure.model import DirectionEstimate, LineEstimate, MeasuredValue
from plait.scenario.names import read_link_name

_LEAST_JITTER_US = 100.0
"""Less jitter than this is that of the hosts' own timers."""
_FEW_LOSSES = 5
_LEAST_QUEUE_BYTES = 1600
_MOST_REPEATS = 5


def scenario_text(
    lines: Sequence[LineEstimate],
    *,
    hosts: Iterable[str] = (),
    mptcp: Iterable[str] = (),
    comments: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    client: str | None = None,
    crossed: Mapping[str, Crossing] | None = None,
) -> str:
    """Return the text of a scenario with a link for each line.

    Args:
        lines: what was measured.
        hosts: the lines of `network.hosts`; without them, hosts have plait's settings.
        mptcp: the lines of `mptcp`.
        comments: sentences about all lines.
        labels: texts for figures, by the name of the link; without them, the names are those texts.
        client: the machine that opens all flows and downloads; None: the first host sends.
        crossed: what crosses each line, by the name of the link.
    """
    names = list(dict.fromkeys(host for line in lines for host in (line.forward.source, line.forward.target)))
    first = lines[0].forward
    traffic = f"from: {first.source}, to: {first.target}"
    if client is not None:
        (server,) = set(names) - {client}
        traffic = f"from: {server}, to: {client}, reverse: true"
    parts = [
        "# `plait lines` wrote this file from real lines. The intervals in comments have a confidence of 99 %.",
        "# Rates and queues count Ethernet frames without their check sequence. The delay of each direction is half",
        "# of the base RTT, because clocks of two hosts cannot divide it.",
        *(f"# {comment}" for comment in comments),
        f"title: Measured lines between {' and '.join(names)}",
        "network:",
        *(list(hosts) or [f"  hosts: [{', '.join(names)}]"]),
        "  links:",
        *(
            text
            for line in lines
            for text in _link(line, names, (labels or {}).get(line.name), (crossed or {}).get(line.name))
        ),
        *mptcp,
        "traffic:",
        f"  - bulk: {{{traffic}, duration: 10s}}",
        *(["vary:", "  transport: [tcp, mptcp]"] if len(lines) > 1 else []),
        f"repeat: {_MOST_REPEATS}",
    ]
    return "\n".join(parts) + "\n"


def _link(
    line: LineEstimate, hosts: Sequence[str], label: str | None, crossing: Crossing | None
) -> Iterator[str]:
    yield f"    {line.name}:"
    if label is not None:
        yield f"      label: {json.dumps(label)}"
    yield from _crossed(crossing)
    if line.remark:
        yield f"      # {line.remark}"
    yield f"      # base RTT {_interval(line.base_rtt_us, _time)}"
    forward = read_link_name(line.name, hosts).a == line.forward.source
    directions = (line.forward, line.backward) if forward else (line.backward, line.forward)
    frame_bytes = ETHERNET_HEADER + ((crossing and crossing.mtu) or DEFAULT_MTU)
    for name, direction in zip(("forward", "backward"), directions, strict=True):
        yield f"      {name}:"
        for condition, comment in _conditions(direction, line.base_rtt_us, frame_bytes):
            yield f"        {condition}  # {comment}" if condition else f"        # {comment}"


def _crossed(crossing: Crossing | None) -> Iterator[str]:
    """Yield the MTU if it is no usual one, and a middlebox that removes what the line removes."""
    if crossing is None:
        return
    if crossing.mtu is not None and MIN_MTU <= crossing.mtu != DEFAULT_MTU:
        yield f"      mtu: {crossing.mtu}  # by the segments of TCP in both directions"
    if crossing.mptcp is False:
        yield "      middlebox: {strip: [syn]}  # a connection over this line fell back to TCP"


def _conditions(way: DirectionEstimate, rtt: MeasuredValue, frame_bytes: int) -> Iterator[tuple[str, str]]:
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
        yield (
            f"jitter: {{deviation: {round(jitter)}us}}",
            f"{_interval(way.jitter_us, _time)}, on the idle line",
        )
    elif way.jitter_us.value is not None:
        yield "", f"jitter: {_time(jitter)}, which is that of the hosts' timers"
    yield from _loss(way)
    yield from _queue(way, frame_bytes)


def _loss(way: DirectionEstimate) -> Iterator[tuple[str, str]]:
    ratio, model = way.loss_ratio, way.loss_model
    if not ratio.value or model is None:
        if ratio.high is not None:
            alone = _ratio(independent_bound(way.probes))
            yield (
                "",
                f"loss: none of {way.probes} packets, so below {alone}, or {_ratio(ratio.high)} in bursts",
            )
        return
    comment = f"{_interval(ratio, _ratio)}, of {way.probes} packets at a quarter of the rate"
    if model.p is None or model.r is None or model.loss_bad is None:
        few = ratio.value * way.probes < _FEW_LOSSES
        how = "too few losses to tell whether they come in bursts" if few else "independent losses fit best"
        yield f"loss: {ratio.value * 100:.4g}%", f"{comment}; {how}"
        return
    bad = "" if model.loss_bad == 1 else f", 1-h: {model.loss_bad * 100:.4g}%"
    lost = "all packets" if model.loss_bad == 1 else f"{model.loss_bad * 100:.0f} % of the packets"
    yield (
        f"loss: {{gemodel: {{p: {model.p * 100:.4g}%, r: {model.r * 100:.4g}%{bad}}}}}",
        f"{comment}; a Gilbert-Elliott model fits best: bursts of {_digits(1 / model.r)} packets that lose {lost}",
    )


def _queue(way: DirectionEstimate, frame_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield the queue. What was measured has the frame that is on the line; the queue of a link is behind that one."""
    queue = way.queue
    wait = "" if queue.wait_us is None else f" ({_time(max(0.0, queue.wait_us))})"
    match queue.kind:
        case "drop-tail":
            size = max(_LEAST_QUEUE_BYTES, round(queue.bytes.value or 0) - frame_bytes)
            comment = f"{_interval(queue.bytes, _size)} with the frame on the line, {queue.reason}{wait}"
            yield f"queue: {size}B", comment
        case "active":
            others = (
                ""
                if queue.sparse_wait_us is None
                else f", small ones {_time(max(0.0, queue.sparse_wait_us))}"
            )
            reason = f"{queue.reason}: full packets wait {_time(max(0.0, queue.wait_us or 0.0))}{others}"
            yield "aqm: fq_codel", f"an active queue, {reason}; which one, and its limits, no packet shows"
        case "not full" if queue.bytes.low is not None:
            yield "", f"queue: at least {_size(queue.bytes.low)}; {queue.reason}"
        case _:
            yield "", f"queue: not measured; {queue.reason}"


def _rate(way: DirectionEstimate) -> Iterator[tuple[str, str]]:
    rate = way.rate_bps
    if rate.value is not None:
        yield f"rate: {_kbit(rate.value)}", f"{_interval(rate, _mbit)}, of packets that overloaded the line"
    elif rate.low is not None:
        yield (
            f"rate: {_kbit(rate.low)}",
            "at least; the packets did not fill the line, so raise limits.rate (--rate)",
        )
    else:
        yield "", "rate: not measured; too few packets arrived"
    bps = rate.value or rate.low
    if way.bucket is not None:
        burst, baseline = way.bucket.burst_bytes, way.bucket.baseline_bps
        fields = f"{{baseline: {_kbit(baseline.value or 0)}, burst: {round(burst.value or 0)}B}}"
        yield f"bucket: {fields}", f"baseline {_interval(baseline, _mbit)}; burst {_interval(burst, _size)}"
        return
    burst_bytes = way.burst_bytes
    if burst_bytes.value is not None:
        yield (
            f"bucket: {{burst: {round(burst_bytes.value)}B}}",
            f"{_interval(burst_bytes, _size)} pass at once on the idle line",
        )
    if bps is not None and way.lasted_s:
        seen_s = way.lasted_s * SEEN_PART
        most = f"{_digits(seen_s)} s ({_size(bps * seen_s / 8)})"
        yield "", f"bucket: none that is empty after {most}; a larger one does not show"


def _interval(estimate: MeasuredValue, show: Callable[[float], str]) -> str:
    if estimate.value is None:
        return "not measured"
    if estimate.low is None or estimate.high is None:
        return show(estimate.value)
    return f"{show(estimate.value)} ({show(estimate.low)} to {show(estimate.high)})"


def _kbit(bps: float) -> str:
    return f"{max(1, round(bps / 1000))}kbit"


def _digits(value: float, significant: int = 3) -> str:
    """Return a number with the given count of significant digits, and at most three decimals."""
    if not math.isfinite(value) or abs(value) < 0.0005:
        return "0"
    decimals = significant - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{min(3, max(0, decimals))}f}"


def _mbit(bps: float) -> str:
    return f"{_digits(bps / 1e6, 4)} Mbit/s"


def _time(us: float) -> str:
    return f"{_digits(us / 1000)} ms"


def _size(size: float) -> str:
    return f"{_digits(size / 1e6)} MB" if size >= 1e6 else f"{_digits(size / 1000)} KB"


def _ratio(ratio: float) -> str:
    return f"{_digits(ratio * 100)} %"
