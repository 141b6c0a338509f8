"""The stable names of the causes that several modules speak of; the folder `causes` has everything else of each."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

Array = np.ndarray
Places = tuple[str, ...]
"""The link directions, paths or hosts that a cause affects."""


class Cause(StrEnum):
    """A cause by its name, which is a contract for scripts. A cause that only its own rule finds has none here."""

    AT_CAPACITY = "at-capacity"
    ON_TIME = "on-time"
    SENDER_IDLE = "sender-idle"
    RECEIVE_WINDOW = "receive-window"
    SEND_BUFFER = "send-buffer"
    HEAD_OF_LINE = "head-of-line"
    RECEIVE_MEMORY = "receive-memory"
    MEMORY_PRESSURE = "memory-pressure"
    LOSS_RECOVERY = "loss-recovery"
    QUEUE_FULL = "queue-full"
    SOCKET_BUFFER = "socket-buffer"
    TOO_SHORT = "too-short"
    LAST_BYTES = "last-bytes"
    INITIAL_PATH_POOR = "initial-path-poor"
    SUBFLOW_LATE = "subflow-late"
    SUBFLOW_NEVER = "subflow-never"
    SUBFLOW_CLOSED = "subflow-closed"
    BACKUP = "backup"
    SCHEDULER_IDLE_PATH = "scheduler-idle-path"
    DUPLICATES = "duplicates"
    SHARED_BOTTLENECK = "shared-bottleneck"
    COMPETING_TRAFFIC = "competing-traffic"
    BUCKET_EMPTY = "bucket-empty"
    PATH_DOWN = "path-down"
    RATE_CHANGED = "rate-changed"
    RATE_TOO_HIGH = "rate-too-high"
    JITTER = "jitter"
    NOT_KNOWN = "not-known"


WINDOWS = frozenset(
    {Cause.RECEIVE_WINDOW, Cause.HEAD_OF_LINE, Cause.SCHEDULER_IDLE_PATH, Cause.SEND_BUFFER, Cause.NOT_KNOWN}
)
"""The causes that a longer RTT makes worse, and that a sender shows while its data cannot leave anyway."""
SLOWED = frozenset({*WINDOWS, Cause.TOO_SHORT, Cause.LOSS_RECOVERY})
"""The causes that a path may show while its ACKs come late."""
FILLED = frozenset({*SLOWED, Cause.QUEUE_FULL})
"""The causes that a path may show while a link of it is full."""
