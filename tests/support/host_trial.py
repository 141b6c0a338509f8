"""Run trials on the engine `host` and print what they gave, as JSON: a program for `plait exec`.

Arguments: a scenario, and how to override it; each case has a line of output. It runs as root of a guest, whose kernel
is then "this machine's".
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.engine.factory import make_engine
from plait.errors import PlaitError
from plait.plan.model.plan import Plan
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.vary.cases import expand


def processes() -> set[str]:
    """Return the PIDs of the machine, with their programs."""
    programs = set()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it has just ended
            if entry.name.isdigit() and (entry / "cmdline").read_bytes():
                programs.add(f"{entry.name} {(entry / 'comm').read_text().strip()}")
    return programs


def names(folder: str) -> list[str]:
    """Return the names in a folder; none if it does not exist."""
    return sorted(path.name for path in Path(folder).iterdir()) if Path(folder).is_dir() else []


def main() -> None:
    """Run one trial of each case."""
    scenario, *overrides = sys.argv[1:]
    for case in expand(load(scenario, tuple(overrides))):
        run(resolve(case.scenario, 1))


def run(plan: Plan) -> None:
    """Run a trial, and print what it gave."""
    notes: dict[str, object] = {}
    excluded: list[str] = []
    before, interfaces = processes(), names("/sys/class/net")
    engine = make_engine("host")
    try:
        unsupported = [missing.reason for missing in engine.unsupported(plan)]
    except PlaitError as error:
        print(json.dumps({"error": str(error), "exit_code": error.exit_code}))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine.execute(Job(plan, {}, folder, note=notes.__setitem__, exclude=excluded.append))
        tables = convert(folder / "data", folder / "tables")
        left = sorted(path.name for path in folder.iterdir())
    flow = tables["flows"].row(0, named=True)
    result = {
        "unsupported": unsupported,
        "goodput_bps": flow["received_bytes"] * 8e6 / (flow["end_us"] - flow["start_us"]),
        "completed": flow["completed"],
        "subflows": tables["subflows"]["subflow"].n_unique(),
        "notes": notes,
        "excluded": excluded,
        "files": left,
        "new_processes": sorted(processes() - before),
        "same_interfaces": names("/sys/class/net") == interfaces,
        "named_namespaces": names("/run/netns"),
        "congestion_controls": engine.inventory().congestion_controls,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
