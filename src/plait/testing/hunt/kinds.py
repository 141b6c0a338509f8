"""The kinds of events of a hunt, as data for both its sides. It needs the standard library alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EventKind:
    """What an event happens to, how often it is drawn, and what it allows to go wrong."""

    connection: bool = False
    """It happens to a connection."""
    link: bool = False
    """It happens to a link, or to something on it."""
    weight: int = 1
    lasts: bool = False
    """It lasts for its `for_ms`."""
    calm: bool = False
    """After it, each endpoint still has its subflow, and no connection may fail."""
    loses: bool = False
    """Packets may be lost."""
    middlebox: tuple[str, ...] = ()
    """Rules of nft(8) for what arrives over the link, at both ends."""


KINDS = {
    "close": EventKind(connection=True, weight=2),
    "reset": EventKind(connection=True),
    "shutdown": EventKind(connection=True),
    "share": EventKind(connection=True, lasts=True, calm=True),
    "destroy": EventKind(connection=True, link=True, weight=3, loses=True),
    "link_down": EventKind(link=True, weight=2, lasts=True, loses=True),
    "unplug": EventKind(link=True, weight=2, loses=True),
    "strip": EventKind(link=True, lasts=True, loses=True, middlebox=("reset tcp option mptcp",)),
    "rewrite": EventKind(
        # a byte at this place is payload: the longest TCP header has 60 bytes
        link=True,
        lasts=True,
        loses=True,
        middlebox=("meta length > 400 limit rate 5/second burst 1 packets @th,800,8 set 0x55",),
    ),
    "lose_announcements": EventKind(
        link=True, lasts=True, calm=True, middlebox=("tcp option mptcp subtype 3 drop",)
    ),
    "backup": EventKind(link=True, lasts=True, calm=True),
    "remove_endpoint": EventKind(link=True, calm=True),
    "add_endpoint": EventKind(link=True, calm=True),
    "replace_endpoint": EventKind(link=True, lasts=True, calm=True),
    "announce": EventKind(link=True, calm=True),
    "withdraw": EventKind(link=True, calm=True),
    "flush": EventKind(calm=True),
}
_SMALL_BYTES = 3000
"""A stream of this size does not fill a queue for long."""


def resets_arrive(case: dict[str, Any], apart_from: str = "") -> bool:
    """Return whether nothing in the case, apart from one kind of events, can lose a reset, also no full queue."""
    sizes = [entry[way] for entry in case["connections"] for way in ("up_bytes", "down_bytes")]
    return (
        not any(KINDS[event["do"]].loses for event in case["events"] if event["do"] != apart_from)
        and not any(link["loss_percent"] for link in case["links"])
        and max(sizes) <= _SMALL_BYTES
    )
