"""The limits of the hosts file: what hosts have sent, and what they may still send."""

from __future__ import annotations

import math

from plait.errors import TrialError
from plait.hosts.model import Limits
from plait.plan.model.plan import Plan

_RAISE = "raise limits.{limit} in the hosts file, or --{limit} of `plait lines`, if your lines can bear it"

_AROUND_US = 2_000_000
"""Time around the flows of a trial, in which hosts start and end together and send next to nothing."""


class Spent:
    """An upper bound on the bytes that each host has sent in the trials of one command."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes = 0
        self._us = 0

    def check(self, plan: Plan) -> int:
        """Return the time in us that a trial of `plan` may last.

        Raises TrialError if the limits leave no room for what the plan certainly sends.
        """
        left_us = self._limits.time.us - self._us
        if left_us < 1_000_000:
            raise TrialError(
                f"the trials have used the {self._limits.time} of limits.time; raise it in the hosts file if your "
                "lines can bear it"
            )
        needed = sum(flow.application.certain_bytes for flow in plan.flows)
        if needed > self._left_bytes():
            raise TrialError(
                f"the trial sends at least {needed} bytes, and {self._left_bytes()} of limits.bytes are left; "
                + _RAISE.format(limit="bytes")
            )
        for flow in plan.flows:
            rate = flow.application.certain_bps
            if rate > self._limits.rate:
                raise TrialError(
                    f"flow {flow.name} sends at {rate:.0f} bit/s, more than limits.rate ({self._limits.rate}); "
                    + _RAISE.format(limit="rate")
                )
        return left_us

    def _left_bytes(self) -> int:
        return max(0, int(self._limits.bytes) - self._bytes)

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments by which an agent ends itself at the limits."""
        return ("--most-bytes", str(self._left_bytes()), "--most-rate", str(int(self._limits.rate)))

    def add(self, plan: Plan, sent_bytes: int | None, ended_us: int | None, lasted_s: float) -> None:
        """Count a trial of `plan`, in which the connections of a host sent at most `sent_bytes`.

        Hosts may lie about both numbers of theirs: `ended_us`, when their flows ended, counts only as far as it agrees
        with plait's own clock, on which the trial lasted `lasted_s`.
        """
        most_us = math.ceil(lasted_s * 1e6)
        self.add_trial(
            self.most_bytes(sent_bytes, lasted_s)
            + sum(flow.application.certain_bytes for flow in plan.flows if flow.kind == "udp"),
            min(most_us, max(ended_us or 0, most_us - _AROUND_US)),
        )

    def add_failed(self, sent_bytes: int | None, lasted_s: float) -> None:
        """Count a trial that failed after `lasted_s`."""
        self.add_trial(self.most_bytes(sent_bytes, lasted_s), math.ceil(lasted_s * 1e6))

    def most_bytes(self, sent_bytes: int | None, lasted_s: float) -> int:
        """Return what hosts report to have sent, or, if one of them did not, what the rate allows in `lasted_s`."""
        return math.ceil(float(self._limits.rate) * lasted_s / 8) if sent_bytes is None else sent_bytes

    def add_trial(self, sent_bytes: int, us: int) -> None:
        """Count a trial that sent `sent_bytes` and lasted `us`."""
        self._bytes += sent_bytes
        self._us += us
