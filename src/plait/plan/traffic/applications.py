"""The application of a flow, from an entry of the traffic, and an estimate of its duration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.plan.model import applications as plan
from plait.plan.traffic.prototypes import prototype
from plait.scenario.fields import traffic
from plait.scenario.located import error_at
from plait.seeds import derived

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.plan.model.plan import Flow
    from plait.plan.traffic.flow_slots import Slot
    from plait.scenario.fields.spans import RandomTime
    from plait.scenario.scenario import Scenario

ON_OFF_MESSAGE_BYTES = 1000
PATIENCE_US = 60_000_000
"""Added to the expected duration of an application before the trial ends."""
_UNLIMITED_BPS = 10_000_000_000


def application(scenario: Scenario, slot: Slot, first: int, start_us: int, seed: int) -> plan.Application:
    """Return the application of the flow of `slot` with this start; `first` is the flow that is part 0 of the same."""
    spec = scenario.traffic[slot.entry].flow
    match spec:
        case traffic.BulkSpec():
            return plan.Bulk(duration_us=spec.duration_us(start_us))
        case traffic.TransferSpec():
            return _transfer(scenario, slot, spec)
        case traffic.StreamSpec():
            size = int(spec.message)
            pace = spec.interval_ns(size)
            return plan.Stream(message_bytes=size, interval_ns=pace, count=_count(spec, pace, start_us))
        case traffic.UdpSpec():
            size = int(spec.packet)
            pace = spec.interval_ns(size)
            count = _count(spec, pace, start_us)
            return plan.Udp(packet_bytes=size, interval_ns=pace, count=count, drain_us=0)
        case traffic.OnOffSpec():
            return _on_off(spec, start_us, derived(seed, "on_off", slot.entry, slot.copy, slot.turn))
        case traffic.RequestSpec():
            return _request(spec, start_us, derived(seed, "request", slot.entry, slot.copy, slot.turn))
        case traffic.PrototypeSpec():
            drawn = derived(seed, "prototype", slot.entry, slot.copy, slot.turn)
            return prototype(scenario, slot.entry, spec, start_us, drawn)
        case traffic.PageSpec() if slot.part:
            return plan.PageConnection(page=first)
        case traffic.PageSpec():
            return plan.Page(
                request_bytes=int(spec.request), objects=tuple(int(size) for size in spec.objects)
            )
    raise AssertionError(f"{type(spec).__name__} is no kind of traffic")


def _count(spec: traffic.Lasting, interval_ns: int, start_us: int) -> int:
    """Return the number of messages that begin within the duration."""
    lasts = spec.duration_us(start_us)
    assert lasts is not None  # only a bulk flow may have none
    return -(-lasts * 1000 // interval_ns)


def _transfer(scenario: Scenario, slot: Slot, spec: traffic.TransferSpec) -> plan.Transfer:
    first = None
    if spec.first is not None and spec.gap is not None:
        first = plan.First(bytes=int(spec.first), pause_us=spec.gap.us)
    if slot.part and spec.returned is not None:
        return plan.Transfer(bytes=int(spec.returned), first=first)
    if spec.file is None:
        assert spec.bytes is not None
        return plan.Transfer(bytes=int(spec.bytes), first=first)
    facts = scenario.files.get(spec.file)
    if facts is None:
        message = f"the file '{spec.file}' has not been read; read the scenario with plait.scenario.read.load"
        raise error_at(scenario, [(("traffic", slot.entry, "transfer", "file"), message)])
    file = plan.File(name=facts.name, bytes=facts.bytes, sha256=facts.sha256)
    return plan.Transfer(bytes=file.bytes, file=file)


def _on_off(spec: traffic.OnOffSpec, start_us: int, seed: int) -> plan.OnOff:
    size = None if spec.rate is None else int(spec.message or ON_OFF_MESSAGE_BYTES)
    return plan.OnOff(
        on=_gap(spec.on),
        off=_gap(spec.off),
        duration_us=spec.duration_us(start_us) or 1,
        message_bytes=size,
        interval_ns=None if size is None or spec.rate is None else max(1, size * 8 * 10**9 // int(spec.rate)),
        seed=seed,
    )


def _request(spec: traffic.RequestSpec, start_us: int, seed: int) -> plan.Request:
    gap = spec.every or spec.gap
    return plan.Request(
        request_bytes=int(spec.request),
        response_bytes=int(spec.response),
        loop="closed" if spec.every is None else "open",
        gap=None if gap is None else _gap(gap),
        count=spec.requests,
        duration_us=spec.duration_us(start_us),
        seed=seed,
    )


def _gap(gap: RandomTime) -> plan.Gap:
    return plan.Gap(mean_us=gap.mean.us, exponential=gap.exponential)


def messages(flow: Flow) -> int:
    """Return the maximum number of messages of the flow; a timed closed loop has as many as its base RTT allows."""
    match flow.application:
        case plan.Stream(count=count) | plan.Udp(count=count):
            return count
        case plan.Page(objects=objects):
            return len(objects)
        case plan.Prototype(count=int(count)):
            return count
        case plan.OnOff(duration_us=lasts, interval_ns=int(interval)):
            return lasts * 1000 // interval + 1
        case plan.Request(count=int(count)):
            return count
        case plan.Request(duration_us=int(lasts), loop="open", gap=plan.Gap(mean_us=mean)):
            return 2 * (lasts // mean + 1)
        case plan.Request(duration_us=int(lasts), gap=gap):
            least = max(1.0, flow.paths[0].base_rtt_us) + (0 if gap is None else gap.mean_us)
            return int(lasts / least) + 1
    return 0


def length_us(flow: Flow, flows: Sequence[Flow]) -> int:
    """Return the longest duration of the flow in us: the expected one, and ample time for delays."""
    rate = (flow.ideal_rate_bps or _UNLIMITED_BPS) / 10
    match flow.application:
        case plan.Bulk(duration_us=lasts):
            return lasts or 0
        case plan.Transfer(bytes=size, first=first):
            pause_us = 0 if first is None else first.pause_us
            return PATIENCE_US + pause_us + int(size * 8_000_000 / rate)
        case plan.Stream(interval_ns=interval, count=count):
            return interval * count // 1000 + PATIENCE_US
        case plan.Udp(interval_ns=interval, count=count, drain_us=drain):
            return interval * count // 1000 + drain + (0 if flow.connection is None else PATIENCE_US)
        case plan.OnOff(duration_us=lasts):
            return lasts + PATIENCE_US
        case plan.Request(duration_us=int(lasts)):
            return lasts + PATIENCE_US
        case plan.Request(count=count, gap=gap, request_bytes=asked, response_bytes=answer):
            rtt = max(path.base_rtt_us for path in flow.paths)
            each = 10 * rtt + (asked + answer) * 8_000_000 / rate + 2 * (gap.mean_us if gap else 0)
            return PATIENCE_US + int(each * (count or 0))
        case plan.Page(objects=objects):
            return PATIENCE_US + int(sum(objects) * 8_000_000 / rate)
        case plan.PageConnection(page=page):
            return length_us(flows[page], flows)
        case plan.Prototype(duration_us=int(lasts)):
            return lasts
        case plan.Prototype(bytes=size, message_bytes=message, count=count, interval_us=interval):
            sent = size or (message or 0) * (count or 0)
            rtt = max(path.base_rtt_us for path in flow.paths)
            each = int(10 * rtt) if interval is None else interval
            return PATIENCE_US + int(sent * 8_000_000 / rate) + each * (count or 0)
        case plan.Connection():
            return 0  # no plan contains it
