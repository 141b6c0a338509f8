"""A line as arithmetic: packets of several flows through random delay, a token bucket, a rate and a queue."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from plait.measure.estimates.load import Load
from plait.measure.estimates.packets import PacketTimes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plait.measure.estimates.packets import Times

FULL, SMALL = 1442, 106
OFFSET_US = 3.6e9
"""An hour between the two clocks."""
_BEFORE_US, _SMALL_EVERY_US, _AFTER_US = 1e6, 20_000, 4e6


@dataclass(frozen=True)
class SimulatedLine:
    """One direction of a line."""

    rate_bps: float
    delay_us: float = 10_000
    queue_bytes: float = 100_000
    bucket: tuple[float, float] = (np.inf, np.inf)
    """Burst in bytes, baseline in bit/s."""
    jitter_us: float = 0.0
    fair: bool = False
    """Whether flows with small packets go first, as in fq_codel."""
    loss: float = 0.0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def carry(self, *flows: tuple[Times, int]) -> list[PacketTimes]:
        """Send flows (times of sending, bytes of a frame), and return their packets."""
        sent = np.concatenate([times for times, _ in flows])
        sizes = np.concatenate([np.full(times.size, float(frame)) for times, frame in flows])
        reached = sent + self.delay_us + self.random.normal(0, self.jitter_us, sent.size)
        kept = np.flatnonzero(self.random.random(sent.size) >= self.loss)
        received = np.full(sent.size, np.nan)
        order = kept[np.argsort(reached[kept], kind="stable")]
        first = [order[sizes[order] == SMALL], order[sizes[order] != SMALL]] if self.fair else [order]
        for part in first:
            self._serve(part, reached, sizes, received)
        ends = np.cumsum([0, *(times.size for times, _ in flows)])
        return [
            PacketTimes(times, received[begin:end] + OFFSET_US, frame)
            for (times, frame), begin, end in zip(flows, ends[:-1], ends[1:], strict=True)
        ]

    def _serve(self, order: NDArray[np.int_], reached: Times, sizes: Times, received: Times) -> None:
        """Serve packets in their order; what others take of the rate is left out."""
        burst, baseline = self.bucket
        tokens, filled_us, free_us, waiting = burst, 0.0, 0.0, 0.0
        departures: deque[tuple[float, float]] = deque()
        for number in order:
            now, size = reached[number], sizes[number]
            while departures and departures[0][0] <= now:
                waiting -= departures.popleft()[1]
            if waiting + size > self.queue_bytes:
                continue
            start = max(now, free_us)
            if np.isfinite(burst):
                tokens = min(burst, tokens + (start - filled_us) * baseline / 8e6)
                start += max(0.0, size - tokens) * 8e6 / baseline
                tokens, filled_us = max(tokens, size) - size, start
            free_us = start + size * 8e6 / self.rate_bps
            departures.append((free_us, size))
            waiting += size
            received[number] = free_us

    def load(self, sending_bps: float, lasts_s: float, taken: tuple[float, float] = (0.0, 0.0)) -> Load:
        """Overload the line as `plait lines` does."""
        full = _BEFORE_US + np.arange(0.0, lasts_s * 1e6, FULL * 8e6 / sending_bps)
        small = np.arange(0.0, full[-1] + _AFTER_US, _SMALL_EVERY_US)
        carried, beside = self.carry((full, FULL), (small, SMALL))
        return Load(carried, beside, *taken)
