"""The core needs none of the extras: without their folders it imports, plans, runs a scenario and reports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plait

pytestmark = pytest.mark.guest

PACKAGE = Path(plait.__file__).parent
EXTRAS = (
    *(
        "artefact",
        "benchmark",
        "importers",
        "measure",
        "observe",
        "prototype",
        "testing",
        "view",
        "study/executors/cluster",
    ),
    *("api/bisection.py", "kernel/bisect.py"),
    *("results/dataset.py", "results/export.py", "results/flent.py", "results/perfetto.py"),
)
"""What no module of the core imports, below `src/plait`: each has a verb or an option that imports it."""
PLAIT = "from plait.cli import main; main()"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the package that has no extras."""
    root = tmp_path_factory.mktemp("core")
    package = root / "src" / "plait"
    shutil.copytree(PACKAGE, package, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "_bin"))
    (package / "_bin").symlink_to(PACKAGE / "_bin")
    for part in ("agent", "kernel", "programs", "scenarios"):
        (root / part).symlink_to(PACKAGE.parents[1] / part)
    for extra in EXTRAS:
        path = package / extra
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return root


def python(core: Path, *arguments: str) -> str:
    """Return what Python prints with the core alone."""
    environment = os.environ | {"PYTHONPATH": str(core / "src")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", *arguments],
        cwd=core,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_of_the_core_imports(core: Path) -> None:
    modules = [
        ".".join(path.relative_to(core / "src").with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((core / "src" / "plait").rglob("*.py"))
    ]
    assert len(modules) > 300
    lines = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    assert python(core, f"{lines}; import plait; print(plait.__file__)", *modules).strip() == str(
        core / "src" / "plait" / "__init__.py"
    )


def test_the_core_plans_runs_and_reports(core: Path) -> None:
    assert '"schema": 1' in python(core, PLAIT, "plan", "two-paths")
    python(core, PLAIT, "run", "two-paths", "--set", "repeat=2", "--out", "results")
    assert (core / "results" / "report.html").stat().st_size > 100_000
    (core / "results" / "summary.json").unlink()
    assert "MPTCP" in python(core, PLAIT, "report", "results")
    assert (core / "results" / "summary.json").exists()
