"""The prompt of a trial that is halted: as that of `plait shell`, in virtual time, and with ways to go on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plait.plan.traffic.programs import PRIVATE
from plait.prompt.live import PromptServer
from plait.prompt.loop import Prompt
from plait.prompt.view import view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.study.pauses import PausedTrial


class PausePrompt(Prompt):
    """Read commands until the trial shall go on."""

    intro = (
        f"{Prompt.intro}\nTime stands while nothing is run. "
        "exit: go on; skip: halt no more; abort: end the study."
    )
    pause_again = True
    """Whether to halt again."""
    aborted = False

    def do_exit(self, _: str) -> bool:
        """Go on with the trial. What was left behind (&) runs on with it."""
        return True

    do_quit = do_exit

    def do_skip(self, _: str) -> bool:
        """Go on with the trial, and halt neither it nor any other again."""
        self.pause_again = False
        return True

    def do_abort(self, _: str) -> bool:
        """End the study; trials that have finished are kept."""
        self.aborted = True
        return True


def ask(trial: PausedTrial, environment: Sequence[tuple[str, str]]) -> bool:
    """Give a prompt in the trial's network, and return whether to halt again.

    Raises KeyboardInterrupt when the study is to end, TrialError when the guest has ended.
    """
    sys.stdout.flush()
    sys.stderr.write(f"plait: {trial.sentence}\n")
    folder = os.open(trial.guest.folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        path = Path(f"/proc/self/fd/{folder}/prompt")  # the path of a socket has at most 107 bytes
        prompt = PausePrompt(view(trial.plan), path, environment)
        if prompt.directory.startswith(tuple(f"{folder}/" for folder in PRIVATE)):
            prompt.directory = "/"  # there is no such folder in the guest
        with PromptServer(trial.guest, path):
            prompt.read()
    finally:
        os.close(folder)
    if prompt.aborted:
        raise KeyboardInterrupt
    return prompt.pause_again
