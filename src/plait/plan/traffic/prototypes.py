"""The programs that run the prototype connections of a plan."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator

from plait.plan.model.plan import Flow
from plait.plan.model.programs import Program, Stop
from plait.traffic.prototype import Prototype

PYTHON = ("python3", "-I", "-S", "-B")
"""The interpreter of the guest, without the user's settings, installed packages and files of compiled code."""
GRACE_US = 100_000


def prototype_programs(flows: Iterable[Flow], environment: Iterable[tuple[str, str]]) -> Iterator[Program]:
    """Yield the program of each prototype connection, in the node that sends."""
    for flow in flows:
        if not isinstance(flow.application, Prototype):
            continue
        name = f"prototype.{flow.id}"
        directory = f"/tmp/{name}"  # noqa: S108 - of the guest, empty when the trial begins
        yield Program(
            name=name,
            netns=flow.client.netns,
            argv=(*PYTHON, "-c", RUN),
            environment=tuple(environment),
            start_us=0,
            directory=directory,
            stop=Stop(signal=int(signal.SIGTERM), grace_us=GRACE_US),
            exit_code=0,
            flow=flow.id,
        )


RUN = "import sys; sys.path.insert(0, '.'); from plait.prototype.main import main; main()"
