"""Compares the engines virtual and machine on ten shipped scenarios, with `plait crosscheck`.

Each scenario is shortened, because a machine takes 20 to 100 times as long. The settings are those of the table below;
docs/explanation/engines.md records the figures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

TIMEOUT_S = 3600
SCENARIOS: dict[str, tuple[str, ...]] = {
    "two-paths": ("two-paths", "traffic.0.bulk.duration=5s"),
    "unequal paths": ("wifi-cellular", "traffic.0.bulk.duration=5s", "vary={transport: [tcp, mptcp]}"),
    "handover": ("handover", "vary={transport: [mptcp]}"),
    "request-response": ("request-response", "traffic.*.*.duration=5s"),
    "simult-flows": ("simult-flows", "vary={transport: [mptcp]}"),
    "lossy": (
        "lossy-paths",
        "traffic.*.bulk.duration=10s",
        "measure.from=2s",
        "mptcp.scheduler=default",
        "vary={transport: [mptcp]}",
    ),
    "aqm": ("two-paths", "traffic.0.bulk.duration=5s", "network.links.*.aqm=codel"),
    "many paths": ("n-paths", "traffic.0.bulk.duration=5s", "vary={transport: [mptcp]}"),
    "streams": ("video-stream", "traffic.0.stream.duration=5s"),
    "large buffers": ("large-buffers", "traffic.0.transfer.bytes=10MB", "vary={transport: [mptcp]}"),
}
"""The title of a row: the shipped scenario, and the fields to set."""


def check(title: str, repeat: int, folder: Path) -> dict[str, Any] | str:
    """Return the comparison of one scenario as JSON, or why there is none."""
    scenario, *fields = SCENARIOS[title]
    command = [sys.executable, "-c", "from plait.cli import main; main()", "crosscheck", scenario, "--json"]
    command += ["--repeat", str(repeat), "--out", str(folder / title.replace(" ", "-"))]
    for field in fields:
        command += ["--set", field]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if answer.returncode not in (0, 1) or not answer.stdout.startswith("{"):
        return answer.stderr.strip().splitlines()[-1] if answer.stderr else f"exit code {answer.returncode}"
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def main() -> None:
    """Compare all scenarios, or those given, and print the largest difference of each metric."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("titles", nargs="*", metavar="TITLE", help=", ".join(SCENARIOS))
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--out", type=Path, help="keep the result folders here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for title in options.titles or SCENARIOS:
            _show(title, check(title, options.repeat, options.out or Path(name)))


def _show(title: str, found: dict[str, Any] | str) -> None:
    """Print the differences of one scenario as soon as they are known."""
    if isinstance(found, str):
        sys.stdout.write(f"{title}: {found}\n")
        return
    table = Table("case", "metric", "virtual", "machine", "difference", "verdict", title=title)
    for row in found["differences"]:
        table.add_row(row["case"], row["metric"], *map(_number, _values(row)), row["verdict"])
    Console(width=120).print(table)
    sys.stdout.flush()


def _values(row: dict[str, Any]) -> list[float | None]:
    parts = (row["expected"], row["measured"], row["difference"])
    return [None if part is None else part["value"] for part in parts]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


if __name__ == "__main__":
    main()
