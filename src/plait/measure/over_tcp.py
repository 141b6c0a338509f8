"""Measures a line that blocks UDP by TCP connections, which show less: rate, round-trip time, and waits under load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import stdtrit  # type: ignore[import-untyped]  # scipy ships no types

from plait.dataset.convert import read_stream
from plait.errors import TrialError
from plait.frames import ETHERNET_HEADER, IPV4_HEADER, IPV6_HEADER, MSS_RANGE, TCP_HEADER, TIMESTAMPS
from plait.measure.model import (
    NOT_MEASURED,
    TAIL,
    DirectionEstimate,
    LineEstimate,
    MeasuredValue,
    QueueEstimate,
)
from plait.measure.probing import LineEnd, LineProber
from plait.plan.model.plan import Flow, Side, SideName
from plait.traffic.bulk import Bulk
from plait.traffic.gaps import Gap
from plait.traffic.request import Request

REMARK = "UDP does not pass, so TCP measured this line: loss, jitter, token bucket and the kind of queue are not known"
_IDLE_US, _QUIET_US = 3_000_000, 2_000_000
_LOAD_US = 1_000_000, 8_000_000
"""Least and most time of a load."""
_SAMPLES = 80
"""Samples of a load."""
_PART = 0.9
"""The part of a line's bytes that loads may take."""
_FASTER = 2
"""How much faster than a short load, which slow start holds up, a longer one may be."""
_GAP_US = 20_000
_SMALL_BYTES = 64
_SETTLED = 0.4
"""The part of a load after which slow start is over."""
_BLOCKS = 8
_LEAST_WAIT_US, _LEAST_WAIT = 2_000, 0.1
"""A connection fills a line if its packets wait longer than this: in us, and relative to the base RTT."""


class NothingPassesError(TrialError):
    """Neither UDP packets nor TCP connections pass a line."""


@dataclass(frozen=True)
class Loads:
    """When each of the two loads of a line begins and ends: the first one from the listener, the second to it."""

    lasts_us: int

    @classmethod
    def within(cls, rate_bps: float, most_bytes: float) -> Loads:
        """Return loads of at most `most_bytes` at `rate_bps`; a load is never shorter than the least of `_LOAD_US`."""
        least_us, most_us = _LOAD_US
        return cls(max(least_us, min(most_us, int(_PART * most_bytes * 8e6 / rate_bps))))

    def begins_us(self, flow: int) -> int:
        """Return when load 1 or 2 begins."""
        return _IDLE_US + (flow - 1) * (self.lasts_us + _QUIET_US)

    @property
    def end_us(self) -> int:
        """When all is over."""
        return self.begins_us(3)


@dataclass(frozen=True)
class _Trial:
    """The samples of both hosts, by the host."""

    subflows: dict[str, pl.DataFrame]
    opener: LineEnd
    listener: LineEnd
    loads: Loads

    @classmethod
    def read(cls, folder: Path, opener: LineEnd, listener: LineEnd, loads: Loads) -> _Trial:
        tables = {
            end.host: read_stream(folder / end.host / "subflows.arrow", "subflows")
            for end in (opener, listener)
        }
        return cls(tables, opener, listener, loads)

    def rows(self, host: str, flow: int, begin_us: int = 0, end_us: int | None = None) -> pl.DataFrame:
        frame = self.subflows[host]
        last_us = self.loads.end_us if end_us is None else end_us
        return frame.filter((frame["flow"] == flow) & frame["t_us"].is_between(begin_us, last_us))

    def most_sent(self) -> int:
        """Return the bytes of the load that sent more."""
        sources = ((self.listener.host, 1), (self.opener.host, 2))
        sent = [self.rows(host, flow)["sent_bytes"].max() for host, flow in sources]
        return max(int(number) for number in (*sent, 0) if isinstance(number, int))


def measure_over_tcp(
    name: str, ends: tuple[LineEnd, LineEnd], prober: LineProber, rate_bps: float, share_bytes: float
) -> LineEstimate:
    """Measure a line by connections of the end that can open them.

    A host may send at `rate_bps`, and `share_bytes` belong to this line. If they do not suffice for whole loads at that
    rate, short ones show how long they suffice at the line's own. Raises TrialError if a host fails, and
    NothingPassesError if no connection is established.
    """
    opener, listener = ends if ends[1].public is not None else (ends[1], ends[0])
    loads = Loads.within(rate_bps, share_bytes)
    trial = _run(opener, listener, prober, loads)
    base_us = trial.rows(opener.host, 0)["min_rtt_us"].drop_nulls()
    if not len(base_us):
        raise NothingPassesError(
            f"{name}: neither a UDP packet nor a TCP connection from {opener.address} reaches {listener.host} "
            f"({listener.public}, port {listener.port}); check the line and the firewalls, or leave the line out"
        )
    if loads.lasts_us < _LOAD_US[1]:
        sent = trial.most_sent()
        longer = Loads.within(_FASTER * sent * 8e6 / loads.lasts_us, share_bytes - sent) if sent else loads
        if longer.lasts_us > loads.lasts_us:
            trial = _run(opener, listener, prober, longer)
    least_us = float(base_us[-1])
    by_source = {
        end.host: _direction(trial, number, end, least_us) for number, end in ((1, listener), (2, opener))
    }
    rtt = MeasuredValue(least_us, None, least_us)
    return LineEstimate(name, by_source[ends[0].host], by_source[ends[1].host], rtt, REMARK)


