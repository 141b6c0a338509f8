"""The program of a prototype flow in the guest: it reads its settings, runs the connection, and reports."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
from pathlib import Path as FilePath
from typing import Any, NoReturn

from plait.prototype.application import Application
from plait.prototype.choice import SchedulerError, load_scheduler
from plait.prototype.path import SendingPath
from plait.prototype.receiver import Receiver
from plait.prototype.reports import Reporter
from plait.prototype.scheduler import Scheduler
from plait.prototype.schedulers import SCHEDULERS
from plait.prototype.sender import Sender
from plait.prototype.sockets import Sockets

FAILED = 3
"""The exit code of a flow whose scheduler failed."""


def main() -> None:
    """Run the flow of `settings.json` in the program's directory; a scheduler's error ends it."""
    settings = json.loads(FilePath("settings.json").read_text(encoding="utf-8"))
    reports, sys.stdout = sys.stdout, sys.stderr  # what a scheduler prints is no report
    try:
        run(settings, reports)
    except SchedulerError as error:
        fail(str(error))


def fail(error: str) -> NoReturn:
    """End the process at once: neither a scheduler's threads nor its `except` keep it."""
    os.write(2, f"scheduler error: {error}\n".encode())
    os._exit(FAILED)


def run(settings: dict[str, Any], reports: Any) -> None:
    """Run a flow. Raise SchedulerError."""
    job = settings["job"]
    random.seed(job["seed"])
    bound_memory()
    scheduler, trusted = chosen_scheduler(job)
    paths = [
        SendingPath(index, path["name"], backup=path["backup"])
        for index, path in enumerate(settings["paths"])
    ]
    ends = [(path["client"], path["server"]) for path in settings["paths"]]
    zero_ns = int(os.environ["PLAIT_ZERO_NS"])
    sockets = Sockets(ends, settings["port"], f"/run/netns/{settings['server_node']}", zero_ns)
    application = Application(job)
    connection = settings["connection"]
    sender = Sender(
        paths,
        scheduler,
        coupling=job["coupling"],
        connection=connection,
        seed=job["seed"],
        trusted=trusted,
        overrun=fail,
    )
    reporter = Reporter(reports, sockets.ports)
    receiver = Receiver(
        len(paths), job["receive_window_bytes"], connection, application.receive, repairs=sender.repairs
    )
    watch(sender)
    try:
        sockets.run(sender, receiver, application, reporter, settings["sample_us"] / 1e6)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if trusted:
            raise
        raise sender.blame(error) from None
    now = sockets.now()
    _report_end(application, sender, receiver, reporter, now)


def _report_end(
    application: Application, sender: Sender, receiver: Receiver, reporter: Reporter, now: float
) -> None:
    end = application.end_time()
    if end is None:
        end = application.last_at or now
    reporter.sample(sender, receiver, now)
    for number, due in enumerate(application.due):
        reporter.message(due, application.arrived[number] if number < len(application.arrived) else None)
    if application.first_at is not None:
        reporter.event("first_byte", application.first_at)
    reporter.event("ended", end, sent_bytes=sender.taken, received_bytes=application.received, completed=True)
    reporter.flush()


def chosen_scheduler(job: dict[str, Any]) -> tuple[Scheduler, bool]:
    """Return the scheduler, and whether it is one of plait's. Raise SchedulerError."""
    name = job["scheduler"]
    if job["source"] is None:
        return SCHEDULERS[name](), True
    file, _, kind = name.rpartition(":")
    return load_scheduler(file, kind, job["source"], fail), False


def bound_memory() -> None:
    """Let this process have half of the memory, so that a greedy scheduler has an error with a line."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    size = int(FilePath("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf(
        "SC_PAGE_SIZE"
    )
    resource.setrlimit(resource.RLIMIT_AS, (size + half, resource.RLIM_INFINITY))


def watch(sender: Sender) -> None:
    """End a scheduler that sleeps: look every 10 seconds whether it is in the same call."""
    last_calls = [-1]

    def look(_number: int, _frame: Any) -> None:
        calls = sender.calls_in_progress()
        if calls is not None and calls == last_calls[0]:
            raise TimeoutError("it did not return for 10 s")
        last_calls[0] = -1 if calls is None else calls

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 10, 10)
