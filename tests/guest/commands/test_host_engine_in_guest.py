"""The engine `host` in the laboratory kernel gives what the engine `virtual` gives, and leaves nothing behind.

`plait exec` boots that kernel, which has every queue and scheduler, with a virtual clock: no load of the real machine
disturbs the trials.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executing import ENVIRONMENT, run

if TYPE_CHECKING:
    from conftest import RunTrial

PROGRAM = Path(__file__).parents[2] / "support" / "host_trial.py"
OVERRIDES = ("traffic.0.bulk.duration=3s",)


@pytest.fixture(scope="module")
def host_trials() -> list[dict[str, Any]]:
    """Return what a trial of each case of `two-paths` gives in one guest."""
    variables = [f"PYTHONPATH={ENVIRONMENT['PYTHONPATH']}", "PLAIT_CACHE=/tmp/cache"]
    program = ["env", *variables, sys.executable, str(PROGRAM)]
    done = run("--memory", "1GiB", "--", *program, "two-paths", *OVERRIDES, timeout_s=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.guest
@pytest.mark.parametrize("case", [0, 1])
def test_host_and_virtual_agree_on_one_kernel(
    case: int, host_trials: list[dict[str, Any]], run_trial: RunTrial
) -> None:
    assert len(host_trials) == 2
    result = host_trials[case]
    assert result["unsupported"] == []
    assert result["completed"]
    assert result["subflows"] == case + 1
    assert result["excluded"] == []
    assert result["notes"]["lateness_p99_us"] < 1000
    assert result["new_processes"] == []
    assert result["named_namespaces"] == []
    assert result["same_interfaces"]
    assert "cubic" in result["congestion_controls"]
    flow = run_trial("two-paths", case=case, overrides=OVERRIDES).tables["flows"].row(0, named=True)
    virtual_bps = flow["received_bytes"] * 8e6 / (flow["end_us"] - flow["start_us"])
    assert result["goodput_bps"] == pytest.approx(virtual_bps, rel=0.02)


@pytest.mark.guest
def test_the_suite_of_all_engines_holds_for_host_in_the_laboratory_kernel() -> None:
    variables = [f"PYTHONPATH={ENVIRONMENT['PYTHONPATH']}", "PLAIT_CACHE=/tmp/cache"]
    tests = Path(__file__).parents[2] / "engines" / "test_engines.py"
    pytest_command = [
        sys.executable,
        "-m",
        "pytest",
        "-n0",
        "-q",
        "-p",
        "no:cacheprovider",
        # Without it pytest shares a directory with the root of this machine, who may have run tests too.
        "--basetemp=/tmp/host-engine-in-guest",
        "-k",
        "host",
        str(tests),
    ]
    done = run("--memory", "1GiB", "--", "env", *variables, *pytest_command, timeout_s=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout
