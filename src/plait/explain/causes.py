"""The causes by their stable names: what each means in a few words, and whether it is one at all.

The names are a contract: scripts and `docs/reference/explain.md` use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Where a flow's time goes."""

    AT_CAPACITY = "at-capacity"
    ON_TIME = "on-time"
    SENDER_IDLE = "sender-idle"
    RECEIVE_WINDOW = "receive-window"
    SEND_BUFFER = "send-buffer"
    HEAD_OF_LINE = "head-of-line"
    MEMORY_PRESSURE = "memory-pressure"
    LOSS_RECOVERY = "loss-recovery"
    QUEUE_FULL = "queue-full"
    TOO_SHORT = "too-short"
    LAST_BYTES = "last-bytes"
    INITIAL_PATH_POOR = "initial-path-poor"
    SUBFLOW_LATE = "subflow-late"
    SUBFLOW_NEVER = "subflow-never"
    SUBFLOW_CLOSED = "subflow-closed"
    SCHEDULER_IDLE_PATH = "scheduler-idle-path"
    DUPLICATES = "duplicates"
    SHARED_BOTTLENECK = "shared-bottleneck"
    COMPETING_TRAFFIC = "competing-traffic"
    BUCKET_EMPTY = "bucket-empty"
    PATH_DOWN = "path-down"
    RATE_CHANGED = "rate-changed"
    RATE_TOO_HIGH = "rate-too-high"
    JITTER = "jitter"
    NAGLE = "nagle"
    NOT_KNOWN = "not-known"


@dataclass(frozen=True)
class CauseText:
    """What there is to say of a cause."""

    title: str
    """In a table."""
    clause: str
    """In a sentence after "it was held back because ..."."""
    remedy: str
    """What to do about it, in a line."""


CAUSES: dict[Cause, CauseText] = {
    Cause.AT_CAPACITY: CauseText("at capacity", "its links carried what they can", ""),
    Cause.ON_TIME: CauseText("on time", "its messages took what the network takes", ""),
    Cause.SENDER_IDLE: CauseText(
        "nothing to send",
        "the application had nothing to send",
        "look at the application: its pace, its pauses, its reads of disk or peer",
    ),
    Cause.RECEIVE_WINDOW: CauseText(
        "receive window",
        "the receiver's window was full",
        "raise tcp.receive_buffer_max (tcp_rmem), or the socket's SO_RCVBUF",
    ),
    Cause.SEND_BUFFER: CauseText(
        "send buffer",
        "the send buffer held too little",
        "raise tcp.send_buffer_max (tcp_wmem), or the socket's SO_SNDBUF",
    ),
    Cause.HEAD_OF_LINE: CauseText(
        "head-of-line waiting",
        "the window was full of data that waited at the receiver for the slower path",
        "raise the receive buffer, level the paths' delays, or leave the slow path out",
    ),
    Cause.MEMORY_PRESSURE: CauseText(
        "memory pressure",
        "the memory for all of TCP was used up: windows were kept small, and data that had arrived were dropped",
        "allow smaller buffers, or more memory (net.ipv4.tcp_mem); see docs/explanation/large-buffers.md",
    ),
    Cause.LOSS_RECOVERY: CauseText(
        "loss",
        "packets were lost on the way, and the congestion window stayed small",
        "mend the lossy link, or choose a congestion control that tells loss from congestion (bbr)",
    ),
    Cause.QUEUE_FULL: CauseText(
        "queue too short",
        "a queue overflowed while its link was not full",
        "give that link a longer queue (one bandwidth-delay product)",
    ),
    Cause.TOO_SHORT: CauseText(
        "beginning",
        "it was still beginning: handshake, and a window that had yet to grow",
        "send more over one connection; a longer transfer gains more",
    ),
    Cause.LAST_BYTES: CauseText(
        "last bytes",
        "everything was sent, and the last bytes were still on their way on another path",
        "a scheduler that knows delays (ecf, blest), or a longer transfer",
    ),
    Cause.INITIAL_PATH_POOR: CauseText(
        "poor initial path",
        "further subflows had to wait for the handshake on a far slower initial path",
        "start on the other path (`via`)",
    ),
    Cause.SUBFLOW_LATE: CauseText(
        "subflow late",
        "a subflow came late",
        "look at the events around its handshake: a lost SYN waits a second and more",
    ),
    Cause.SUBFLOW_NEVER: CauseText(
        "subflow missing",
        "a subflow never came",
        "see the reason; `plait lint` tells what the plan lacks",
    ),
    Cause.SUBFLOW_CLOSED: CauseText(
        "subflow closed",
        "a subflow closed before the end",
        "see error and reset_reason of its events",
    ),
    Cause.SCHEDULER_IDLE_PATH: CauseText(
        "scheduler",
        "the scheduler left a path idle although data waited",
        "choose another mptcp.scheduler",
    ),
    Cause.DUPLICATES: CauseText(
        "copies",
        "links carried copies of data that others carried as well",
        "choose a scheduler that sends no copies",
    ),
    Cause.SHARED_BOTTLENECK: CauseText(
        "shared bottleneck",
        "its paths share a link that is full",
        "give the paths links of their own; a further subflow over the same link brings nothing",
    ),
    Cause.COMPETING_TRAFFIC: CauseText(
        "other traffic",
        "other flows took their part of a full link",
        "look at what else crosses that link",
    ),
    Cause.BUCKET_EMPTY: CauseText(
        "bucket empty",
        "a token bucket was empty, and only its baseline flowed",
        "wait until it is full again, or buy a higher baseline",
    ),
    Cause.PATH_DOWN: CauseText("path down", "a link of the path was down", "see the events"),
    Cause.RATE_CHANGED: CauseText(
        "slower link", "a link had become slower than it was at first", "see the events"
    ),
    Cause.RATE_TOO_HIGH: CauseText(
        "rate too high",
        "it sends more than a link of its path carries",
        "send less, or give that link a higher rate",
    ),
    Cause.JITTER: CauseText(
        "jitter",
        "the delay of a link varies",
        "less jitter there, or a receiver that waits for it (a jitter buffer)",
    ),
    Cause.NAGLE: CauseText(
        "Nagle", "the last part of a message waited for an acknowledgement (Nagle's algorithm)", "set nodelay"
    ),
    Cause.NOT_KNOWN: CauseText(
        "not known", "the evidence does not decide why", "capture packets, sample finer"
    ),
}

HARMLESS = frozenset({Cause.AT_CAPACITY, Cause.ON_TIME})
"""No reason to be slower."""
