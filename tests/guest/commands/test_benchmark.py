"""The benchmark on the real kernel: results repeat to the byte, and schedulers are placed where they belong."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from plait import kernel as kernels
from plait.api.additions import add
from plait.benchmark import run
from plait.benchmark.results_file import measured, published
from plait.benchmark.score import RankRange, places
from plait.benchmark.suite import Cell, CellClass, Settings, cells
from plait.binaries import AGENT
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.errors import RequestError
from plait.study.progress import silent
from result_folders import fresh_cache

pytestmark = pytest.mark.guest

SCHEDULERS = Path(__file__).parents[2] / "data" / "schedulers"
RUNNING = run.Running(partial(make_engine, request=EngineRequest()), silent, lambda _: None, jobs=1)


def test_a_draw_of_the_published_results_repeats_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "SHARE_VERIFIED", 0.012)
    (default,) = [results for results in published() if results.entry.name == "default, cubic"]
    drawn = run.drawn_cells(default.subset, 5)
    if default.entry.kernel_version != kernels.ensure().version:
        with pytest.raises(RequestError, match="its trials ran on Linux"):
            run.verify(default, 5, tmp_path, RUNNING)
        return
    assert run.verify(default, 5, tmp_path, RUNNING) == {}
    changed = default.cells[drawn[0].name].model_copy(update={"digest": "00" * 8})
    forged = default.model_copy(update={"cells": {**default.cells, drawn[0].name: changed}})
    assert [*run.verify(forged, 5, tmp_path, RUNNING)] == [drawn[0]]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the kernels of this machine, for algorithms of a test."""
    return fresh_cache(monkeypatch, tmp_path / "cache", with_kernels=True)


@pytest.mark.usefixtures("own_cache")
def test_schedulers_of_known_character_are_placed_where_they_belong(tmp_path: Path) -> None:
    """`patient` is better for pages, and `farthest` looks good with 20 MB alone: it is behind in pages."""
    known = {results.entry.name: results for results in published()}
    default, floor = known["default, cubic"], known["TCP, cubic"]

    def place(name: str, *wanted: CellClass) -> list[RankRange]:
        add(SCHEDULERS / f"{name}.c", kernels.ensure(), AGENT)
        chosen = [cell for cell in cells("quick") if cell.cell_class in wanted]
        values = run.run_cells(Settings(name), chosen, tmp_path / name, RUNNING)[1]
        placed = default.model_copy(
            update={
                "entry": default.entry.model_copy(update={"name": name}),
                "cells": {**default.cells, **values},
            }
        )
        ranked = places([placed, default], floor, "quick")
        return [ranked[cell_class][name] for cell_class in wanted]

    assert place("patient", CellClass("low-bdp", "page")) == [RankRange(1, 1, 2)]
    bulk, pages = place("farthest", CellClass("low-bdp", "large"), CellClass("high-bdp", "page"))
    assert bulk.first == 1
    assert pages == RankRange(2, 2, 2)


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("instead", "crashes"),
    [
        ("NULL", False),
        ("READ_ONCE(*(struct mptcp_subflow_context **)NULL)", True),
        ("(msk->first_pending = NULL), NULL", False),
    ],
    ids=["stalls", "crashes", "drops-data"],
)
def test_a_broken_scheduler_fails_its_long_cells_with_the_reason_and_keeps_the_short_ones(
    instead: str, crashes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 1 MB it stops sending, crashes the kernel, or drops what waits: 20 MB never arrive, and 256 KB do.

    Requests beside a flow that stalls have the links alone; their latency counts nothing.
    """
    monkeypatch.setattr(run, "SEEDS", 1)
    source = tmp_path / "broken.c"
    source.write_text((SCHEDULERS / "broken.c").read_text().replace("return NULL;", f"return {instead};", 1))
    add(source, kernels.ensure(), AGENT)
    chosen = (Cell("low-bdp-03", "large"), Cell("low-bdp-03", "small"), Cell("wifi-lte", "mixed"))
    assert set(chosen) <= set(cells("quick"))
    running = replace(RUNNING, command="plait benchmark --scheduler broken")
    study = run.study_of(Settings("broken"), chosen, tmp_path / "study", running)
    results = measured(study, chosen, run.seeds())
    failed = results["low-bdp-03/large"]
    assert not failed.is_whole
    assert ["the guest's kernel" in why for why in failed.failed] == [True] * crashes
    assert results["low-bdp-03/small"].is_whole
    beside = results["wifi-lte/mixed"]
    assert not beside.is_whole
    assert ["a flow delivered nothing for more than 7.5 s" in why for why in beside.failed] == [not crashes]
