"""The benchmark on the real kernel: published results repeat to the byte, and a broken scheduler fails its cells."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from plait import kernel as kernels
from plait.api.additions import add
from plait.benchmark import run
from plait.benchmark.results_file import measured, published
from plait.benchmark.suite import Cell, Settings, cells
from plait.binaries import AGENT
from plait.cache import cache_root
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.errors import RequestError
from plait.study.progress import silent

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
    assert run.verify(default, 5, tmp_path, RUNNING) == []
    changed = default.cells[drawn[0].name].model_copy(update={"digest": "00" * 8})
    forged = default.model_copy(update={"cells": {**default.cells, drawn[0].name: changed}})
    assert [item.cell for item in run.verify(forged, 5, tmp_path, RUNNING)] == [drawn[0]]


@pytest.mark.parametrize(
    ("instead", "crashes"),
    [("NULL", False), ("READ_ONCE(*(struct mptcp_subflow_context **)NULL)", True)],
    ids=["stalls", "crashes"],
)
def test_a_broken_scheduler_fails_its_long_cells_with_the_reason_and_keeps_the_short_ones(
    instead: str, crashes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops sending or crashes the kernel after 1 MB: 20 MB never arrive, and 256 KB do."""
    mine = tmp_path / "cache"
    mine.mkdir()
    (mine / "kernels").symlink_to(cache_root() / "kernels")
    monkeypatch.setenv("PLAIT_CACHE", str(mine))
    monkeypatch.setattr(run, "SEEDS", 1)
    source = tmp_path / "broken.c"
    source.write_text((SCHEDULERS / "broken.c").read_text().replace("return NULL;", f"return {instead};", 1))
    add(source, kernels.ensure(), AGENT)
    chosen = (Cell("low-bdp-03", "large"), Cell("low-bdp-03", "small"))
    assert set(chosen) <= set(cells("quick"))
    running = replace(RUNNING, command="plait benchmark --scheduler broken")
    study = run.study_of(Settings("broken"), chosen, tmp_path / "study", running)
    results = measured(study, chosen, run.seeds())
    failed = results["low-bdp-03/large"]
    assert not failed.is_whole
    assert ["the guest's kernel" in why for why in failed.failed] == [True] * crashes
    assert results["low-bdp-03/small"].is_whole
