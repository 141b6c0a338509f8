"""Fixtures for all tests: the virtual engine on the laboratory kernel, and a function that runs one trial on it."""

from __future__ import annotations

import atexit
import gc
import os
import shlex
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import settings

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.engine.engine import Job
from plait.engine.request import links_of_environment
from plait.engine.virtual.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.scenario import load, parse
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan


settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")  # a busy machine is no failure


gc.set_threshold(100_000, 50, 100)  # ten thousand tests are alive in each worker: an eighth of its time
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # bytecode halves the start of commands

HERE = Path(__file__).parent
PERMISSIONS_MATTER = (
    "agent",
    "remote/test_left_as_found.py",
    "security",
    "unit/engine",
    "unit/kernel/test_kernel_additions.py",
    "unit/kernel/test_kernel_fetch.py",
    "unit/kernel/test_kernel_from_tree.py",
    "unit/kernel/test_kernel_kit.py",
    "unit/plan/shell",
    "unit/set_up",
)
"""Folders and files whose tests make namespaces, files of other users or guests, which root does in another way."""
SAME_FOR_ROOT = ("security/test_damaged_files.py", "security/test_fuzz.py")
"""Files among these that read what is damaged, as root reads it too."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Mark what root does in another way, and put the files that cost least to the end, where workers run dry."""
    folders = {HERE / folder for folder in PERMISSIONS_MATTER}
    same = {HERE / file for file in SAME_FOR_ROOT}
    for path, among in groupby(items, key=attrgetter("path")):
        if path not in same and not folders.isdisjoint((path, *path.parents)):
            for item in among:
                item.add_marker("users")
    yield  # what `-m` leaves out goes
    items.sort(
        key=lambda item: (item.path.is_relative_to(HERE / "unit"), not item.get_closest_marker("slow"))
    )


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # or libraries in C report at the interpreter's end that they leak
    atexit.unregister(gc.freeze)  # which `plait.cli.main` leaves behind


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Print the command that repeats a test below its failure."""
    report = yield
    if report.failed:
        links = os.environ.get("PLAIT_LINKS")
        setting = f"PLAIT_LINKS={links} " if links else ""
        report.sections.append(("repeat it", f"{setting}.venv/bin/pytest {shlex.quote(item.nodeid)}"))
    return report


@dataclass(frozen=True)
class Ran:
    """One trial that was run for a test."""

    plan: Plan
    tables: dict[str, pl.DataFrame]
    console: str

    @property
    def digest(self) -> str:
        return trial_digest(self.tables)

    def series(self, table: str, **where: object) -> pl.DataFrame:
        frame = self.tables[table]
        for column, value in where.items():
            frame = frame.filter(pl.col(column) == value)
        return frame.sort("t_us")


RunTrial = Callable[..., Ran]


@pytest.fixture(scope="session")
def engine() -> VirtualEngine:
    """Return the engine that `plait run` uses, with the kernel that `make kernel` built."""
    return VirtualEngine(kernels.ensure(), AGENT, links=links_of_environment())


@pytest.fixture(scope="session")
def run_trial(engine: VirtualEngine, tmp_path_factory: pytest.TempPathFactory) -> RunTrial:
    """Return a function that runs one trial of a scenario (its text, or the name of a shipped one)."""

    def run(scenario: str, *, case: int = 0, repeat: int = 0, overrides: tuple[str, ...] = ()) -> Ran:
        model = parse(scenario, "test.yaml", overrides) if "\n" in scenario else load(scenario, overrides)
        plan = resolve(expand(model)[case].scenario, trial_seed(model.seed, repeat))
        return run_plan(engine, plan, tmp_path_factory.mktemp("trial"))

    return run


def run_plan(engine: VirtualEngine, plan: Plan, folder: Path, inputs: dict[str, Path] | None = None) -> Ran:
    """Run `plan`, with the files that it needs, in `folder`, an empty directory."""
    engine.execute(Job(plan, inputs or {}, folder))
    tables = convert(folder / "data", folder / "tables")
    return Ran(plan, tables, (folder / "console.log").read_text(errors="replace"))
