"""What plait does with an input, judged: an answer or a located refusal, in bounded time and memory."""

from __future__ import annotations

import resource
import signal
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.errors import PlaitError, ScenarioError
from plait.plan.expand import expand
from plait.plan.identity import plan_bytes
from plait.plan.lint import lint_cases
from plait.plan.resolve import resolve
from plait.plan.seeds import trial_seed
from plait.plan.shell import to_shell
from plait.scenario import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .scenarios import Input

MOST_S = 2.0
MOST_MB = 500
CASES = 2
"""Cases of an accepted scenario that are planned: each takes its own time."""


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
def _at_most(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def judge(
    work: Callable[[], None], source: str = "", *, most_s: float = MOST_S, most_mb: int = MOST_MB
) -> Verdict:
    """Do the work and judge it; with a `source`, every refusal must name a place in it or an option."""
    began, wrong, refused = time.process_time(), None, False
    memory = _peak_mb()
    try:
        with _at_most(20 * most_s):
            work()
    except ScenarioError as error:
        refused, wrong = True, _unlocated(error, source)
    except PlaitError as error:
        refused = True
        wrong = f"a refusal that names no place: {error}" if source else None
    except Endless:
        wrong = f"no end within {20 * most_s:g} s:\n{traceback.format_exc(limit=-4)}"
    except Exception:  # noqa: BLE001 - that is the question
        wrong = traceback.format_exc(limit=-6)
    seconds = time.process_time() - began
    if wrong is None and seconds > most_s:
        wrong = f"{'refused' if refused else 'answered'} after {seconds:.1f} s"
    if wrong is None and memory < _peak_mb() > most_mb:
        wrong = f"it took {_peak_mb()} MB"
    return Verdict(refused, wrong, seconds)


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _unlocated(error: ScenarioError, source: str) -> str | None:
    """What is wrong with the lines of an error."""
    for mistake in error.mistakes:
        text = str(mistake)
        placed = mistake.line is not None and mistake.column is not None and mistake.source == source
        if not placed and not mistake.source.startswith("--set "):
            return f"no place: {text[:300]}"
        if not mistake.what or len(text.splitlines()) != 1 or not text.isprintable():
            return f"not one line: {text[:300]!r}"
        if len(text) > 1000 and not mistake.source.startswith("--set "):
            return f"a line of {len(text)} characters: {text[:300]}"
    return None if error.mistakes else "no mistakes"


def judge_scenario(one: Input, folder: Path) -> Verdict:
    """From a file in `folder`, which also has the files that shipped scenarios name, to the shell export."""
    path = folder / "fuzz.yaml"
    path.write_bytes(one.data)

    def work() -> None:
        scenario = load(path, one.overrides)
        cases = expand(scenario)[:CASES]
        lint_cases(cases, scenario.seed)
        for case in cases:
            plan = resolve(case.scenario, trial_seed(scenario.seed, 0))
            plan_bytes(plan)
            to_shell(plan)

    return judge(work, str(path))
