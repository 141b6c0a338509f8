"""A bounded share of the seeded fuzzer runs as tests; with `PLAIT_FUZZ=10` ten times as many inputs."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from fuzz.folders import Box
from fuzz.scenarios import scenario_input
from fuzz.verdict import judge_scenario

from plait.scenario.read import library

if TYPE_CHECKING:
    from pathlib import Path

SEED = 1
TIMES = int(os.environ.get("PLAIT_FUZZ", "1"))
SCENARIOS = 1000 * TIMES
FOLDERS = 24 * TIMES
STORES = 200 * TIMES
SLICES = 4


@pytest.mark.parametrize("part", range(SLICES))
def test_damaged_scenarios_are_planned_or_refused_with_their_place(part: int, tmp_path: Path) -> None:
    shipped = library.folder()
    assert shipped is not None
    folder = shutil.copytree(shipped, tmp_path / "scenarios")
    accepted = 0
    for number in range(part, SCENARIOS, SLICES):
        fuzzed = scenario_input(SEED, number)
        verdict = judge_scenario(fuzzed, folder)
        assert verdict.wrong is None, f"input {number} of seed {SEED} ({fuzzed.about}): {verdict.wrong}"
        accepted += not verdict.refused
    assert 0.02 < accepted * SLICES / SCENARIOS < 0.6, "both answers are met, so that both are tried"


@pytest.mark.parametrize("part", range(SLICES))
def test_damaged_result_folders_are_read_or_refused_and_nothing_outside_changes(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    box = Box(tmp_path)
    for number in range(part, FOLDERS, SLICES):
        verdict = box.judge_study(SEED, number)
        assert verdict.wrong is None, f"folder {number} of seed {SEED}: {verdict.wrong}"


def test_damaged_entries_of_the_store_raise_nothing_and_change_nothing_outside(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for number in range(STORES):
        verdict = box.judge_store(SEED, number)
        assert verdict.wrong is None, f"entry {number} of seed {SEED}: {verdict.wrong}"


def test_an_input_is_its_seed_and_number() -> None:
    assert [scenario_input(7, n) for n in range(50)] == [scenario_input(7, n) for n in range(50)]
    assert len({scenario_input(7, n).data for n in range(50)}) > 40
