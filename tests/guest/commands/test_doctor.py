"""`plait doctor` runs a trial where it can, and names the remedy where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.guest, pytest.mark.users]

PLAIT = Path(sys.executable).parent / "plait"


def test_the_doctor_runs_a_trial_where_one_can_run() -> None:
    done = subprocess.run([str(PLAIT), "doctor"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10000 bytes arrived" in done.stdout


def test_a_machine_without_a_kernel_gets_the_command_that_builds_one_and_hears_of_bpf(tmp_path: Path) -> None:
    environment = os.environ | {"PLAIT_CACHE": str(tmp_path)}
    done = subprocess.run(
        [str(PLAIT), "doctor"], capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert done.returncode == 3
    assert "plait kernel build" in done.stdout
    assert "\nbpf " in done.stdout
