"""The program of one end of a prototype flow on a real host: it reads its settings, runs its end, and reports."""

from __future__ import annotations

import faulthandler
import random
import sys
from typing import Any

from plait.prototype.apart.ends import ReceivingEnd, SendingEnd
from plait.prototype.apart.lock import lock
from plait.prototype.apart.relay import RelayedPaths
from plait.prototype.application import Application
from plait.prototype.main import bound_memory, chosen_scheduler, fail, start, watch
from plait.prototype.path import SendingPath
from plait.prototype.receiver import Receiver
from plait.prototype.reports import Reporter
from plait.prototype.scheduler import Scheduler
from plait.prototype.sender import Sender

MOST_MEMORY = 1 << 30
PATIENCE_S = 20
"""How long Python may run no handler of a signal: a scheduler is then in one endless call of C code."""


def main() -> None:
    """Run the end of `settings.json` in the program's directory."""
    start(run)


def run(settings: dict[str, Any], reports: Any) -> None:
    """Run an end, from the line of standard input with the zero of the trial. Raise SchedulerError."""
    job = settings["job"]
    random.seed(job["seed"])
    bound_memory(MOST_MEMORY)
    lock(settings["filters"])
    _expect_life()
    scheduler, trusted = chosen_scheduler(job)
    reporter = Reporter(reports, settings["ports"])
    application = Application(job)
    end: SendingEnd | ReceivingEnd
    if settings["side"] == "client":
        sender = _sender(settings, scheduler, trusted=trusted)
        watch(sender, _expect_life)
        end = SendingEnd(sender, application, reporter, settings["connection"])
    else:
        faulthandler.cancel_dump_traceback_later()  # it calls the scheduler no more
        receiver = _receiver(settings, scheduler, application)
        end = ReceivingEnd(receiver, application, reporter, settings["connection"])
    reporter.ready()
    paths = RelayedPaths(settings["descriptors"], int(sys.stdin.readline()))
    try:
        end.run(paths, settings["sample_us"] / 1e6)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if trusted or settings["side"] == "server":
            raise
        raise sender.blame(error) from None


def _expect_life() -> None:
    """End the process, and print its line, unless this function is called again in time."""
    faulthandler.dump_traceback_later(PATIENCE_S, exit=True)


def _sender(settings: dict[str, Any], scheduler: Scheduler, *, trusted: bool) -> Sender:
    paths = [
        SendingPath(index, path["name"], backup=path["backup"])
        for index, path in enumerate(settings["paths"])
    ]
    job = settings["job"]
    return Sender(
        paths,
        scheduler,
        coupling=job["coupling"],
        connection=settings["connection"],
        seed=job["seed"],
        trusted=trusted,
        overrun=fail,
    )


def _receiver(settings: dict[str, Any], scheduler: Scheduler, application: Application) -> Receiver:
    """Return the receiver. Of the scheduler it needs to know only whether it asks for parities."""
    repairs = type(scheduler).repair is not Scheduler.repair
    window = settings["job"]["receive_window_bytes"]
    return Receiver(
        len(settings["paths"]), window, settings["connection"], application.receive, repairs=repairs
    )
