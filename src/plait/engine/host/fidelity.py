"""The guard of fidelity: did this machine keep real time well enough during a trial?

The agent records the lateness of timers and the kernel's counters of its own delays (`agent/src/process/fidelity.rs`).
Before and after each trial, a short burst over a veth pair shows what the machine can carry. A trial beyond a bound
stays in the result folder, and the study's means leave it out, with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from plait.engine.engine import Fact
from plait.errors import TrialError, printable
from plait.files import Folder
from plait.parts import Part

FILE = "fidelity.json"
_MOST_BYTES = 65_536
LATENESS_P99_US = 1000
"""Bound on the lateness of 99 of 100 timers, in us: a fifth of a link's delay of 5 ms."""
LATENESS_MAX_US = 20_000
"""Bound on the lateness of any timer, in us: less than a tenth of the least retransmission timeout (200 ms)."""
CPU_PRESSURE = 0.25
"""Bound on the share of the trial during which a task waited for a processor."""
TIME_SQUEEZES_PER_S = 10.0
"""Bound on how often per second the kernel stopped the processing of packets because it had taken too long."""
STEAL = 0.02
"""Bound on the share of processor time that the hypervisor took."""
HEADROOM = 3.0
"""Bound on the rate of a burst over a veth pair, as a multiple of what the plan's flows can reach together."""
DRIFT = 0.5
"""Bound on the rate of the burst after the trial, as a share of that before."""


class Fidelity(Part):
    """The agent's record of one trial; null: this kernel or container has no such counter."""

    span_us: int
    timers: int
    lateness_median_us: int | None
    lateness_p99_us: int | None
    lateness_max_us: int | None
    cpu_pressure_us: int | None
    memory_pressure_us: int | None
    io_pressure_us: int | None
    backlog_drops: int | None
    time_squeezes: int | None
    steal_ticks: int | None
    load_before: float | None
    load_after: float | None


@dataclass(frozen=True)
class Burst:
    """What the machine does beside a trial: the rate of TCP over a veth pair, and the lateness of timers meanwhile."""

    rate_bps: float
    lateness_p99_us: int | None


def read_record(folder: Path) -> Fidelity:
    """Return the agent's record in the job folder (TrialError)."""
    try:
        return Fidelity.model_validate_json(Folder(folder).read(FILE, _MOST_BYTES))
    except (OSError, ValidationError) as error:
        raise TrialError(
            f"reading the agent's {FILE}: {printable(str(error)).splitlines()[0]}; run `make setup`"
        ) from error


def facts(record: Fidelity, burst_before: Burst, burst_after: Burst) -> dict[str, Fact]:
    """Return what provenance.json records of a trial's fidelity."""
    return {
        **record.model_dump(),
        "burst_before_bps": round(burst_before.rate_bps),
        "burst_after_bps": round(burst_after.rate_bps),
        "burst_before_lateness_p99_us": burst_before.lateness_p99_us,
        "burst_after_lateness_p99_us": burst_after.lateness_p99_us,
    }


def disturbances(
    record: Fidelity, burst_before: Burst, burst_after: Burst, rate_bps: int | None
) -> list[str]:
    """Return why a trial does not count; `rate_bps`: what its flows can reach together (None: no limit)."""
    return [*_timers(record), *_counters(record), *_bursts(burst_before, burst_after, rate_bps)]


def _timers(record: Fidelity) -> Iterator[str]:
    p99, largest = record.lateness_p99_us, record.lateness_max_us
    if p99 is None or largest is None:
        yield "no timer of the agent fired, so the lateness is unknown"
        return
    if p99 > LATENESS_P99_US:
        yield f"1 of 100 timers fired {_ms(p99)} late or more (bound: {_ms(LATENESS_P99_US)})"
    if largest > LATENESS_MAX_US:
        yield f"a timer fired {_ms(largest)} late (bound: {_ms(LATENESS_MAX_US)})"


def _counters(record: Fidelity) -> Iterator[str]:
    span_us = max(record.span_us, 1)
    if record.cpu_pressure_us is not None and record.cpu_pressure_us > CPU_PRESSURE * span_us:
        share = record.cpu_pressure_us / span_us
        yield f"tasks waited for a processor {share:.0%} of the time (bound: {CPU_PRESSURE:.0%})"
    if record.time_squeezes is not None:
        per_s = record.time_squeezes / (span_us / 1e6)
        if per_s > TIME_SQUEEZES_PER_S:
            yield (
                f"the kernel cut packet processing short {per_s:.0f} times a second "
                f"(bound: {TIME_SQUEEZES_PER_S:.0f})"
            )
    if record.backlog_drops:
        yield (
            f"the queue between namespaces dropped {record.backlog_drops} packets, which no link lost "
            "(net.core.netdev_max_backlog)"
        )
    if record.steal_ticks is not None:
        processors = os.cpu_count() or 1
        share = record.steal_ticks / os.sysconf("SC_CLK_TCK") / (span_us / 1e6) / processors
        if share > STEAL:
            yield f"the hypervisor took {share:.0%} of the processors' time (bound: {STEAL:.0%})"


def _bursts(burst_before: Burst, burst_after: Burst, rate_bps: int | None) -> Iterator[str]:
    least = min(burst_before.rate_bps, burst_after.rate_bps)
    if rate_bps is not None and least < HEADROOM * rate_bps:
        yield (
            f"a burst over a veth pair reached {least / 1e6:.3g} Mbit/s, less than {HEADROOM:.0f} times what the flows "
            f"of the trial can reach ({rate_bps / 1e6:.3g} Mbit/s)"
        )
    if burst_after.rate_bps < DRIFT * burst_before.rate_bps:
        yield (
            f"the burst after the trial reached {burst_after.rate_bps / 1e6:.3g} Mbit/s, and "
            f"{burst_before.rate_bps / 1e6:.3g} Mbit/s before it"
        )


def _ms(us: int) -> str:
    return f"{us / 1000:.3g} ms"
