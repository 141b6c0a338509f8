"""How long a further subflow may take to be established, from the round-trip times of the paths."""

from __future__ import annotations

from plait.plan.model.plan import Flow, Path

JOIN_ROUND_TRIPS = 3
"""A further subflow sends data after this many round trips of its own path: ARP, MP_JOIN's SYN, ACK and fourth ACK."""
GRACE_US = 20_000
"""A join may take this much longer without being late, because of timers and a first ARP."""
POOR = 2.0
"""An initial path is poor for a join when its RTT is at least this many times that of the joined path."""


def patience_us(initial: Path | None, path: Path | None) -> float:
    """Return how long after the connection's handshake a further subflow may be established without being late."""
    initial_rtt = initial.base_rtt_us if initial is not None else 0.0
    own_rtt = path.base_rtt_us if path is not None else 0.0
    return 2 * initial_rtt + JOIN_ROUND_TRIPS * own_rtt + GRACE_US


def poor_initial(initial: Path | None, path: Path | None) -> bool:
    """Return whether the initial path's RTT alone delays a join over `path`."""
    if initial is None or path is None:
        return False
    return initial.base_rtt_us >= max(POOR * path.base_rtt_us, 2 * GRACE_US)


def had_time_to_join(flow: Flow, path: Path | None, connected_us: int | None, end_us: int | None) -> bool:
    """Return whether a flow lasted long enough for a subflow over `path`; true if a time is not known."""
    if connected_us is None or end_us is None:
        return True
    return end_us - connected_us >= patience_us(flow.paths[0] if flow.paths else None, path)
