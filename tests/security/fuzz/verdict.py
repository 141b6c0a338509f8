"""The judge requires an answer or a located refusal from plait, in bounded time and memory."""

from __future__ import annotations

import signal
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plait.errors import PlaitError, ScenarioError
from plait.plan.case_plan import resolve_case
from plait.plan.identity import plan_bytes
from plait.plan.lint.lint import lint_cases
from plait.plan.shell.script import to_shell
from plait.scenario import load
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .scenarios import Input

MOST_S = 2.0
MOST_MB = 500
CASE_S = 0.005
"""A case of an accepted scenario takes further time, so that a study of thousands may be asked for."""
CASES = 2
"""Cases of an accepted scenario that are planned."""


@dataclass(frozen=True)
class Verdict:
    """What became of one input."""

    refused: bool
    wrong: str | None
    """What must not be; None where all is well."""
    seconds: float
    """Processor time."""


class Endless(BaseException):
    """Raised by the timer; no handler of plait's takes it."""


@contextmanager
def _at_most(processor_s: float, wall_s: float) -> Iterator[None]:
    """End what computes too long, and what waits for ever."""

    def stop(*_: object) -> None:
        raise Endless

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, processor_s), (signal.SIGALRM, signal.ITIMER_REAL, wall_s))
    before = [signal.signal(number, stop) for number, _, _ in timers]
    for _, timer, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def judge(
    work: Callable[[], int], source: str = "", *, most_s: float = MOST_S, most_mb: int = MOST_MB
) -> Verdict:
    """Do the work, which returns a number of cases, and judge it.

    With a `source`, every refusal must name a place in it or an option.
    """
    began, wrong, refused, cases = time.process_time(), None, False, 0
    before = _forget_peak_mb()
    try:
        with _at_most(30 * most_s, 300):
            cases = work()
    except ScenarioError as error:
        refused, wrong = True, _unlocated(error, source)
    except PlaitError as error:
        refused = True
        wrong = f"a refusal that names no place: {error}" if source else None
    except Endless:
        wrong = f"no end within {30 * most_s:g} s of processor time:\n{traceback.format_exc(limit=-4)}"
    except Exception:  # noqa: BLE001 - that is the question
        wrong = traceback.format_exc(limit=-6)
    seconds = time.process_time() - began
    if wrong is None and seconds > most_s + cases * CASE_S:
        wrong = f"{'refused' if refused else 'answered'} after {seconds:.1f} s"
    if wrong is None and _memory_mb("VmHWM") - before > most_mb:
        wrong = f"it took {_memory_mb('VmHWM') - before} MB"
    return Verdict(refused, wrong, seconds)


def _forget_peak_mb() -> int:
    """Reset the peak of memory, and return the process's current use, which the input did not cause."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # proc_pid_clear_refs(5)
    return _memory_mb("VmRSS")


def _memory_mb(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(f"{name}:"))


def _unlocated(error: ScenarioError, source: str) -> str | None:
    """Return what is wrong with the lines of an error."""
    for mistake in error.mistakes:
        text = str(mistake)
        placed = mistake.line is not None and mistake.column is not None and mistake.source == source
        if not placed and not mistake.source.startswith("--set "):
            return f"no place: {text[:300]}"
        if not mistake.message or len(text.splitlines()) != 1 or not text.isprintable():
            return f"not one line: {text[:300]!r}"
        if len(text) > 1000 and not mistake.source.startswith("--set "):
            return f"a line of {len(text)} characters: {text[:300]}"
    return None if error.mistakes else "no mistakes"


def judge_scenario(fuzzed: Input, folder: Path) -> Verdict:
    """Take a scenario from a file in `folder`, beside the files that shipped scenarios name, to the shell export."""
    path = folder / "fuzz.yaml"
    path.write_bytes(fuzzed.data)

    def work() -> int:
        scenario = load(path, fuzzed.overrides)
        cases = expand(scenario)
        planned = [resolve_case(case) for case in cases[:CASES]]
        lint_cases(planned, scenario.seed)
        for case in planned:
            plan = case.plan(trial_seed(scenario.seed, 0))
            plan_bytes(plan)
            to_shell(plan)
        return len(cases)

    return judge(work, str(path))
