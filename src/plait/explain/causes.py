"""The causes by their stable names, with the text and the remedy of each.

The names are a contract: scripts and `docs/reference/explain.md` use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """What a flow spends its time on."""

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
    REORDERING = "reordering"
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
    ACK_PATH = "ack-path"
    BUCKET_EMPTY = "bucket-empty"
    PATH_DOWN = "path-down"
    RATE_CHANGED = "rate-changed"
    RATE_TOO_HIGH = "rate-too-high"
    JITTER = "jitter"
    NAGLE = "nagle"
    NOT_KNOWN = "not-known"


@dataclass(frozen=True)
class CauseText:
    """The text of a cause."""

    title: str
    """A short label, for tables and figures."""
    clause: str
    """A main clause that completes "The flow was limited by NAME: ..."."""
    remedy: str
    """What to do about it, as an imperative without a full stop; empty if there is nothing to do."""


CAUSES: dict[Cause, CauseText] = {
    Cause.AT_CAPACITY: CauseText("at capacity", "the links were full", ""),
    Cause.ON_TIME: CauseText("on time", "the messages were as fast as the network allows", ""),
    Cause.SENDER_IDLE: CauseText(
        "nothing to send",
        "the application had nothing to send",
        "look at the application: its pace, its pauses, and what it waits for (disk, peer)",
    ),
    Cause.RECEIVE_WINDOW: CauseText(
        "receive window",
        "the receive window was full",
        "raise tcp.receive_buffer_max (tcp_rmem) or the socket's SO_RCVBUF",
    ),
    Cause.SEND_BUFFER: CauseText(
        "send buffer",
        "the send buffer was full of unacknowledged data",
        "raise tcp.send_buffer_max (tcp_wmem) or the socket's SO_SNDBUF",
    ),
    Cause.HEAD_OF_LINE: CauseText(
        "head-of-line blocking",
        "data that waited for a slower path filled the receive window or the send buffer",
        "raise the buffers of both sides, make the paths' delays more equal, or leave the slow path out",
    ),
    Cause.RECEIVE_MEMORY: CauseText(
        "receiver's memory full",
        "data out of order used up the receive buffer, in memory, so MPTCP left the data that was missing in a subflow",
        "ask for a larger buffer at once (receive_buffer; SO_RCVBUF); see docs/explanation/small-messages.md",
    ),
    Cause.MEMORY_PRESSURE: CauseText(
        "memory pressure",
        "TCP used up its memory on a host, so the kernel kept windows small and dropped received data",
        "reduce the buffers, or give TCP more memory (net.ipv4.tcp_mem); see docs/explanation/large-buffers.md",
    ),
    Cause.LOSS_RECOVERY: CauseText(
        "loss",
        "packet loss kept the congestion window small",
        "repair the lossy link, or choose a congestion control that distinguishes loss from congestion (bbr)",
    ),
    Cause.QUEUE_FULL: CauseText(
        "queue too short",
        "a queue overflowed while its link was not full",
        "give that link a longer queue (one bandwidth-delay product)",
    ),
    Cause.REORDERING: CauseText(
        "reordering",
        "packets overtook others on a link, and TCP took the late ones for lost",
        "keep the packets of a flow in order on that link",
    ),
    Cause.SOCKET_BUFFER: CauseText(
        "socket buffer full",
        "the buffer of the receiving socket was full",
        "let the program read faster, or ask for a larger buffer (SO_RCVBUF; iperf3 -w)",
    ),
    Cause.TOO_SHORT: CauseText(
        "start-up",
        "the connection was still starting (handshake, growing congestion window)",
        "send more data over one connection; the start weighs less in a longer transfer",
    ),
    Cause.LAST_BYTES: CauseText(
        "last bytes",
        "all data was sent, and the last bytes were in flight on another path",
        "use a scheduler that considers delays (ecf, blest), or a longer transfer",
    ),
    Cause.INITIAL_PATH_POOR: CauseText(
        "slow initial path",
        "the handshakes had to use an initial path with a far higher RTT than another path",
        "start on the other path (`via`)",
    ),
    Cause.SUBFLOW_LATE: CauseText(
        "late subflow",
        "a subflow was established late",
        "look at the events during its handshake: TCP sends a lost SYN again after a second or more",
    ),
    Cause.SUBFLOW_NEVER: CauseText(
        "missing subflow",
        "a subflow was never established",
        "remove the reason; `plait lint` reports what the plan lacks",
    ),
    Cause.SUBFLOW_CLOSED: CauseText(
        "closed subflow",
        "a subflow closed before the end",
        "see `error` and `reset_reason` of its events",
    ),
    Cause.BACKUP: CauseText(
        "backup",
        "a path is a backup, which carries data only while no other path works",
        "clear the flag `backup` of its endpoint if the path should always carry data",
    ),
    Cause.SCHEDULER_IDLE_PATH: CauseText(
        "scheduler",
        "the scheduler left a path idle although data was waiting",
        "choose another mptcp.scheduler",
    ),
    Cause.DUPLICATES: CauseText(
        "duplicates",
        "a path carried copies of data that another path carried as well",
        "choose a scheduler that sends no copies",
    ),
    Cause.SHARED_BOTTLENECK: CauseText(
        "shared bottleneck",
        "the flow's own paths share a full link",
        "give each path its own links; a further subflow over the same link gains nothing",
    ),
    Cause.COMPETING_TRAFFIC: CauseText(
        "competing traffic",
        "other flows used a part of a full link",
        "look at what else crosses that link",
    ),
    Cause.ACK_PATH: CauseText(
        "slow return path",
        "ACKs waited or were dropped at a full link of the return path",
        "raise the rate of the return path, or look at what else crosses it",
    ),
    Cause.BUCKET_EMPTY: CauseText(
        "empty token bucket",
        "a token bucket was empty and passed only its baseline",
        "wait until the bucket is full again, or raise its baseline",
    ),
    Cause.PATH_DOWN: CauseText(
        "path down",
        "a link of the path was down, or the path had not yet recovered from it",
        "compare with the scenario's `events`",
    ),
    Cause.RATE_CHANGED: CauseText(
        "slower link",
        "a full link had become slower than at the start",
        "compare with the scenario's `events` and traces",
    ),
    Cause.RATE_TOO_HIGH: CauseText(
        "rate too high",
        "the source sends more than a link of its path carries",
        "send less, or give that link a higher rate",
    ),
    Cause.JITTER: CauseText(
        "jitter",
        "the delay of a link varies",
        "reduce the jitter, or use a receiver that absorbs it (a jitter buffer)",
    ),
    Cause.NAGLE: CauseText(
        "Nagle", "the last segment of a message waited for an ACK (Nagle's algorithm)", "set nodelay"
    ),
    Cause.NOT_KNOWN: CauseText(
        "unknown", "the samples do not show why", "capture packets, or sample more often"
    ),
}

HARMLESS = frozenset({Cause.AT_CAPACITY, Cause.ON_TIME})
"""Causes that make no flow slower."""

_OF_PROTOTYPES = {
    Cause.RECEIVE_WINDOW: "raise the prototype's receive_window",
    Cause.LOSS_RECOVERY: "repair the lossy link, or use a scheduler that sends parities (parity)",
    Cause.SCHEDULER_IDLE_PATH: "choose another scheduler of the prototype",
}
"""The remedies that differ for a prototype, which has its own window, congestion control and scheduler."""


_BY_REASON = {
    "add-addr-lost": "set net.mptcp.add_addr_timeout to a few seconds on the server (`sysctls`), or find what drops "
    "packets on the initial path",
    "setting-changed": "compare with the scenario's `events`",
    "link-down": "compare with the scenario's `events`",
    "autotuning": "ask for a larger buffer at once (send_buffer, receive_buffer; SO_SNDBUF, SO_RCVBUF), because the "
    "kernel kept it below its maximum",
    "window-scaling": "set net.ipv4.tcp_window_scaling to 1 on both hosts",
    "queues": "shorten the queue of the slower path's links, whose wait makes up the difference, or raise the "
    "buffers of both sides",
    "no-answer": "find what drops its packets: a cut or lossy link, a firewall, or no way back",
    "link-down-at-start": "add the endpoint when the link comes up (`ip mptcp endpoint add`; `events`: `endpoints`), "
    "because Linux does not try again",
    "fallback": "find what removes MPTCP's options from the handshake: a middlebox, or a peer without MPTCP",
    "mptcp-off": "set net.mptcp.enabled to 1 on both hosts",
    "join-refused": "find what refuses it: a middlebox that strips MPTCP's options, or no listener at the address",
    "limit": "raise the limits under mptcp.limits (`subflows`, `add_addr_accepted`)",
    "no-add-addr": "let the server announce the address: an endpoint with flags: [signal]",
    "no-endpoint": "give the client an endpoint with flags: [subflow] for the address",
}
"""The remedies that depend on the reason of a cause."""


def next_step(cause: Cause, transport: str, reason: str | None = None) -> str:
    """Return what to do about a cause in a flow of this transport; empty if nothing."""
    if reason in _BY_REASON:
        return _BY_REASON[reason]
    if transport == "prototype" and cause in _OF_PROTOTYPES:
        return _OF_PROTOTYPES[cause]
    return CAUSES[cause].remedy
