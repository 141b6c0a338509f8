"""`bench/links.py` compares two kernels on drawn networks: the drawing is valid, and no difference escapes it."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from plait import kernel as kernels

links = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "bench" / "links.py")))


def trial(folder: Path, **contents: bytes) -> Path:
    (folder / "data").mkdir(parents=True)
    for name, content in contents.items():
        (folder / "data" / name).write_bytes(content)
    return folder


def test_every_seed_draws_a_network_that_plait_can_plan() -> None:
    plans = [links.network_of(seed).plan for seed in (*range(1, 31), 9138)]
    assert all(len(plan.flows) == 4 for plan in plans)


def test_cases_of_a_scenario_come_with_its_files() -> None:
    scenario = Path(__file__).parents[2] / "scenarios" / "mobile-trace.yaml"
    inputs = [network.inputs for network in links.planned([str(scenario)])]
    assert [named["mobile.trace"].name for named in inputs] == ["mobile.trace"] * 2


def test_a_seed_draws_the_same_network_again() -> None:
    assert links.drawn(7) == links.drawn(7) != links.drawn(8)


def test_a_changed_byte_and_a_missing_file_are_differences(tmp_path: Path) -> None:
    old = trial(tmp_path / "old", flows=b"1", links=b"2", events=b"3")
    new = trial(tmp_path / "new", flows=b"1", links=b"4")
    assert links.differing(old, new) == ["data/events", "data/links"]


def test_trials_without_files_are_not_equal(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="left no file"):
        links.differing(trial(tmp_path / "old"), trial(tmp_path / "new", flows=b"1"))


@pytest.mark.guest
@pytest.mark.parametrize("seed", [103, 147])
def test_a_network_is_the_same_with_the_cut_through_and_with_whole_stacks(
    seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Network 103 once showed that programs see the length of the kernel's command line."""
    name = kernels.ensure().identity
    assert links.main([name, name, "--whole-stack", "--networks", "1", "--seed", str(seed)]) == 0
    assert f"network {seed}: " in capsys.readouterr().out
