"""A window or a buffer is full: of its own flow, or of data that waits for another path."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.analysis.wording import size
from plait.explain.cause import Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.changes import BUFFER, LEAST_BUFFER, Remedy, Suspect, host_setting
from plait.explain.facts import FlowFacts

AT_ONCE = (
    "ask for a larger buffer at once (send_buffer, receive_buffer; SO_SNDBUF, SO_RCVBUF), because the kernel kept it "
    "below its maximum"
)
"""The remedy for a buffer that the kernel sizes too small."""


def _largest(facts: FlowFacts, name: str) -> float | None:
    """Return the largest value of a state at any edge of any connection; None if it was not measured."""
    values = np.concatenate([getattr(connection, name) for connection in facts.connections])
    return float(np.nanmax(values)) if np.isfinite(values).any() else None


def _window(facts: FlowFacts, _: Places) -> list[str]:
    window, in_flight = _largest(facts, "window"), _largest(facts, "in_flight")
    if window is None or in_flight is None:
        return []
    needed = _needed_bytes(facts)
    sentences = [f"At most {size(in_flight)} were in flight, and the window was at most {size(window)}."]
    if needed is not None and needed < in_flight:
        sentences.append(
            f"Without queues the paths hold {size(needed)}; the rest waited in queues or at the receiver."
        )
    elif needed is not None:
        sentences.append(
            f"Filling the paths takes {size(needed)} in flight (their total rate times the longest RTT)."
        )
    return sentences


def _needed_bytes(facts: FlowFacts) -> float | None:
    paths = [path for path in facts.paths if path.subflows]
    if not paths or not all(path.capacity_bps for path in paths):
        return None
    longest = max(path.planned.base_rtt_us for path in paths if path.planned is not None)
    return sum(path.capacity_bps or 0 for path in paths) * longest / 8e6


def _out_of_order(facts: FlowFacts, places: Places) -> list[str]:
    return [
        f"Up to {size(_largest(facts, 'out_of_order'))} waited out of order at the receiver.",
        *_window(facts, places),
    ]


def _send_buffer_state(facts: FlowFacts, _: Places) -> list[str]:
    largest = _largest(facts, "send_buffer")
    return [] if largest is None else [f"The send buffer was at most {size(largest)}."]


def _receive_buffer(suspect: Suspect) -> Remedy:
    if suspect.share.reason == "window-scaling":
        return host_setting(suspect, "window scaling", "net.ipv4.tcp_window_scaling", 1)
    if at_once := _socket_buffer(suspect, "receive"):
        return at_once
    size = max(BUFFER * suspect.fill_bytes(), LEAST_BUFFER, 4 * int(suspect.scenario.tcp.receive_buffer_max))
    if suspect.prototype is not None:
        window = (f"{suspect.prototype}.receive_window", f"{size}B")
        return Remedy(f"a receive window of {size / 1e6:.1f} MB", (window,))
    fields: list[tuple[str, Any]] = [
        ("tcp.receive_buffer_max", f"{size}B"),
        *_without_socket_buffer(suspect, "receive_buffer"),
    ]
    return Remedy(f"a receive buffer of up to {size / 1e6:.1f} MB", tuple(fields))


def _both_buffers(suspect: Suspect) -> Remedy:
    """Return a larger receive buffer, and a send buffer of that size if it is smaller: late data fill either."""
    receive, send = _receive_buffer(suspect), _send_buffer(suspect)
    needed = BUFFER * suspect.fill_bytes()
    if suspect.prototype is not None or int(suspect.scenario.tcp.send_buffer_max) >= needed:
        return receive
    return Remedy(f"{receive.description} and {send.description}", (*receive.fields, *send.fields))


def _without_socket_buffer(suspect: Suspect, field: str) -> list[tuple[str, Any]]:
    """Return the fields that remove a socket buffer size from the flow's traffic entry."""
    if suspect.entry is None:
        return []
    number, kind = suspect.entry
    requested = getattr(suspect.scenario.traffic[number].flow, field)
    return [] if requested is None else [(f"traffic.{number}.{kind}.{field}", None)]


def _socket_buffer(suspect: Suspect, word: str) -> Remedy | None:
    """Return a buffer that the socket asks for, if the kernel kept that of the flow too small."""
    if suspect.share.reason != "autotuning" or suspect.prototype is not None:
        return None
    size = max(BUFFER * suspect.fill_bytes(), LEAST_BUFFER)
    return suspect.setting(f"a {word} buffer of {size / 1e6:.1f} MB at once", f"{word}_buffer", f"{size}B")


def _send_buffer(suspect: Suspect) -> Remedy:
    if at_once := _socket_buffer(suspect, "send"):
        return at_once
    size = max(BUFFER * suspect.fill_bytes(), LEAST_BUFFER, 4 * int(suspect.scenario.tcp.send_buffer_max))
    fields: list[tuple[str, Any]] = [
        ("tcp.send_buffer_max", f"{size}B"),
        *_without_socket_buffer(suspect, "send_buffer"),
    ]
    return Remedy(f"a send buffer of up to {size / 1e6:.1f} MB", tuple(fields))


KINDS = (
    Kind(
        Cause.RECEIVE_WINDOW,
        title="receive window",
        clause="the receive window was full",
        next_step="raise tcp.receive_buffer_max (tcp_rmem) or the socket's SO_RCVBUF",
        next_steps={
            "autotuning": AT_ONCE,
            "window-scaling": "set net.ipv4.tcp_window_scaling to 1 on both hosts",
        },
        prototype_step="raise the prototype's receive_window",
        evidence=_window,
        change=_receive_buffer,
        is_marked=True,
        keeps_messages="whole segments",
    ),
    Kind(
        Cause.SEND_BUFFER,
        title="send buffer",
        clause="the send buffer was full of unacknowledged data",
        next_step="raise tcp.send_buffer_max (tcp_wmem) or the socket's SO_SNDBUF",
        next_steps={"autotuning": AT_ONCE},
        evidence=_send_buffer_state,
        change=_send_buffer,
        keeps_messages="partial segments",
    ),
    Kind(
        Cause.HEAD_OF_LINE,
        title="head-of-line blocking",
        clause="data that waited for a slower path filled the receive window or the send buffer",
        next_step="raise the buffers of both sides, make the paths' delays more equal, or leave the slow path out",
        next_steps={
            "queues": "shorten the queue of the slower path's links, whose wait makes up the difference, or raise the "
            "buffers of both sides"
        },
        message_words=(
            "they waited for data on a path with a higher delay",
            "leave that path out (a backup endpoint), or choose another scheduler",
        ),
        evidence=_out_of_order,
        change=_both_buffers,
        is_marked=True,
        keeps_messages="whole segments",
    ),
)
