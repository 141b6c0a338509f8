"""Run the tests that boot guests on another kernel than plait's default, and print a table of their results.

    python bench/newer_kernel.py KERNEL [TEST..]

KERNEL is a kernel of the cache, as `--kernel` takes it. TEST are files or folders of tests; without any, those of
`make test` that boot a guest. The script gives the tests a cache of their own, in which KERNEL is the default kernel.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from plait import kernel as kernels
from plait.cache import cache_root
from plait.kernel import cache, recipe

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    *(
        f"tests/guest/{name}"
        for name in ("mptcp", "networks", "records", "programs", "commands", "prototype")
    ),
    *(f"tests/{name}" for name in ("links", "physics", "coupling", "engines")),
)
TIMEOUT_S = 6 * 3600


def as_default(kernel: kernels.Kernel, folder: Path) -> None:
    """Copy the kernel to the cache in `folder`, where plait takes it for the one of its recipe.

    The stock kernels of the engine `machine` are those of the user's cache.
    """
    (folder / "stock").symlink_to(cache_root() / "stock")
    copy = folder / "kernels" / kernel.identity
    shutil.copytree(kernel.binary.parent, copy)
    record = next(record for built, record in kernels.list_built() if built.identity == kernel.identity)
    changes = {"recipe_sha256": recipe.load().sha256, "chosen_by_default": True, "label": None}
    cache.write_record(copy, record.model_copy(update=changes))


def results(report: Path) -> tuple[dict[str, Counter[str]], list[str]]:
    """Return the counts of each folder in a JUnit file, and a line for each test that failed or was skipped."""
    counts: dict[str, Counter[str]] = {}
    lines = []
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - a file that this script had written
        *folders, _file = case.get("classname", "").split(".")
        bad = next((child for child in case if child.tag in {"failure", "error", "skipped"}), None)
        outcome = "passed" if bad is None else "skipped" if bad.tag == "skipped" else "failed"
        counts.setdefault("/".join(folders), Counter())[outcome] += 1
        if bad is not None:
            reason = (bad.get("message") or "").splitlines() or [""]
            lines.append(f"{outcome}: {case.get('classname')}.{case.get('name')}: {reason[0][:160]}")
    return counts, lines


def main() -> int:
    """Run the tests of the command line, or all that boot guests."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kernel")
    parser.add_argument("test", nargs="*", default=TESTS)
    options = parser.parse_args()
    kernel = kernels.find(options.kernel)
    with tempfile.TemporaryDirectory() as scratch:
        as_default(kernel, Path(scratch))
        report = Path(scratch) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-v", "--no-header", "--tb=line", f"--junitxml={report}"]
        environment = {**os.environ, "PLAIT_CACHE": scratch}
        subprocess.run([*command, *options.test], cwd=ROOT, env=environment, timeout=TIMEOUT_S, check=False)
        counts, lines = results(report)
    print(f"\n| tests on {kernel.version} | passed | failed | skipped |\n| -- | -: | -: | -: |")
    for folder, count in sorted(counts.items()):
        print(f"| `{folder}` | {count['passed']} | {count['failed']} | {count['skipped']} |")
    print("\n".join(lines))
    return 1 if any(count["failed"] for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
