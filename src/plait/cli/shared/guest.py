"""The guest of a verb that runs programs: booted in a folder of its own, with a word on what it lacks."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from plait.binaries import AGENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plait.engine.request import Policy
    from plait.engine.virtual.session import Session, SessionRequest
    from plait.kernel import Kernel
    from plait.plan.model.plan import Plan

_READ_AHEAD_BYTES = 256 << 20


@contextmanager
def booted(
    kernel: Kernel,
    plan: Plan,
    request: SessionRequest,
    report: Callable[[str], None],
    *,
    real_time: bool,
    policy: Policy,
) -> Iterator[Session]:
    """Boot a guest and yield its session; report the layers of the sandbox and the folder that it lacks."""
    from plait.engine.host_view import unseen
    from plait.engine.virtual.containment import caution
    from plait.engine.virtual.foreground import read_ahead
    from plait.engine.virtual.session import Session
    from plait.engine.workspace import working_folder

    with working_folder() as workspace:
        folder = workspace.job()
        if request.start is not None and request.start.input == "file":
            read_ahead(0, folder / "input", _READ_AHEAD_BYTES, report)
        with Session(kernel, AGENT, folder, plan, request, real_time=real_time, policy=policy) as session:
            if session.guest.missing:
                report(caution(session.guest.missing))
            if not session.view.shows(Path.cwd()):
                report(unseen(Path.cwd()))
            yield session
