"""The packets of a flow, with the times that both hosts saw. Estimates start from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]


@dataclass(frozen=True)
class PacketTimes:
    """The packets of one flow, in the order of their numbers: when each was sent and when it arrived (NaN: lost).

    Times are in us, those of sending and of arrival on the clocks of two hosts, whose offset is unknown. Differences on
    one clock are exact, and the sum of the delays of both directions has no offset.
    """

    sent_us: Times
    received_us: Times
    frame_bytes: int

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Which packets arrived."""
        return ~np.isnan(self.received_us)

    @property
    def delays_us(self) -> Times:
        """The delay of each packet that arrived, plus the unknown offset."""
        return np.asarray((self.received_us - self.sent_us)[self.arrived])

    def without_first(self, count: int) -> PacketTimes:
        """Return the packets without the first `count`."""
        return PacketTimes(self.sent_us[count:], self.received_us[count:], self.frame_bytes)

    def sent_between(self, begin_us: float, end_us: float) -> PacketTimes:
        """Return the packets that were sent from `begin_us` on and before `end_us`."""
        inside = (self.sent_us >= begin_us) & (self.sent_us < end_us)
        return PacketTimes(self.sent_us[inside], self.received_us[inside], self.frame_bytes)

    def arrivals_us(self) -> Times:
        """The times of arrival, in order."""
        return np.sort(self.received_us[self.arrived])
