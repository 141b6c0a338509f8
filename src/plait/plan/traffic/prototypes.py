"""The prototype connections of a plan: what they carry, and the programs that run them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from plait.plan.model.applications import Prototype
from plait.plan.model.programs import Program, Stop
from plait.scenario.located import error_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plait.plan.model.plan import Flow
    from plait.scenario import Scenario
    from plait.scenario.fields.traffic import PrototypeSpec

PYTHON = ("python3", "-I", "-S", "-B")
"""The interpreter of the guest, without the user's settings, installed packages and files of compiled code."""
GRACE_US = 100_000


def prototype(scenario: Scenario, entry: int, spec: PrototypeSpec, start_us: int, seed: int) -> Prototype:
    """Return the application of a prototype connection. Raise ScenarioError for a file that is no scheduler."""
    source = None
    if spec.scheduler_file is not None:
        facts = scenario.files.get(spec.scheduler_file)
        source = None if facts is None else facts.text
        if source is None:
            problem = (
                f"the file '{spec.scheduler_file}' was not read as a scheduler; name a file of Python with at most "
                "64 KiB, and read the scenario with plait.scenario.read.load"
            )
            raise error_at(scenario, [(("traffic", entry, "prototype", "scheduler"), problem)])
    window = spec.receive_window or int(scenario.tcp.receive_buffer_max) // 2
    return Prototype(
        scheduler=spec.scheduler.rpartition("/")[2],
        source=source,
        coupling=spec.coupling,
        receive_window_bytes=int(window),
        duration_us=spec.duration_us(start_us),
        bytes=spec.bytes and int(spec.bytes),
        message_bytes=spec.message and int(spec.message),
        interval_us=spec.every and spec.every.us,
        count=spec.messages,
        seed=seed,
    )


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
