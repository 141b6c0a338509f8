"""Keeps the processes of a guest on one processor of the machine.

A guest has several processes on the machine, one for its kernel and one for each of its programs, of which one runs at
a time. Each switch would wake another processor if the machine's scheduler had put them on different ones. That takes
longer than what most programs do between two switches.

A guest that has to wait for its processor is not kept on it: the scheduler moves it, and then it stays where it is.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROCESSOR = 36
"""Index of the processor that a process ran on last, among what follows its name (proc_pid_stat(5), field 39)."""
_TOO_LONG = 0.2
"""Share of its time that a guest may wait for its processor."""
_LEAST_S = 0.2
"""How long a guest is watched before it is moved, and how long the scheduler has to move it."""


class OneProcessor:
    """The processor on which a guest runs."""

    def __init__(self, pid: int, now: float, proc: Path = Path("/proc")) -> None:
        """Keep the guest whose kernel is process `pid` on the processor on which it is."""
        self._pid = pid
        self._proc = proc
        self._allowed = os.sched_getaffinity(0)
        """The processors that a guest inherits from plait."""
        self._checked = now
        self._waited_s = 0.0
        self._kept = False
        if len(self._allowed) > 1 and self._counts_waiting():
            self._keep()

    def check(self, now: float, waited_s: float) -> None:
        """Let the scheduler move a guest that waits too long, and keep it afterwards.

        `waited_s`: how long it has waited for a processor in all.
        """
        elapsed = now - self._checked
        if elapsed < _LEAST_S or len(self._allowed) == 1:
            return
        if not self._kept:
            if self._counts_waiting():
                self._keep()
        elif waited_s - self._waited_s > _TOO_LONG * elapsed:
            self._bind(self._allowed)
            self._kept = False
        self._checked, self._waited_s = now, waited_s

    def _keep(self) -> None:
        with suppress(OSError, IndexError, ValueError):  # the guest has just ended
            stat = (self._proc / str(self._pid) / "stat").read_text(encoding="ascii")
            processor = int(stat.rpartition(")")[2].split()[_PROCESSOR])
            if processor in self._allowed:
                self._bind({processor})
                self._kept = True

    def _bind(self, processors: set[int]) -> None:
        """Allow only these processors to all threads of the guest's kernel, and to its programs."""
        bound: set[int] = set()
        for _ in range(2):  # what a thread starts before it is bound may run anywhere, so look again
            new = threads_and_children(self._pid, self._proc) - bound
            for thread in new:
                with suppress(OSError):  # it has just ended
                    os.sched_setaffinity(thread, processors)
            bound |= new

    def _counts_waiting(self) -> bool:
        """Return whether the machine counts how long a process waits: then schedstat is not only zeros.

        The guest's may be zeros yet, because it has just begun. That of plait is not.
        """
        try:
            return (self._proc / "self" / "schedstat").read_text(encoding="ascii").split()[0] != "0"
        except (OSError, IndexError):
            return False


def threads_and_children(pid: int, proc: Path = Path("/proc")) -> set[int]:
    """Return the threads of process `pid` and its children; nothing after its end."""
    threads: set[int] = set()
    with suppress(OSError, ValueError):
        for task in (proc / str(pid) / "task").iterdir():
            threads.add(int(task.name))
            threads.update(int(child) for child in (task / "children").read_text(encoding="ascii").split())
    return threads
