"""Fake trials and whole studies on disk look like those of a run; a cache for them; and runs without a report.

A report costs more processor time than several trials.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from unittest.mock import patch

import polars as pl
import pytest

import plait
from fake_plans import FakeFlow, FakePath, fake_plan
from fake_tables import fake_tables
from plait.analysis.compare.summary import summarise
from plait.analysis.metrics.trial import trial_metrics
from plait.analysis.rows import CaseRows, TrialRow
from plait.api import calls
from plait.benchmark.results_file import BenchmarkEntry, CellResult, Results
from plait.benchmark.suite import SHA256, cells
from plait.cache import cache_root
from plait.cautions import Caution
from plait.dataset.digest import trial_digest
from plait.dataset.files import write_table
from plait.dataset.provenance import Provenance
from plait.dataset.study_file import CaseEntry, KernelFacts, StudyFile
from plait.metrics import CATALOGUE
from plait.report.assemble import summary_text
from plait.report.render import render
from plait.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from plait.benchmark.suite import Cell
    from plait.plan.model.plan import Plan

ONLY_TRIALS = ("--shard", "1/1")
"""Options of `plait run` for all trials and no report."""


@dataclass(frozen=True)
class FakeCase:
    """One case of a fake study: its settings, the plan of each seed, and the failed trials."""

    name: str
    settings: dict[str, Any]
    plan: Callable[[int], Plan]
    failed: dict[int, str] = field(default_factory=dict)
    """Error messages by the index of a failed trial."""


def two_paths(paths: tuple[FakePath, ...] = (FakePath(), FakePath())) -> tuple[FakeCase, FakeCase]:
    """Return the cases of the standard comparison: one bulk flow of 10 s by TCP, and by MPTCP."""

    def case(transport: str) -> FakeCase:
        return FakeCase(
            name=f"transport={transport}",
            settings={"transport": transport},
            plan=lambda seed: fake_plan(FakeFlow(transport=transport), paths=paths, seed=seed),
        )

    return case("tcp"), case("mptcp")


def write_arrow(folder: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    """Write `TABLE.arrow` streams into `folder`, as the agent does."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in tables.items():
        frame.write_ipc_stream(folder / f"{name}.arrow", compat_level=pl.CompatLevel.oldest())


def write_trial(
    folder: Path, plan: Plan, tables: Mapping[str, pl.DataFrame] | None, error: str | None = None
) -> None:
    """Write one trial into `folder`; with an `error` it is a failed one, possibly without tables."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "plan.json").write_text(plan.model_dump_json(by_alias=True), encoding="utf-8")
    for name, frame in (tables or {}).items():
        write_table(frame, folder, name)
    provenance = Provenance(
        status="ok" if error is None else "failed",
        error=error,
        seed=plan.seed,
        identity=f"sha256:{plan.seed:064x}",
        digest=trial_digest(tables) if tables is not None and error is None else None,
        kernel_identity="sha256:" + "ab" * 32,
        kernel_version="6.12.117",
        agent_sha256="cd" * 32,
        plait_version=__version__,
        wall_s=0.2,
        virtual_s=10.1,
    )
    (folder / "provenance.json").write_text(provenance.model_dump_json(indent=1) + "\n", encoding="utf-8")


def write_study(
    folder: Path,
    cases: tuple[FakeCase, ...],
    *,
    repeat: int = 10,
    title: str = "Two 5 Mbit/s paths between two hosts",
    description: str | None = None,
    cautions: tuple[dict[str, str], ...] = (),
) -> None:
    """Write study.json and every trial of `cases` into `folder`; the first case is the baseline."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        for index in range(repeat):
            plan = case.plan(1000 + index)
            trial = folder / "trials" / case.name / f"{index:03d}"
            error = case.failed.get(index)
            write_trial(trial, plan, None if error is not None else fake_tables(plan), error)
    study = StudyFile(
        name="two-paths",
        title=title,
        description=description,
        command="plait run two-paths",
        seed=1,
        repeat=repeat,
        plait_version=__version__,
        kernel=KernelFacts(identity="sha256:" + "ab" * 32, version="6.12.117"),
        agent_sha256="cd" * 32,
        baseline=cases[0].name,
        cases=tuple(CaseEntry(name=case.name, settings=case.settings) for case in cases),
        cautions=tuple(Caution.model_validate(caution) for caution in cautions),
        scenario={"title": title},
    )
    (folder / "study.json").write_text(study.text(), encoding="utf-8")


