"""The loops of the two ends of a connection between two hosts. Each reports what it can measure with its own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.prototype.apart.farewell import Farewell, is_request
from plait.prototype.packets import CLOSE, CLOSED, Open, encode_open

if TYPE_CHECKING:
    from plait.prototype.apart.relay import RelayedPaths
    from plait.prototype.application import Application
    from plait.prototype.receiver import Receiver
    from plait.prototype.reports import Reporter
    from plait.prototype.sender import Sender

QUIET = 10.0
"""Seconds for which a receiver that has everything waits for CLOSE."""


class Samples:
    """When the next sample is due: at the multiples of the interval."""

    def __init__(self, interval: float, now: float) -> None:
        self._interval = interval
        self.due = self._after(now)

    def _after(self, now: float) -> float:
        return (now // self._interval + 1) * self._interval

    def is_due(self, now: float) -> bool:
        """Return whether a sample is due, and plan the next one if so."""
        if now < self.due:
            return False
        self.due = self._after(now)
        return True


class SendingEnd:
    """The end that sends: it ends when everything is acknowledged, or after its duration."""

    def __init__(self, sender: Sender, application: Application, reporter: Reporter, connection: int) -> None:
        self._sender, self._application, self._reporter = sender, application, reporter
        self._connection = connection
        self._reported = 0

    def run(self, paths: RelayedPaths, interval: float) -> None:
        """Run the connection to its end, and sample it every `interval` seconds."""
        sender, application, reporter = self._sender, self._application, self._reporter
        now = paths.now()
        reporter.event("started", now)
        sender.open(now)
        application.begin(now)
        samples = Samples(interval, now)
        while (ended := self._ended(now)) is None:
            if sender.connected_at is not None:
                sender.written = application.written(now, sender.acked)
            paths.send(sender.datagrams_to_send(now))
            times = [sender.next_timeout(), application.next_time(), samples.due, application.end_time()]
            now = paths.receive(min(time for time in times if time is not None), sender.receive)
            reporter.joins(sender, now)
            if samples.is_due(now):
                reporter.sample_sender(sender, now)
                self._report_messages()
                reporter.flush()
        reporter.sample_sender(sender, now)
        self._report_messages()
        self._part(paths, now)
        reporter.event("ended", ended, sent_bytes=sender.taken, completed=True)
        reporter.flush()

    def _ended(self, now: float) -> float | None:
        """Return when the connection ended; None if it goes on."""
        total, end = self._application.total, self._application.end_time()
        if total is not None:
            return now if self._sender.acked >= total else None
        return end if end is not None and now >= end else None

    def _report_messages(self) -> None:
        for due in self._application.due[self._reported :]:
            self._reporter.message(due, None)
        self._reported = len(self._application.due)

    def _part(self, paths: RelayedPaths, now: float) -> None:
        """Let the receiver know that this was all."""
        farewell = Farewell(self._sender.paths, self._connection, now)
        while not farewell.done:
            paths.send(farewell.datagrams_to_send(now))
            if not farewell.done:
                now = paths.receive(
                    farewell.next_timeout(), lambda path, data, _: farewell.receive(path, data)
                )


class ReceivingEnd:
    """The end that receives: it ends when the sender has said so."""

    def __init__(
        self, receiver: Receiver, application: Application, reporter: Reporter, connection: int
    ) -> None:
        self._receiver, self._application, self._reporter = receiver, application, reporter
        self._connection = connection
        self._closed_at: float | None = None
        self._reported = 0
        self._answers: list[tuple[int, bytes]] = []

    def run(self, paths: RelayedPaths, interval: float) -> None:
        """Run the connection to its end, and sample it every `interval` seconds."""
        receiver, application, reporter = self._receiver, self._application, self._reporter
        now = paths.now()
        samples = Samples(interval, now)
        while (ended := self._ended(now)) is None:
            times = [samples.due, receiver.next_timeout()]
            now = paths.receive(min(time for time in times if time is not None), self._take)
            answers, self._answers = self._answers, []
            paths.send([*receiver.datagrams_to_send(now), *answers])
            if samples.is_due(now):
                reporter.sample_receiver(receiver, now)
                self._report_messages()
                reporter.flush()
        reporter.sample_receiver(receiver, now)
        self._report_messages()
        if application.first_at is not None:
            reporter.event("first_byte", application.first_at)
        reporter.event("ended", ended, received_bytes=application.received, completed=True)
        reporter.flush()

    def _ended(self, now: float) -> float | None:
        """Return when the connection ended; None if it goes on."""
        application = self._application
        last, whole = application.last_at, application.total is not None
        if whole and (last is None or application.received < (application.total or 0)):
            return None
        if self._closed_at is None and not (whole and last is not None and now >= last + QUIET):
            return None
        return last if whole else self._closed_at

    def _take(self, path: int, datagram: bytes, now: float) -> None:
        if is_request(CLOSE, path, datagram, self._connection):
            self._answers.append((path, encode_open(Open(CLOSED, path, self._connection, now))))
            self._closed_at = now if self._closed_at is None else self._closed_at
            return
        self._receiver.receive(path, datagram, now)
        if self._receiver.paths[path].packets:
            self._reporter.join(path)

    def _report_messages(self) -> None:
        for arrived in self._application.arrived[self._reported :]:
            self._reporter.message(None, arrived)
        self._reported = len(self._application.arrived)
