"""QEMU's main loop and the processor take turns, however often the main loop wakes up.

On a busy machine the main loop sometimes wakes up while the processor halts. Here it wakes up all the time: a library
shortens its waits. So the test runs QEMU without the sandbox, which passes no environment on.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from plait.engine.engine import Job
from plait.engine.factory import make_engine
from plait.engine.machine.qemu import FOLDER, RESULTS, trial_arguments
from plait.engine.machine.trial import machine_command
from plait.engine.virtual.containment import GUEST
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from scenario_samples import ONE_LINE

if TYPE_CHECKING:
    from pathlib import Path

IMPATIENT = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
int ppoll(struct pollfd *files, nfds_t number, const struct timespec *timeout, const sigset_t *signals)
{
    int (*real)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *) = dlsym(RTLD_NEXT, "ppoll");
    struct timespec shortly = {0, 20000};
    return real(files, number, &shortly, signals);
}
"""


@pytest.mark.guest
def test_a_main_loop_that_wakes_up_all_the_time_changes_no_byte(tmp_path: Path) -> None:
    source, library = tmp_path / "impatient.c", tmp_path / "impatient.so"
    source.write_text(IMPATIENT, encoding="utf-8")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=300)
    quiet, restless = (
        results(tmp_path / name, preload) for name, preload in (("q", ""), ("r", str(library)))
    )
    assert len(quiet) > 10_000
    assert quiet == restless


def results(folder: Path, preload: str) -> bytes:
    """Return what a machine sends after a trial."""
    folder.mkdir()
    engine = make_engine("machine")
    plan = resolve(expand(parse(ONE_LINE.replace("2s", "1s"), "line.yaml"))[0].scenario, 1)
    job = Job(plan, {}, folder)
    engine._fill(job)
    line = machine_command(plan, engine._memory_mib(plan))
    program = [str(engine._emulator.loader), *line, *trial_arguments(1)]
    environment = {"QEMU_MODULE_DIR": str(folder / FOLDER / "modules")} | (
        {"LD_PRELOAD": preload} if preload else {}
    )
    state = engine._boot(plan).state(job.stop)
    with (folder / "console.log").open("wb") as console, os.fdopen(state, "rb") as stdin:
        subprocess.run(
            program, cwd=folder, env=environment, stdin=stdin, stdout=console, check=True, timeout=600
        )
    for path in (folder / RESULTS, folder / GUEST / RESULTS):
        if path.exists():
            return path.read_bytes()
    pytest.fail((folder / "console.log").read_text(errors="replace"))
