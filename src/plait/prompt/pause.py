"""The prompt of a halted trial: that of `plait shell` in virtual time, with commands to continue or abort."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from plait.plan.model.programs import PRIVATE
from plait.prompt.live import PromptServer
from plait.prompt.loop import Prompt
from plait.prompt.view import view
from plait.study.pauses import PausedTrial


class _PausePrompt(Prompt):
    """Reads commands until the trial continues."""

    intro = (
        f"{Prompt.intro}\nTime stops while no command runs. "
        "exit: continue; skip: continue without further halts; abort: end the study."
    )
    pause_again = True
    """Whether to halt again."""
    aborted = False

    def do_exit(self, _: str) -> bool:
        """Continue the trial. Programs in the background (&) keep running."""
        return True

    do_quit = do_exit

    def do_skip(self, _: str) -> bool:
        """Continue the trial without further halts, also in later trials."""
        self.pause_again = False
        return True

    def do_abort(self, _: str) -> bool:
        """End the study; finished trials stay."""
        self.aborted = True
        return True


def ask(trial: PausedTrial, environment: Sequence[tuple[str, str]]) -> bool:
    """Run a prompt in the trial's network, and return whether to halt again.

    Raises KeyboardInterrupt if the user aborts the study, TrialError if the guest has ended.
    """
    sys.stdout.flush()
    sys.stderr.write(f"plait: {trial.sentence}\n")
    folder = os.open(trial.guest.folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        path = Path(f"/proc/self/fd/{folder}/prompt")  # the path of a socket has at most 107 bytes
        prompt = _PausePrompt(view(trial.plan), path, environment)
        if prompt.directory.startswith(tuple(f"{folder}/" for folder in PRIVATE)):
            prompt.directory = "/"  # there is no such folder in the guest
        with PromptServer(trial.guest, path):
            prompt.read()
    finally:
        os.close(folder)
    if prompt.aborted:
        raise KeyboardInterrupt
    return prompt.pause_again
