"""Congestion control of the paths of a connection: Reno on each, or coupled by LIA or OLIA.

Windows are in segments and may have fractions. A window grows only while it limits its path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plait.prototype.path import LEAST_WINDOW, SendingPath


class Reno:
    """Slow start and congestion avoidance of each path on its own (RFC 5681, RFC 9002 section 7)."""

    def __init__(self, paths: Sequence[SendingPath]) -> None:
        self.paths = paths

    def on_ack(self, path: SendingPath, segments: int, in_flight: int) -> None:
        """Grow the window of `path` for newly acknowledged segments; `in_flight` is the number before the ACK."""
        slow_start = path.ssthresh is None or path.cwnd < path.ssthresh
        if path.recovering or in_flight * (2 if slow_start else 1) < int(path.cwnd):
            return
        if slow_start:
            path.cwnd += segments
            if path.ssthresh is not None:
                path.cwnd = min(path.cwnd, path.ssthresh)
        else:
            path.cwnd += self.increase(path, segments)

    def increase(self, path: SendingPath, segments: int) -> float:
        """Return the growth of a window in congestion avoidance."""
        return segments / path.cwnd

    def on_loss(self, path: SendingPath, sent: float, now: float) -> None:
        """Halve the window, once for all packets that were sent before now."""
        if sent <= path.recovery_start:
            return
        path.recovery_start, path.recovering = now, True
        path.ssthresh = max(path.cwnd / 2, LEAST_WINDOW)
        path.cwnd = path.ssthresh

    def on_timeout(self, path: SendingPath) -> None:
        """Start again from the least window."""
        path.ssthresh = max(path.cwnd / 2, LEAST_WINDOW)
        path.cwnd = LEAST_WINDOW


class _Lia(Reno):
    """The linked increases algorithm (RFC 6356, section 3), for equal segment sizes."""

    def increase(self, path: SendingPath, segments: int) -> float:
        """Return min(alpha * acked / total, acked / cwnd)."""
        live = [each for each in self.paths if each.established]
        total = sum(each.cwnd for each in live)
        alpha = total * max(each.cwnd / each.srtt**2 for each in live)
        alpha /= sum(each.cwnd / each.srtt for each in live) ** 2
        return min(alpha * segments / total, segments / path.cwnd)


class _Olia(Reno):
    """The opportunistic linked increases algorithm (draft-khalili-mptcp-congestion-control-05)."""

    def __init__(self, paths: Sequence[SendingPath]) -> None:
        super().__init__(paths)
        self._since = dict.fromkeys(paths, 0)
        self._between = dict.fromkeys(paths, 0)

    def on_ack(self, path: SendingPath, segments: int, in_flight: int) -> None:
        """Count the bytes between losses, and grow the window."""
        self._since[path] += segments
        super().on_ack(path, segments, in_flight)

    def on_loss(self, path: SendingPath, sent: float, now: float) -> None:
        """Begin another interval between losses."""
        if sent > path.recovery_start:
            self._between[path], self._since[path] = self._since[path], 0
        super().on_loss(path, sent, now)

    def increase(self, path: SendingPath, segments: int) -> float:
        """Return the draft's increase; the best paths are those of the largest l^2 / rtt."""
        live = [member for member in self.paths if member.established]
        quality = {
            member: max(self._since[member], self._between[member]) ** 2 / member.srtt for member in live
        }
        best = {member for member in live if quality[member] == max(quality.values())}
        largest = {member for member in live if member.cwnd == max(other.cwnd for other in live)}
        collected = best - largest
        alpha = 0.0
        if collected and path in collected:
            alpha = 1 / (len(live) * len(collected))
        elif collected and path in largest:
            alpha = -1 / (len(live) * len(largest))
        coupled = (path.cwnd / path.srtt**2) / sum(member.cwnd / member.srtt for member in live) ** 2
        return max(segments * (coupled + alpha / path.cwnd), 1.0 - path.cwnd)


COUPLINGS: dict[str, Callable[[Sequence[SendingPath]], Reno]] = {"none": Reno, "lia": _Lia, "olia": _Olia}
