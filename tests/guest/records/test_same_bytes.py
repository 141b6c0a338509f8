"""The same scenario, seed and kernel give the same data for any user, in any folder, and under any load.

The limit of the claim is tested too: another seed is another run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plait
from plait import kernel as kernels

pytestmark = pytest.mark.guest

PLAIT = Path(sys.executable).parent / "plait"
GOLDEN = Path(__file__).parents[2] / "data" / "golden-digests.json"
SHORT = ("--repeat", "2", "--fresh", "--set", "traffic.0.bulk.duration=2s")


def digest(folder: Path, *options: str, prefix: tuple[str, ...] = (), **settings: object) -> str:
    """Return the digest of a short two-paths study run as a person would, in a process of its own."""
    command = [*prefix, str(PLAIT), "run", "two-paths", "--out", str(folder), "--json", *SHORT, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **settings)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["digest"])


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> str:
    return digest(tmp_path_factory.mktemp("reference") / "out")


@pytest.mark.users
def test_a_second_run_gives_the_same_digest(tmp_path: Path, reference: str) -> None:
    assert digest(tmp_path / "out") == reference


def test_another_seed_gives_other_data(tmp_path: Path, reference: str) -> None:
    assert digest(tmp_path / "out", "--seed", "2") != reference


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_any_number_of_jobs_gives_the_same_digest(tmp_path: Path, reference: str, jobs: str) -> None:
    assert digest(tmp_path / "out", "--jobs", jobs) == reference


def test_a_busy_machine_gives_the_same_digest(tmp_path: Path, reference: str) -> None:
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))
    ]
    try:
        assert digest(tmp_path / "out") == reference
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_another_directory_and_environment_give_the_same_digest(tmp_path: Path, reference: str) -> None:
    elsewhere = tmp_path / "a directory with spaces" / ("long" * 20)
    elsewhere.mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "LANG": "ja_JP.UTF-8",
        "TZ": "Asia/Tokyo",
    }
    if "PLAIT_CACHE" in os.environ:
        environment["PLAIT_CACHE"] = os.environ["PLAIT_CACHE"]
    assert digest(elsewhere / "out", cwd=elsewhere, env=environment) == reference


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user; see docs/limitations.md")
@pytest.mark.users
def test_another_user_gets_the_same_digest(tmp_path: Path, reference: str) -> None:
    """Uses a copy of the kernel, because another user may not look into this one's cache."""
    kernel = kernels.ensure()
    home = Path(
        shutil.copytree(kernel.binary.parent, tmp_path / "cache" / "kernels" / kernel.identity)
    ).parents[2]
    package = shutil.copytree(Path(plait.__file__).parent, tmp_path / "package" / "plait")
    subprocess.run(["chown", "-R", "65534:65534", str(tmp_path)], check=True)
    for parent in [tmp_path, *tmp_path.parents][:-2]:
        parent.chmod(parent.stat().st_mode | 0o011)
    interpreter = Path(sys.executable).resolve()
    if not _can_execute(interpreter):
        pytest.skip("the interpreter lies where another user cannot reach it; see docs/limitations.md")
    site = os.pathsep.join(
        [str(package.parent), *(path for path in sys.path if path.endswith("site-packages"))]
    )
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PLAIT_CACHE": str(home / "cache"),
        "PYTHONPATH": site,
    }
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", str(interpreter), "-c"]
    program = "from plait.cli import main; main()"
    out = tmp_path / "out"
    scenario = shutil.copy(PLAIT.parents[2] / "scenarios" / "two-paths.yaml", tmp_path)
    arguments = ["run", str(scenario), "--out", str(out), "--json", *SHORT]
    done = subprocess.run(
        [*command, program, *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["digest"] == reference


def _can_execute(program: Path) -> bool:
    command = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--",
        str(program),
        "-c",
        "pass",
    ]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.users
def test_the_digest_of_this_version_of_linux_is_the_golden_one(reference: str) -> None:
    """No change of plait's patches and configuration of a kernel may change data unnoticed."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    version = kernels.ensure().version
    if version not in golden:
        pytest.skip(
            f"no golden digest is recorded for Linux {version}; this run gave {reference}. "
            "See docs/limitations.md, and record it in tests/data/golden-digests.json."
        )
    assert reference == golden[version]
