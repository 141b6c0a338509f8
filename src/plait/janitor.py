"""A process that undoes what plait changed on this machine once plait has ended, however that happens."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from plait.cache import locked

PATIENCE_S = 30
MACHINE = Path("/run/plait")
"""Where root's processes lock what all of a machine shares; the agent's journals are there, too."""


def locked_for_all(
    name: str, notice: Callable[[str], object] = lambda _: None, wait: Callable[[], None] | None = None
) -> int:
    """Return the descriptor of the lock `name` of this machine, once no other plait holds it (MachineError).

    Only root can change a machine, perhaps with several caches; whoever else asks has a lock of the own cache.
    """
    return locked(name, notice, wait, MACHINE if os.geteuid() == 0 else None)


@contextlib.contextmanager
def undone_by(
    script: str,
    lock_name: str,
    arguments: Callable[[], Sequence[str]],
    take: Callable[[str], int] = locked_for_all,
) -> Iterator[int]:
    """Run a shell script with `arguments` after the block, or when plait dies meanwhile (`kill -9` included).

    The yielded descriptor puts off the script until also those processes have ended that inherit it.

    The lock `lock_name` is held until the script has ended; `arguments` is called below it, before the block. `take`
    takes it.
    """
    lock = take(lock_name)
    janitor = None
    try:
        janitor = subprocess.Popen(
            ["/bin/sh", "-c", f"read -r _\n{script}", *arguments()],
            stdin=subprocess.PIPE,
            pass_fds=(lock,),
            start_new_session=True,  # Ctrl-C must reach plait only
        )
        assert janitor.stdin is not None
        yield janitor.stdin.fileno()
    finally:
        os.close(lock)
        if janitor is not None:
            assert janitor.stdin is not None
            janitor.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):  # the janitor goes on
                janitor.wait(PATIENCE_S)
