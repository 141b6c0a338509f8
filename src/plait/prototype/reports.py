"""The reports of a connection to the agent: one JSON object per line, with the columns of the trial's tables."""

from __future__ import annotations

import json
from typing import TextIO

from plait.prototype.path import SendingPath
from plait.prototype.receiver import Receiver
from plait.prototype.sender import Sender


def microseconds(seconds: float) -> int:
    """Return a time in whole us."""
    return round(seconds * 1e6)


class Reporter:
    """Writes reports to a stream. It keeps the numbers of subflows: the order in which paths joined."""

    def __init__(self, stream: TextIO, ports: list[int]) -> None:
        self._stream = stream
        self._ports = ports
        self._joined: list[int] = []

    def event(self, kind: str, now: float, **values: int | bool) -> None:
        """Report an event of the flow."""
        self._write({"report": kind, "t_us": microseconds(now), **values})

    def message(self, sent: float | None, received: float | None) -> None:
        """Report a message: when it was due, and when it arrived. None if it did not."""
        times = {"sent_us": sent, "received_us": received}
        moments = {name: None if time is None else microseconds(time) for name, time in times.items()}
        self._write({"report": "message", **moments})

    def joins(self, sender: Sender, now: float) -> None:
        """Report the paths that have been established since the last call."""
        if len(self._joined) == len(sender.paths):
            return
        for path in sender.paths:
            if path.established and path.index not in self._joined:
                if not self._joined:
                    self.event("connected", now)
                self._joined.append(path.index)
                self.event("joined", now, path=path.index, local_port=self._ports[path.index])

    def sample(self, sender: Sender, receiver: Receiver, now: float) -> None:
        """Report both sides of the connection and of each path."""
        self.sample_sender(sender, now)
        self.sample_receiver(receiver, now)

    def sample_sender(self, sender: Sender, now: float) -> None:
        """Report the sending side of the connection and of each path."""
        row = {
            "subflows": len(self._joined),
            "sent_bytes": sender.taken,
            "retransmitted_bytes": sum(path.resent_bytes for path in sender.paths),
            "acked_bytes": sender.acked,
            "received_bytes": 0,
            "send_window_bytes": sender.window_left,
            "unsent_bytes": sender.unsent,
        }
        self._write({"report": "side", "t_us": microseconds(now), "side": "client", "row": row})
        for number, index in enumerate(self._joined):
            self._path("client", index, now, {"subflow": number, **_sending(sender, sender.paths[index])})

    def sample_receiver(self, receiver: Receiver, now: float) -> None:
        """Report the receiving side of the connection and of each path."""
        buffer = receiver.buffer
        row = {
            "subflows": len(self._joined),
            "sent_bytes": 0,
            "received_bytes": buffer.next,
            "receive_window_bytes": buffer.window,
            "receive_memory_bytes": buffer.held_bytes,
        }
        self._write({"report": "side", "t_us": microseconds(now), "side": "server", "row": row})
        for number, index in enumerate(self._joined):
            arrivals = receiver.paths[index]
            got = {"received_bytes": arrivals.bytes, "out_of_order_segments": arrivals.out_of_order}
            self._path("server", index, now, {"subflow": number, "sent_bytes": 0, **got})

    def _path(self, side: str, index: int, now: float, row: dict[str, object]) -> None:
        place = {"path": index, "local_port": self._ports[index]}
        self._write({"report": "path", "t_us": microseconds(now), "side": side, **place, "row": row})

    def _write(self, report: dict[str, object]) -> None:
        self._stream.write(json.dumps(report, separators=(",", ":")) + "\n")

    def flush(self) -> None:
        """Pass all reports on."""
        self._stream.flush()


def _sending(sender: Sender, path: SendingPath) -> dict[str, object]:
    """Return what the sending side of a path has for the table of subflows."""
    return {
        "state": "ESTABLISHED" if path.alive else "STALE",
        "stale": not path.alive,
        "rtt_us": microseconds(path.srtt),
        "rttvar_us": microseconds(path.rttvar),
        "min_rtt_us": None if path.min_rtt is None else microseconds(path.min_rtt),
        "cwnd_segments": int(path.cwnd),
        "ssthresh_segments": None if path.ssthresh is None else int(path.ssthresh),
        "mss_bytes": path.mss,
        "sent_bytes": path.sent_bytes,
        "retransmitted_bytes": path.resent_bytes,
        "retransmitted_segments": path.resent_segments,
        "acked_bytes": path.acked_bytes,
        "received_bytes": 0,
        "unacked_segments": path.in_flight,
        "lost_segments": path.lost_segments,
        "notsent_bytes": path.backlog,
        "send_window_bytes": sender.window,
        "delivery_rate_bps": None if path.delivery_rate is None else round(path.delivery_rate),
        "congestion_state": "Recovery" if path.recovering else "Open",
    }
