"""`Terminal` runs plait in a pseudo-terminal, so that tests see what a person at a prompt sees."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path

import plait

PLAIT = [sys.executable, "-c", "from plait.cli import main; main()"]
SOURCE = str(Path(plait.__file__).parents[1])
LIMIT_S = 300


class Terminal:
    """plait in a terminal of its own."""

    def __init__(self, *words: str) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.environ["PYTHONPATH"] = SOURCE
            os.execv(PLAIT[0], [*PLAIT, *words])  # noqa: S606 - a list of arguments
        self.seen = ""

    def until(self, text: str) -> str:
        """Read until `text` has come; returns what came before it."""
        deadline = time.monotonic() + LIMIT_S
        while text not in self.seen:
            assert select.select([self.descriptor], [], [], max(0, deadline - time.monotonic()))[0], self.seen
            self.seen += os.read(self.descriptor, 65536).decode()
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def end(self) -> int:
        try:
            while os.read(self.descriptor, 65536):
                pass
        except OSError:  # Linux tells the end of a terminal so
            pass
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
