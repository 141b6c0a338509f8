"""A kernel's kit holds what modules need, and nothing of where and when the kernel was built."""

from __future__ import annotations

import hashlib
import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from kernel_fakes import while_waiting
from plait.cache import scratch
from plait.errors import KernelBuildError
from plait.kernel import kit

if TYPE_CHECKING:
    from pathlib import Path

KEPT = (
    "Makefile",
    ".config",
    "scripts/mod/modpost",
    "scripts/mod/modpost.c",
    "include/linux/tcp.h",
    "net/mptcp/protocol.h",
)
LEFT = (
    "net/mptcp/protocol.c",
    "net/mptcp/protocol.o",
    "include/drm/drm.h",
    "drivers/net/veth.h",
    "scripts/.a.cmd",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return _tree(tmp_path / "tree")


def _tree(root: Path) -> Path:
    for name in (*KEPT, *LEFT, "vmlinux.symvers"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def packed(tree: Path, tmp_path: Path) -> Path:
    """Return the folder of a kernel with the kit of this tree."""
    kernel = tmp_path / "kernels" / "identity"
    kernel.mkdir(parents=True)
    kit.pack(tree, kernel / kit.ARCHIVE)
    return kernel


def test_a_kit_holds_what_a_module_is_built_with_and_no_more(tree: Path, tmp_path: Path) -> None:
    out = kit.unpacked(packed(tree, tmp_path))
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert names == {*KEPT, "Module.symvers"}
    assert (out / "Module.symvers").read_text() == "vmlinux.symvers"


def test_a_kit_that_another_process_unpacks_meanwhile_is_not_unpacked_again(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second kit could not take its place ("Directory not empty")."""
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    theirs = tmp_path / "kernels" / ".kits" / "identity" / "theirs"

    def unpack() -> None:
        theirs.parent.mkdir(parents=True)
        theirs.touch()

    while_waiting(monkeypatch, unpack)
    assert list(kit.unpacked(packed(tree, tmp_path)).iterdir()) == [theirs]


def test_what_a_killed_process_left_half_made_is_removed_by_the_next_one(tmp_path: Path) -> None:
    (tmp_path / ".making-killed" / "half").mkdir(parents=True)
    with scratch(tmp_path, ".making-") as folder:
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_the_same_tree_gives_the_same_bytes_whenever_and_wherever_it_was_built(
    tree: Path, tmp_path: Path
) -> None:
    kit.pack(tree, tmp_path / "one")
    other = _tree(tmp_path / "elsewhere")
    os.utime(other / "Makefile", (1, 1))
    kit.pack(other, tmp_path / "two")
    digests = {hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("one", "two")}
    assert len(digests) == 1


def test_a_quick_kit_is_packed_again_only_if_its_content_changed(tree: Path, tmp_path: Path) -> None:
    archive = tmp_path / kit.ARCHIVE
    kit.pack(tree, archive, quick=True)
    os.utime(archive, (1, 1))
    os.utime(tree / "vmlinux.symvers")
    (tree / "net/mptcp/protocol.c").write_text("changed")
    kit.pack(tree, archive, quick=True)
    assert archive.stat().st_mtime == 1
    for name in ("net/mptcp/protocol.h", "vmlinux.symvers"):
        (tree / name).write_text("another content")
        kit.pack(tree, archive, quick=True)
        assert archive.stat().st_mtime != 1, name
        os.utime(archive, (1, 1))


def test_a_tree_without_its_symbols_is_refused(tree: Path, tmp_path: Path) -> None:
    (tree / "vmlinux.symvers").unlink()
    with pytest.raises(KernelBuildError, match=r"no vmlinux\.symvers"):
        kit.pack(tree, tmp_path / kit.ARCHIVE)


def test_a_kernel_without_a_kit_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(KernelBuildError, match="plait kernel build"):
        kit.unpacked(tmp_path)


def test_a_damaged_kit_and_a_missing_one_give_different_errors_and_leave_nothing(
    tree: Path, tmp_path: Path
) -> None:
    kernel = packed(tree, tmp_path)
    archive = kernel / kit.ARCHIVE
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(KernelBuildError, match="unpacking"):
        kit.unpacked(kernel)
    assert list((tmp_path / "kernels" / ".kits").iterdir()) == []


def test_a_kit_writes_nowhere_but_in_its_folder(tmp_path: Path) -> None:
    kernel = tmp_path / "kernels" / "identity"
    kernel.mkdir(parents=True)
    with tarfile.open(kernel / kit.ARCHIVE, "w:xz") as archive:
        archive.addfile(tarfile.TarInfo("../../../outside"))
    with pytest.raises(KernelBuildError, match="unpacking"):
        kit.unpacked(kernel)
    assert not list(tmp_path.rglob("outside"))


def test_a_kit_is_unpacked_once(tree: Path, tmp_path: Path) -> None:
    kernel = packed(tree, tmp_path)
    out = kit.unpacked(kernel)
    (kernel / kit.ARCHIVE).unlink()
    assert kit.unpacked(kernel) == out
