"""The kernel of the installed package: unpacked once, verified, and used only if plait would build the same one."""

from __future__ import annotations

import gzip
import platform
import shutil
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from kernel_fakes import make_archive, make_laboratory, make_tree
from plait.errors import KernelBuildError, MachineError, RequestError
from plait.kernel import built_by_default, cache, ensure, find, list_built, packaged, recipe
from plait.kernel.model import BuildRecord, SourceRecord
from plait.kernel.obtain import Sources

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = Sources((), ())
KERNEL = b"a kernel"


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PLAIT_BUILD", raising=False)
    monkeypatch.setattr(recipe, "LABORATORY", make_laboratory(tmp_path / "laboratory"))
    monkeypatch.setattr(packaged, "_folder", lambda: None)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package whose kernel has the recipe of this plait."""
    folder = tmp_path / "plait_kernel"
    folder.mkdir()
    (folder / "linux.gz").write_bytes(gzip.compress(KERNEL, mtime=0))
    (folder / "config").write_text("CONFIG_HZ=250\n")
    (folder / "kit.tar.xz").write_bytes(b"kit")
    write_record(folder, recipe.load().sha256)
    monkeypatch.setattr(packaged, "_folder", lambda: folder)
    return folder


def write_record(folder: Path, recipe_sha256: str) -> None:
    record = BuildRecord(
        schema_version=1, identity="ab" * 32, version="6.12.7", hz=250, recipe_sha256=recipe_sha256,
        chosen_by_default=True, compiler="gcc", binary_sha256=sha256(KERNEL).hexdigest(), binary_bytes=len(KERNEL),
        source=SourceRecord(kind="distribution", name="linux-source-6.12.tar.xz", content_sha256="c"),
        built_at="2026-01-01T00:00:00+00:00", build_s=None, jobs=None,
    )  # fmt: skip
    cache.write_record(folder, record)


@pytest.mark.usefixtures("package")
def test_the_kernel_of_the_package_is_the_default_without_any_source() -> None:
    steps: list[str] = []
    kernel = ensure(sources=NOTHING, progress=lambda step, _fraction: steps.append(step))
    assert kernel.binary.read_bytes() == KERNEL
    assert kernel.binary.stat().st_mode & 0o111
    assert [record.packaged for _, record in list_built()] == [True]
    assert steps == ["unpacking the kernel of the package plait-kernel"]
    assert ensure(sources=NOTHING, progress=lambda step, _fraction: steps.append(step)) == kernel
    assert len(steps) == 1


def test_it_is_found_by_name_and_without_a_build(package: Path) -> None:
    assert find("6.12.7-abababab").binary.read_bytes() == KERNEL
    assert built_by_default() == find("abab")
    shutil.rmtree(package)  # from now on the cache has it


def test_a_package_of_another_recipe_is_not_the_default_but_found_by_name(package: Path) -> None:
    write_record(package, "another recipe")
    with pytest.raises(KernelBuildError, match="finding the source"):
        ensure(sources=NOTHING)
    assert find("6.12.7").binary.read_bytes() == KERNEL


@pytest.mark.usefixtures("package")
def test_plait_build_ignores_the_package_and_its_kernel_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure(sources=NOTHING)
    monkeypatch.setenv("PLAIT_BUILD", "1")
    assert built_by_default() is None
    archive = make_archive(make_tree(tmp_path / "linux-source-6.12"))
    kernel = ensure(sources=Sources(installed=(archive.parent,), fetched=()))
    assert kernel.identity != "ab" * 32
    assert built_by_default() == kernel


@pytest.mark.parametrize("damage", ["kernel", "gzip", "record", "missing"])
def test_a_damaged_package_is_refused_with_the_command_that_repairs_it(package: Path, damage: str) -> None:
    if damage == "kernel":
        (package / "linux.gz").write_bytes(gzip.compress(b"another", mtime=0))
    elif damage == "gzip":
        (package / "linux.gz").write_bytes((package / "linux.gz").read_bytes()[:-6])
    elif damage == "record":
        (package / "build.json").write_text("{}")
    else:
        (package / "build.json").unlink()
    with pytest.raises(KernelBuildError, match="pip install --force-reinstall --no-deps plait-kernel"):
        ensure(sources=NOTHING)
    assert list_built() == []
    assert not list(cache.kernels_root().glob(".building-*"))


@pytest.mark.usefixtures("package")
def test_a_kernel_that_changed_in_the_cache_is_unpacked_again() -> None:
    kernel = ensure(sources=NOTHING)
    kernel.binary.write_bytes(b"A kernel")
    assert ensure(sources=NOTHING).binary.read_bytes() == KERNEL


def test_without_compilers_plait_says_how_to_get_a_built_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(MachineError, match=r"apt-get install .*gcc.*pip install 'plait\[kernel\]"):
        ensure(sources=NOTHING)


def test_another_processor_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(MachineError, match=r"an aarch64 processor.*x86-64 only"):
        ensure(sources=NOTHING)


def test_without_the_package_a_name_is_looked_up_in_the_cache_alone() -> None:
    with pytest.raises(RequestError, match="no kernel is built yet"):
        find("6.12")