def _run(opener: LineEnd, listener: LineEnd, prober: LineProber, loads: Loads) -> _Trial:
    with prober.trial(
        [opener.host, listener.host],
        lambda host: _flows(opener, listener, host, loads),
        loads.end_us,
        0,
        sample_us=loads.lasts_us // _SAMPLES,
        is_bounded=True,
    ) as folder:
        return _Trial.read(folder, opener, listener, loads)


def _flows(opener: LineEnd, listener: LineEnd, host: str, loads: Loads) -> tuple[Flow, ...]:
    asked = Request(
        request_bytes=_SMALL_BYTES,
        response_bytes=_SMALL_BYTES,
        loop="closed",
        gap=Gap(mean_us=_GAP_US),
        count=loads.end_us // _GAP_US,
    )
    load = Bulk(duration_us=loads.lasts_us)
    parts: list[tuple[Request | Bulk, SideName, int]] = [
        (asked, "server", 0),
        (load, "server", loads.begins_us(1)),
        (load, "client", loads.begins_us(2)),
    ]
    return tuple(
        Flow(
            id=number,
            name=f"tcp{number}",
            application=application,
            transport="tcp",
            client=Side(netns=opener.host, address=opener.address, port=0),
            server=Side(netns=listener.host, address=listener.address_for(host), port=listener.port + number),
            sender=sender,
            start_us=start_us,
            paths=(),
            ideal_rate_bps=None,
        )
        for number, (application, sender, start_us) in enumerate(parts)
    )


def _direction(trial: _Trial, flow: int, source: LineEnd, least_us: float) -> DirectionEstimate:
    """Return what the connection `flow` from `source` shows of a direction."""
    target = trial.listener if source is trial.opener else trial.opener
    begin_us, lasts_us = trial.loads.begins_us(flow), trial.loads.lasts_us
    window = (begin_us + int(_SETTLED * lasts_us), begin_us + lasts_us)
    sent, arrived = trial.rows(source.host, flow, *window), trial.rows(target.host, flow, *window)
    wait_us, sparse_us = None, None
    if len(rtts := sent["rtt_us"].drop_nulls()):
        wait_us = max(0.0, float(np.median(rtts.to_numpy())) - least_us)
        others = trial.rows(trial.opener.host, 0, *window)["rtt_us"].drop_nulls()
        sparse_us = max(0.0, float(np.median(others.to_numpy())) - least_us) if len(others) else None
    rate = _rate(sent, arrived, source)
    filled = wait_us is not None and wait_us > max(_LEAST_WAIT_US, _LEAST_WAIT * least_us)
    if not filled:
        rate = MeasuredValue(None, rate.low, None)
    queue = QueueEstimate("unknown", wait_us=wait_us, sparse_wait_us=sparse_us, reason="TCP does not show it")
    return DirectionEstimate(
        source.host, target.host, rate, None, 0.0, queue, NOT_MEASURED, None, NOT_MEASURED, 0.0, 0
    )


def _rate(sent: pl.DataFrame, arrived: pl.DataFrame, source: LineEnd) -> MeasuredValue:
    """Return the rate of frames in bit/s at which the receiver got data; the interval is that of eight blocks."""
    mss = sent["mss_bytes"].drop_nulls()
    if len(arrived) < 2 * _BLOCKS or not len(mss):
        return NOT_MEASURED
    times = arrived["t_us"].to_numpy()
    if int(mss[-1]) not in MSS_RANGE or times[0] >= times[-1] or np.any(np.diff(times) < 0):
        raise TrialError(f"{source.host}: the host sent times or an MSS ({mss[-1]} B) that no connection has")
    header = IPV6_HEADER if ":" in source.address else IPV4_HEADER
    part = (int(mss[-1]) + TCP_HEADER + TIMESTAMPS + header + ETHERNET_HEADER) / int(mss[-1])
    total = arrived["received_bytes"].to_numpy() * part
    cuts = np.linspace(0, times.size - 1, _BLOCKS + 1).astype(int)
    if np.any(np.diff(times[cuts]) == 0):
        return NOT_MEASURED
    rates = np.diff(total[cuts]) * 8e6 / np.diff(times[cuts])
    rate = float((total[-1] - total[0]) * 8e6 / (times[-1] - times[0]))
    half = float(stdtrit(_BLOCKS - 1, 1 - TAIL) * rates.std(ddof=1) / np.sqrt(_BLOCKS))
    return MeasuredValue(rate, max(0.0, rate - half), rate + half)
