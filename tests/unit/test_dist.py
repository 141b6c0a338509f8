"""The distributions hold what they must, twice the same bytes; the source of the kernel's package builds its wheel."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kernel_fakes import make_archive, make_laboratory, make_tree
from plait.cache import alone
from plait.kernel import ensure, recipe
from plait.kernel.obtain import Sources

ROOT = Path(__file__).parents[2]
SECONDS = 1_800_000_000
TAG = "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"


@pytest.fixture
def dist(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the modules of tools/dist."""
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "dist"))
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    import build
    import kernel_package
    import wheel_hook

    yield type("Dist", (), {"build": build, "package": kernel_package, "hook": wheel_hook})
    for name in ("build", "bill", "kernel_package", "wheel_hook"):
        sys.modules.pop(name, None)


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_the_wheel_of_plait_is_the_same_twice_and_complete(dist: Any, tmp_path: Path) -> None:
    with alone("distributions"):  # the dry run of a release compiles the BPF programs of the same tree
        for name in ("one", "two"):
            dist.build.package(ROOT, tmp_path / name, "wheel", SECONDS)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    (wheel,) = (tmp_path / "one").iterdir()
    assert wheel.name == f"plait-0.1.0-{TAG}.whl"
    with zipfile.ZipFile(wheel) as archive:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
        metadata = archive.read("plait-0.1.0.dist-info/METADATA").decode()
    assert modes["plait/_bin/plait-agent"] == modes["plait/_bin/plait-contain"] == 0o755
    assert modes["plait/cli/__init__.py"] == 0o644
    wanted = ("plait/scenario/shipped/two-paths.yaml", "plait/kernel/laboratory/config/laboratory.config")
    assert set(wanted) <= set(modes)
    assert "Requires-Dist: plait-kernel==0.1.0; extra == 'kernel'" in metadata
    assert "License-Expression: Apache-2.0 AND GPL-2.0-only" in metadata


def test_all_versions_are_one() -> None:
    from plait.version import __version__

    for name in ("pyproject.toml", "packaging/plait-kernel/pyproject.toml"):
        assert f'\nversion = "{__version__}"\n' in (ROOT / name).read_text()
    assert f'"plait-kernel=={__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_a_program_that_needs_a_c_library_is_refused(dist: Any) -> None:
    dist.hook.check_static(ROOT / "src/plait/_bin/plait-agent")
    with pytest.raises(ValueError, match="not static"):
        dist.hook.check_static(Path("/bin/true"))
    with pytest.raises(ValueError, match="make setup"):
        dist.hook.check_static(ROOT / "src/plait/_bin/none")


def test_the_source_of_the_kernel_is_complete_and_builds_the_same_kernel(
    dist: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(recipe, "LABORATORY", make_laboratory(tmp_path / "laboratory"))
    (recipe.LABORATORY / "COPYING").write_text("GPL\n")
    (recipe.LABORATORY / "queues").mkdir()
    (recipe.LABORATORY / "queues" / "Makefile").write_text("obj-y := queue.o\n")
    tree = make_tree(tmp_path / "linux-source-6.12", 'test "$$(cat file.c)" = after')
    (tree / "LICENSES" / "preferred").mkdir(parents=True)
    (tree / "LICENSES" / "preferred" / "LGPL-2.1").write_text("LGPL\n")
    archive = make_archive(tree)
    sources = Sources(installed=(archive.parent,), fetched=())
    kernel = ensure(sources=sources)
    for name in ("one", "two"):
        linux = dist.package.pruned(
            dist.package.source_archive(kernel, sources, None), tmp_path / name / "work"
        )
        stage = tmp_path / name / "stage"
        dist.package.fill(stage, kernel, linux, SECONDS)
        for target in ("wheel", "sdist"):
            dist.build.package(stage, tmp_path / name / "out", target, SECONDS)
    assert hashes(tmp_path / "one" / "out") == hashes(tmp_path / "two" / "out")

    wheel = tmp_path / "one" / "out" / f"plait_kernel-0.1.0-{TAG}.whl"
    with zipfile.ZipFile(wheel) as content:
        assert gzip.decompress(content.read("plait_kernel/linux.gz")) == kernel.binary.read_bytes()
        names = set(content.namelist())
    licences = {f"plait_kernel-0.1.0.dist-info/licenses/{name}" for name in ("COPYING", "COPYING.LIB")}
    assert licences | {"plait_kernel/build.json", "plait_kernel/kit.tar.xz", "plait_kernel/config"} <= names

    with tarfile.open(tmp_path / "one" / "out" / "plait_kernel-0.1.0.tar.gz") as source:
        names = {entry.name.partition("/")[2] for entry in source}
        assert "plait_kernel/linux.gz" not in names
        subprocess.run(["tar", "--extract", f"--file={source.name}", f"--directory={tmp_path}"], check=True)
    patches = {"patches/01-0001-change.patch"}
    assert patches | {"linux.tar.xz", "laboratory.config", "settings", "added/net/plait/Makefile"} <= names
    again = tmp_path / "plait_kernel-0.1.0"
    subprocess.run([again / "build-kernel"], check=True, capture_output=True, timeout=300)
    assert gzip.decompress((again / "plait_kernel/linux.gz").read_bytes()) == kernel.binary.read_bytes()
    shutil.rmtree(again)


def test_another_source_than_the_one_of_the_kernel_is_refused(
    dist: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(recipe, "LABORATORY", make_laboratory(tmp_path / "laboratory"))
    kernel = ensure(source=make_archive(make_tree(tmp_path / "linux-source-6.12")))
    other = tmp_path / "linux-source-6.12.117.tar.xz"
    other.write_bytes(b"another")
    with pytest.raises(SystemExit, match="is not the archive it was built from"):
        dist.package.source_archive(kernel, Sources((), ()), other)
