"""Runs the suite for one entry, or again a part of it, to verify results that somebody else published."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from plait.benchmark.results_file import BenchmarkEntry, CellResult, Results, measured
from plait.benchmark.suite import SEED, SEEDS, SHA256, Cell, Settings, Subset, cells, scenario_of
from plait.engine.engine import Engine
from plait.errors import RequestError
from plait.kernel.additions import modules_by_name
from plait.metrics import CATALOGUE
from plait.results.read import StudyData, read_study
from plait.seeds import trial_seed
from plait.study.executors.executor import TrialExecutor
from plait.study.perform import Options, perform
from plait.study.shard import Shard
from plait.study.study import Observer

PATHS = ("client-one", "client-two")
SHARE_VERIFIED = 0.1


@dataclass(frozen=True)
class Running:
    """How the trials run: nothing of it affects the results."""

    make_engine: Callable[[str], Engine]
    watch: Callable[[int], AbstractContextManager[Observer]]
    notify: Callable[[str], None]
    jobs: int | None = None
    command: str = ""
    make_executor: Callable[[], TrialExecutor | None] = lambda: None
    """Returns what runs the trials of one study; None for this machine."""
    shard: Shard | None = None
    """Run this part of the trials only, which has no results yet (`run_shard`)."""


def seeds() -> tuple[int, ...]:
    """Return the seeds of the trials of every cell."""
    return tuple(trial_seed(SEED, number) for number in range(SEEDS))


def run(settings: Settings, subset: Subset, name: str, folder: Path, running: Running) -> Results:
    """Run the cells of a subset into `folder`, and return the results (RequestError, MachineError, DataError).

    Raises KeyboardInterrupt if it was interrupted; the same call continues from there.
    """
    study, results = run_cells(settings, cells(subset), folder, running)
    return Results(
        suite_sha256=SHA256, subset=subset, seeds=seeds(), entry=_entry(study, settings, name), cells=results
    )


def run_cells(
    settings: Settings, chosen: Sequence[Cell], folder: Path, running: Running
) -> tuple[StudyData, dict[str, CellResult]]:
    """Run cells as `run` does, and return a study of them and the results by the name of the cell.

    TCP has in each cell the better one of its paths.
    """
    studies = [study_of(part, chosen, place, running) for place, part in studies_of(settings, folder)]
    several = [measured(study, chosen, seeds()) for study in studies]
    return studies[0], several[0] if len(several) == 1 else _better(several, chosen)


def studies_of(settings: Settings, folder: Path) -> list[tuple[Path, Settings]]:
    """Return the folder and the settings of each study of an entry: one, and for TCP one over each path."""
    if settings.transport == "mptcp":
        return [(folder, settings)]
    return [(folder / path, replace(settings, via=path)) for path in PATHS]


def run_shard(
    settings: Settings, chosen: Sequence[Cell], folder: Path, running: Running
) -> dict[Path, StudyData]:
    """Run the trials of `running.shard` into `folder`, and return the studies by their folders (see `run`).

    `plait merge` puts the folders of all shards together; `run` then finds the trials there.
    """
    return {place: study_of(part, chosen, place, running) for place, part in studies_of(settings, folder)}


def study_of(settings: Settings, chosen: Sequence[Cell], folder: Path, running: Running) -> StudyData:
    """Run cells with the settings of an entry, and return their study (RequestError, MachineError, DataError)."""
    options = Options(
        SEED,
        SEEDS,
        running.jobs,
        confirmed=True,
        shard=running.shard,
        command=running.command,
    )
    _, outcome = perform(
        scenario_of(settings, tuple(chosen)), "benchmark", running.make_engine, options,
        folder=folder, watch=running.watch, notify=running.notify, executor=running.make_executor(),
    )  # fmt: skip
    if outcome.interrupted:
        running.notify(
            f"{len(outcome.finished)} of {outcome.total} trials are finished and kept; the same command continues"
        )
        raise KeyboardInterrupt
    return read_study(folder)


def _entry(study: StudyData, settings: Settings, name: str) -> BenchmarkEntry:
    about, modules = study.about, modules_by_name()
    used = (settings.scheduler, settings.congestion_control)
    return BenchmarkEntry(
        name=name, transport=settings.transport, scheduler=settings.scheduler,
        congestion_control=settings.congestion_control, sysctls=dict(settings.sysctls),
        sources={word: modules[word].sha256 for word in used if word in modules},
        kernel_version=about.kernel.version or "", kernel_identity=about.kernel.identity or "",
        agent_sha256=about.agent_sha256 or "", plait_version=about.plait_version,
    )  # fmt: skip


def _better(several: Sequence[Mapping[str, CellResult]], chosen: Sequence[Cell]) -> dict[str, CellResult]:
    """Return in each cell the results of the path with the better median."""
    best = {}
    for cell in chosen:
        sign = 1 if CATALOGUE[cell.cell_class.metric].more_is_better else -1

        def goodness(result: CellResult, sign: int = sign) -> float:
            return (
                sign * statistics.median(value or 0.0 for value in result.values)
                if result.is_whole
                else -float("inf")
            )

        best[cell.name] = max((results[cell.name] for results in several), key=goodness)
    return best


def drawn_cells(subset: Subset, draw: int) -> tuple[Cell, ...]:
    """Return a tenth of the cells of a subset, drawn by a number, in the order of the suite."""
    known = cells(subset)
    chosen = random.Random(draw).sample(range(len(known)), max(1, round(SHARE_VERIFIED * len(known))))  # noqa: S311
    return tuple(known[index] for index in sorted(chosen))


def verify(results: Results, draw: int, folder: Path, running: Running) -> dict[Cell, CellResult]:
    """Run a drawn tenth of the cells again, and return those whose trials gave other bytes, with what they gave.

    Raises RequestError if this machine cannot carry out the same trials: it has another kernel, or lacks an algorithm.
    """
    entry, chosen = results.entry, drawn_cells(results.subset, draw)
    known = {name: module.sha256 for name, module in modules_by_name().items()}
    for name, sha256 in entry.sources.items():
        if known.get(name) != sha256:
            raise RequestError(
                f"verifying {entry.name}: the algorithm {name} with SHA-256 {sha256} is not among the added ones; "
                "add its source (`plait kernel add FILE.c`)"
            )
    settings = Settings(entry.scheduler, entry.congestion_control, entry.transport, None, entry.sysctls)
    repeated: list[Mapping[str, CellResult]] = []
    for place, part in studies_of(settings, folder):
        study = study_of(part, chosen, place, running)
        if study.about.kernel.version != entry.kernel_version:
            raise RequestError(
                f"verifying {entry.name}: its trials ran on Linux {entry.kernel_version}, and this kernel is "
                f"{study.about.kernel.version}; select that kernel with --kernel"
            )
        if study.about.kernel.identity != entry.kernel_identity:
            running.notify(
                f"this kernel ({(study.about.kernel.identity or '')[:12]}) is another build of Linux "
                f"{entry.kernel_version} than that of the results ({entry.kernel_identity[:12]})"
            )
        repeated.append(measured(study, chosen, seeds()))
    return {
        cell: repeated[0][cell.name]
        for cell in chosen
        if results.cells[cell.name].digest not in [run[cell.name].digest for run in repeated]
    }