def write_large_study(folder: Path, cases: int, repeat: int) -> None:
    """Write a study of many trials quickly: every trial is a link to the files of one, and summary.json has numbers."""
    *_, mptcp = two_paths()
    names = [f"rate={number}mbit" for number in range(1, cases + 1)]
    entries = tuple(FakeCase(name, {"network.rate": name[5:]}, mptcp.plan) for name in names)
    write_study(folder, entries, repeat=0, title="Many trials")
    plan = mptcp.plan(1000)
    first = folder / "trials" / names[0] / "000"
    write_trial(first, plan, fake_tables(plan))
    files = [path for path in first.iterdir() if path.is_file()]
    for name in names:
        for index in range(repeat):
            trial = folder / "trials" / name / f"{index:03d}"
            if trial != first:
                trial.mkdir(parents=True)
                for path in files:
                    (trial / path.name).hardlink_to(path)
    metrics = trial_metrics(plan, fake_tables(plan))
    rows = tuple(
        CaseRows(
            name,
            {"network.rate": name[5:]},
            tuple(
                TrialRow(index, 1000, "", {**metrics, "goodput_bps": 1e6 * at + index})
                for index in range(min(repeat, 3))
            ),
        )
        for at, name in enumerate(names, 1)
    )
    summary = summarise(rows, scenario="many", digest="sha256:0", baseline=None)
    (folder / "summary.json").write_text(summary.model_dump_json(indent=1), encoding="utf-8")
    about = StudyFile.model_validate_json((folder / "study.json").read_bytes())
    (folder / "study.json").write_text(about.model_copy(update={"repeat": repeat}).text(), encoding="utf-8")


BENCHMARK_SEEDS = (11, 12, 13, 14, 15, 16)


def benchmark_results(
    name: str, factor: float, *, transport: Literal["mptcp", "tcp"] = "mptcp", kernel: str = "6.12.117",
    worse_seed: bool = False,
) -> Results:  # fmt: skip
    """Return results of `quick`; with `worse_seed` the last seed is as much worse."""

    def values(cell: Cell) -> tuple[float, ...]:
        better = factor if CATALOGUE[cell.cell_class.metric].more_is_better else 1 / factor
        return (*[better] * 5, 1 / better if worse_seed else better)

    return Results(
        suite_sha256=SHA256, subset="quick", seeds=BENCHMARK_SEEDS,
        entry=BenchmarkEntry(
            name=name, transport=transport, scheduler="default", congestion_control="cubic", kernel_version=kernel,
            kernel_identity="ab" * 32, agent_sha256="cd" * 32, plait_version="0.1.0",
        ),
        cells={cell.name: CellResult(values=values(cell), digest="ab" * 8) for cell in cells("quick")},
    )  # fmt: skip


def with_cell(known: Results, name: str, cell: CellResult) -> Results:
    """Return results with another cell."""
    return known.model_copy(update={"cells": {**known.cells, name: cell}})


_PNG, _PDF, _SVG = cache(render._png), cache(render._pdf), render.svg_of


@cache
def _svg(spec: str) -> str:
    return _SVG(json.loads(spec))


def fresh_cache(patch: pytest.MonkeyPatch, folder: Path, *, with_kernels: bool = False) -> Path:
    """Let plait use `folder`, which may be missing, as its cache; return it.

    The script of reports is in it, because bundling it takes 1.4 s of processor time; with `with_kernels` the user's
    kernels, too. This process draws a figure once for all its fresh caches.
    """
    script = render.script()
    kernels = cache_root() / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    if with_kernels:
        (folder / "kernels").symlink_to(kernels)
    patch.setenv("PLAIT_CACHE", str(folder))
    patch.setattr(render, "_png", _PNG)
    patch.setattr(render, "_pdf", _PDF)
    patch.setattr(render, "svg_of", lambda spec: _svg(json.dumps(spec)))
    with pytest.MonkeyPatch.context() as bundled:
        bundled.setattr(render, "_bundle", script.encode)
        render.script()
    return folder


def run_unreported(scenario: Path, out: Path, **options: Any) -> plait.Study:
    """Run a study as `plait.run` does, without its report."""
    with patch.object(calls, "build"):
        return plait.run(scenario, out=out, progress=False, **options)


def summary_json(out: Path) -> dict[str, Any]:
    """Return the content of the summary.json that the report of a result folder would have beside it."""
    content: dict[str, Any] = json.loads(summary_text(plait.open(out).summary))
    return content
