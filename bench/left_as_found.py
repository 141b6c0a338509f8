"""Draws histories of a real host's settings, and compares the state afterwards with that before.

A history has endpoints with any id, flags and address, limits, sysctls, connections of users, and the death of one
process. tests/remote/settings_histories.py makes those of sessions; lasting_histories.py beside it makes those of
`plait undo`. `make test` runs some of each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "tests" / "remote"
PROGRAMS = {"sessions": "settings_histories.py", "changes that stay": "lasting_histories.py"}


def main() -> int:
    """Run the histories, and print what they did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=300)
    count = parser.parse_args().histories
    return max([run(subject, FOLDER / program, count) for subject, program in PROGRAMS.items()])


def run(subject: str, program: Path, count: int) -> int:
    """Run a program of histories, print what they did, and return 0 if all were left as found."""
    started = time.monotonic()
    namespaces = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    command = [*namespaces, sys.executable, str(program), str(count)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode != 0:
        sys.stdout.write(answer.stdout)
        return 1
    counts = json.loads(answer.stdout.splitlines()[-1])
    sys.stdout.write(
        f"{subject}: {counts['histories']} histories in {time.monotonic() - started:.0f} s, all left as found\n"
    )
    sys.stdout.writelines(f"  {name}: {number}\n" for name, number in counts.items())
    return 0


if __name__ == "__main__":
    sys.exit(main())
