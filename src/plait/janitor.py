"""A process that undoes what plait changed on this machine once plait has ended, however that happens."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence

from plait.cache import locked

PATIENCE_S = 30


@contextlib.contextmanager
def undone_by(
    script: str,
    lock_name: str,
    arguments: Callable[[], Sequence[str]],
    take: Callable[[str], int] = locked,
) -> Iterator[None]:
    """Run a shell script with `arguments` after the block, or when plait dies meanwhile (`kill -9` included).

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
        yield
    finally:
        os.close(lock)
        if janitor is not None:
            assert janitor.stdin is not None
            janitor.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):  # the janitor goes on
                janitor.wait(PATIENCE_S)
