"""What a study of many cases costs without its guests: `python bench/planning.py [CASES]` (500), two trials each.

Prints how often plait resolved a case, the time until the first trial, and the time and memory of the whole
study on the tests' fake engine.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import plait
from fake_engine import FakeEngine
from plait.plan import case_plan
from plait.study.perform import Options, perform
from plait.study.progress import SilentObserver

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> None:
    """Run the study and print its cost."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    resolved: list[object] = []
    without_seed = case_plan.without_seed

    def counted(scenario: Any) -> Any:
        resolved.append(scenario)
        return without_seed(scenario)

    case_plan.without_seed = counted
    rates = f"1mbit..{cases // 2}mbit step 1mbit"
    vary = {"network.links.h1-s1.rate": rates, "transport": ["tcp", "mptcp"]}
    scenario = plait.load("two-paths", set={"vary": vary})
    options = Options(repeat=2, jobs=1, confirmed=True, calibrate=False)
    started, processor = time.perf_counter(), time.process_time()

    @contextmanager
    def watch(_: int) -> Iterator[SilentObserver]:
        print(f"{time.perf_counter() - started:.1f} s until the first trial, {len(resolved)} cases resolved")
        yield SilentObserver()

    with tempfile.TemporaryDirectory() as folder:
        os.environ["PLAIT_CACHE"] = str(Path(folder) / "cache")
        perform(
            scenario, "planning", lambda _: FakeEngine(), options,
            folder=Path(folder) / "study", watch=watch, notify=lambda _: None,
        )  # fmt: skip
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(
        f"{time.process_time() - processor:.1f} s of processor time, {len(resolved)} cases resolved, {memory:.0f} MB"
    )


if __name__ == "__main__":
    main()
