"""Each metric of `summary.json` equals a second computation from the tables that follows the reference alone."""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING

import pytest
from compared import METRICS, Case, cases
from studies import STUDIES

from result_folders import run_unreported

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[Case]]:
    """Return the cases of each study, which the first worker of a session runs and the others read."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder if worker_id == "master" else folder.parent) / "recomputed"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return {name: run(folder, name) for name in STUDIES}


def run(folder: Path, name: str) -> list[Case]:
    scenario, out = folder / f"{name}.yaml", folder / name
    if not scenario.exists():
        scenario.write_text(STUDIES[name])
        run_unreported(scenario, out, repeat=2)
    return cases(out)


@pytest.mark.parametrize("metric", METRICS)
def test_the_tables_give_the_same_number(results: dict[str, list[Case]], metric: str) -> None:
    compared, wrong = 0, []
    for study_cases in results.values():
        for case in study_cases:
            for name, difference in case.differences(metric):
                entry = case.metrics[name]
                compared += entry is not None and entry["n"] > 0
                wrong += [f"{case.name}: {name}: {difference}"] if difference else []
    assert not wrong, "\n".join(wrong)
    assert compared, f"no study has a {metric} with a value"


def test_no_metric_is_without_a_recomputation(results: dict[str, list[Case]]) -> None:
    families = {case.family(name) for study in results.values() for case in study for name in case.metrics}
    assert families == set(METRICS)
