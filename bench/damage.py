"""Damage files of a result folder in many ways, and check how every verb handles the folder.

    bench/damage.py [N] [SEED]     each way on each file once, then N random ones

A verb passes if it raises no error, or one of plait's errors that names the folder. Otherwise the exit code is 1.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from plait.errors import PlaitError

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "security"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from hostile import DAMAGES, study, use_everywhere


def main() -> None:
    """Damage the files, and print the number of each outcome."""
    random_count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    choose = random.Random(seed)
    ends: Counter[str] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        good = study(root / "good")
        files = sorted(
            path.relative_to(good)
            for path in good.rglob("*")
            if path.is_file() and path.parent.name not in ("figures", "001")
        )
        attempts = [(file, damage) for file in files for damage in DAMAGES]
        attempts += [
            (choose.choice(files), choose.choice(("flipped", "swapped", "cut"))) for _ in range(random_count)
        ]
        for file, damage in attempts:
            bad = Path(shutil.copytree(good, root / "bad"))
            (root / "scratch").mkdir()
            DAMAGES[damage](bad / file, choose)
            began = time.monotonic()
            raised = use_everywhere(bad, good, root / "scratch")
            slowest = max(slowest, time.monotonic() - began)
            ends["refused" if raised else "done"] += 1
            for verb, error in raised.items():
                if not isinstance(error, PlaitError) or str(bad) not in str(error):
                    ends["BAD"] += 1
                    print(f"{file} {damage} {verb}:", flush=True)
                    traceback.print_exception(error, limit=-3)
            shutil.rmtree(bad)
            shutil.rmtree(root / "scratch")
    print(
        f"{len(attempts)} damaged folders (seed {seed}): {dict(ends)}; at most {slowest:.1f} s for seven verbs"
    )
    sys.exit(1 if ends["BAD"] else 0)


if __name__ == "__main__":
    main()
