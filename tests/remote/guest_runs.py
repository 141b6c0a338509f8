"""Commands of plait between planted lines in a guest (`lines_in_guest.py`), and what qdiscs plant."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from real_hosts import SSHD
from result_folders import ONLY_TRIALS, summary_json

NEEDS_SSHD = pytest.mark.skipif(
    not Path(SSHD).exists() or shutil.which("ssh") is None,
    reason="needs openssh-server; see docs/limitations.md",
)
PROGRAM = Path(__file__).with_name("lines_in_guest.py")


def in_guest(folder: Path, request: dict[str, Any], *options: str, code: int = 0) -> str:
    """Run a command of plait between planted lines in a guest, with `options` of `plait exec`; return its output.

    The command must end with `code`.
    """
    path = folder / "request.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    plait = [sys.executable, "-c", "from plait.cli import main; main()", "exec", "--rw", str(folder)]
    done = subprocess.run(
        [
            *plait,
            "--env",
            "PYTHONDONTWRITEBYTECODE=1",
            "--env",
            f"PLAIT_CACHE={folder / 'cache'}",
            *options,
            "--",
            sys.executable,
            str(PROGRAM),
            str(folder),
            str(path),
        ],
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    left = json.loads(done.stdout.splitlines()[-1])["left"]
    assert not any(left.values()), left
    return done.stdout + done.stderr


def netem(delay_ms: float, *, loss: float = 0.0) -> str:
    return f"netem delay {delay_ms}ms limit 10000" + (f" loss {loss}%" if loss else "")


def tbf(mbit: float, queue: int = 60_000, bucket: tuple[int, float] | None = None) -> str:
    """A rate; with `bucket` (bytes, peak in Mbit/s) it is the baseline."""
    burst, peak = bucket or (5000, None)
    limit = f"tbf rate {round(mbit * 1000)}kbit burst {burst}b limit {queue}b"
    return limit if peak is None else f"{limit} peakrate {round(peak * 1000)}kbit mtu 1540"


def measure(folder: Path, lines: list[Any], rate: str) -> str:
    """Run `plait lines` over real sshd in a guest, with at most `rate`, and return the scenario that it writes."""
    options = ("--hosts", "{hosts}", "--ssh-config", "{ssh_config}", "--out", "{folder}/lines.yaml")
    limits = f"rate: {rate}, bytes: 2GB, time: 1h"
    in_guest(folder, {"lines": lines, "limits": limits, "command": ["lines", *options]})
    return (folder / "lines.yaml").read_text(encoding="utf-8")


def lines_from_home(folder: Path, lines: list[Any], *options: str, code: int = 0, **request: Any) -> str:
    """Run `plait lines` at a home in a guest (`home_lines.py`), and return what it prints."""
    words = ("--server", "vps", "--ssh-config", "{ssh_config}", "--out", "{folder}/lines.yaml", *options)
    return in_guest(
        folder, {"lines": lines, "home": True, "command": ["lines", *words], **request}, code=code
    )


def run_scenario(folder: Path, text: str, lines: list[Any], *options: str) -> dict[str, Any]:
    """Run a scenario over real sshd in a guest, without a report, and return the metrics of its first case."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(text, encoding="utf-8")
    command = [
        "run",
        str(scenario),
        "--engine",
        "remote",
        "--hosts",
        "{hosts}",
        "--ssh-config",
        "{ssh_config}",
    ]
    request = {
        "lines": lines,
        "limits": "rate: 100mbit, bytes: 1GB, time: 600s",
        "command": [*command, *options, *ONLY_TRIALS, "--out", "{folder}/out"],
    }
    in_guest(folder, request)
    metrics: dict[str, Any] = summary_json(folder / "out")["cases"][0]["metrics"]
    return metrics
