"""A kernel of a git tree: commits and working files, patches that apply or name their hunk, and a tree left alone."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from kernel_fakes import make_laboratory, make_tree
from plait.cli import app
from plait.engine.machine import trial as machine
from plait.engine.request import EngineRequest
from plait.errors import KernelBuildError, MachineError, RequestError
from plait.kernel import build, cache, find, recipe
from plait.kernel.from_tree import TreeRequest, build_tree

if TYPE_CHECKING:
    from pathlib import Path

BAD = "--- a/other.c\n+++ b/other.c\n@@ -1 +1 @@ int f(void)\n-absent\n+new\n"


def git(tree: Path, *arguments: str) -> str:
    identity = ["-c", "maintenance.auto=false", "-c", "user.name=Dev", "-c", "user.email=dev@example.org"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=tree, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git tree of two commits; the second one changes other.c."""
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(recipe, "LABORATORY", make_laboratory(tmp_path / "laboratory"))
    tree = make_tree(tmp_path / "linux")
    (tree / "other.c").write_text("one\n")
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "one")
    (tree / "other.c").write_text("two\n")
    git(tree, "commit", "-qam", "two")
    return tree


def checkout() -> Path:
    return next((cache.kernels_root() / ".trees").glob("*/"))


def test_a_commit_is_built_from_git_and_found_by_its_name(tree: Path) -> None:
    kernel = build_tree(TreeRequest(tree, "HEAD~1", label="before"))
    assert (checkout() / "other.c").read_text() == "one\n"
    assert (checkout() / "file.c").read_text() == "after\n"
    assert cache.find("before").identity == kernel.identity


def test_the_list_of_kernels_shows_the_commit_and_the_options(tree: Path, tmp_path: Path) -> None:
    commit = git(tree, "rev-parse", "HEAD~1").strip()[:12]
    (fragment := tmp_path / "small.config").write_text("# CONFIG_MPTCP is not set\n")
    build_tree(TreeRequest(tree, "HEAD~1", fragments=(fragment,), label="small"))
    shown = CliRunner().invoke(app, ["kernel", "list"]).output
    assert f"from {tree.name} HEAD~1 ({commit}), --config small.config, 20" in shown
    (tree / "other.c").write_text("three\n")
    build_tree(TreeRequest(tree, label="after"))
    commit = git(tree, "rev-parse", "HEAD").strip()[:12]
    assert (
        f"from {tree.name} working files ({commit}), 20" in CliRunner().invoke(app, ["kernel", "list"]).output
    )


def test_without_a_commit_the_uncommitted_changes_are_built(tree: Path) -> None:
    committed = build_tree(TreeRequest(tree, "HEAD"))
    assert build_tree(TreeRequest(tree)).identity == committed.identity
    (tree / "other.c").write_text("three\n")
    (tree / "new.c").write_text("new\n")
    assert build_tree(TreeRequest(tree)).identity != committed.identity
    assert (checkout() / "other.c").read_text() == "three\n"
    assert (checkout() / "new.c").read_text() == "new\n"


def test_no_file_of_the_tree_changes(tree: Path) -> None:
    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file()}

    (tree / "other.c").write_text("three\n")
    before = content()
    build_tree(TreeRequest(tree))
    assert content() == before


def test_products_of_the_last_build_stay_and_only_changed_files_are_written(tree: Path) -> None:
    build_tree(TreeRequest(tree, "HEAD~1"))
    product, unchanged = checkout() / "linux", (checkout() / "file.c").stat().st_mtime_ns
    product.with_name("old.o").write_text("object")
    build_tree(TreeRequest(tree, "HEAD"))
    assert product.with_name("old.o").exists()
    assert (checkout() / "file.c").stat().st_mtime_ns == unchanged


def test_another_configuration_starts_from_the_products_of_the_first(tree: Path, tmp_path: Path) -> None:
    build_tree(TreeRequest(tree, "HEAD~1"))
    first = checkout()
    (first / "old.o").write_text("object")
    for name in ("checkStat", "trustctime"):  # as if an earlier version had made the first
        git(first, "config", "--unset", f"core.{name}")
    times = {name: (first / name).stat().st_mtime_ns for name in ("file.c", "other.c")}
    fragment = tmp_path / "more.config"
    fragment.write_text("# CONFIG_MPTCP is not set\n")
    build_tree(TreeRequest(tree, "HEAD", fragments=(fragment,)))
    second = next(path for path in first.parent.glob("*/") if path != first)
    assert (second / "old.o").read_text() == "object"
    assert (second / "file.c").stat().st_mtime_ns == times["file.c"]
    assert [(folder / "other.c").read_text() for folder in (first, second)] == ["one\n", "two\n"]


def test_a_tree_is_configured_again_only_if_its_kconfig_files_or_the_options_changed(
    tree: Path, tmp_path: Path
) -> None:
    (tree / "Kconfig").write_text("config ONE\n")
    makefile = (tree / "Makefile").read_text()
    lines = "\tmkdir -p include/config\n\tprintf 'deps_config := \\\\\\n\\tKconfig\\n' > include/config/auto.conf.cmd\n"
    (tree / "Makefile").write_text(makefile.replace("linux:\n", f"linux:\n{lines}"))

    def configures(**changes: tuple[Path, ...]) -> bool:
        build_tree(TreeRequest(tree, **changes))
        log = checkout().with_name(f"{checkout().name}.log").read_text()
        return "allnoconfig" in log

    assert configures()
    (tree / "other.c").write_text("three\n")
    assert not configures()
    (tree / "Kconfig").write_text("config TWO\n")
    assert configures()
    (tree / "other.c").write_text("four\n")
    assert not configures()


def test_a_patch_of_the_user_is_built_in(tree: Path, tmp_path: Path) -> None:
    patch = tmp_path / "mine.patch"
    patch.write_text(BAD.replace("absent", "two"))
    assert build_tree(TreeRequest(tree, patches=(patch,))).identity != build_tree(TreeRequest(tree)).identity


def test_a_patch_that_does_not_apply_is_refused_with_its_hunk(tree: Path, tmp_path: Path) -> None:
    patch = tmp_path / "mine.patch"
    patch.write_text(BAD)
    with pytest.raises(
        KernelBuildError, match=r"mine\.patch: the tree differs at other\.c:1, hunk @@ -1 \+1 @@"
    ):
        build_tree(TreeRequest(tree, patches=(patch,)))


def test_a_patch_that_git_cannot_merge_is_refused_with_its_hunk(tree: Path, tmp_path: Path) -> None:
    (tree / "other.c").write_text("mine\n")
    patch = tmp_path / "mine.patch"
    patch.write_text(git(tree, "diff", "--full-index") + "\n")
    (tree / "other.c").write_text("theirs\n")
    with pytest.raises(
        KernelBuildError, match=r"mine\.patch: the tree differs at other\.c:1, hunk @@ -1 \+1 @@"
    ):
        build_tree(TreeRequest(tree, patches=(patch,)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "no diff\n",
            "applying mine.patch: it has no diff; give what `git diff` or `git format-patch` writes",
        ),
        (
            BAD.replace("-1 +1", "-1,5 +1,5"),
            "applying mine.patch: git cannot read it: corrupt patch at line 6; ",
        ),
    ],
)
def test_a_file_that_is_no_patch_is_refused_as_such(
    tree: Path, tmp_path: Path, content: str, message: str
) -> None:
    patch = tmp_path / "mine.patch"
    patch.write_text(content)
    with pytest.raises(KernelBuildError, match=message):
        build_tree(TreeRequest(tree, patches=(patch,)))


def test_a_patch_of_plait_that_does_not_apply_can_be_left_out(tree: Path) -> None:
    (tree / "file.c").write_text("rewritten\n")
    with pytest.raises(KernelBuildError, match="leave it out with --without 0001-change"):
        build_tree(TreeRequest(tree))
    build_tree(TreeRequest(tree, without=("0001-change",)))
    assert (checkout() / "file.c").read_text() == "rewritten\n"


def test_a_fragment_changes_the_configuration_and_the_identity(tree: Path, tmp_path: Path) -> None:
    fragment = tmp_path / "more.config"
    fragment.write_text("# CONFIG_MPTCP is not set\n")
    plain = build_tree(TreeRequest(tree))
    changed = build_tree(TreeRequest(tree, fragments=(fragment,)))
    assert plain.identity != changed.identity
    assert "# CONFIG_MPTCP is not set" in (changed.binary.parent / "config").read_text()


@pytest.mark.parametrize("line", ["MPTCP yes", "CONFIG_MPTCP: y", "CONFIG_MPTCP is not set", " CONFIG_HZ=1"])
def test_a_line_of_a_fragment_that_is_no_option_is_refused_with_its_number(
    tree: Path, tmp_path: Path, line: str
) -> None:
    fragment = tmp_path / "more.config"
    fragment.write_text(f"# why\n\nCONFIG_MPTCP=y\n{line}\n")
    with pytest.raises(KernelBuildError, match=r"more\.config:4: .* write CONFIG_NAME=VALUE or "):
        build_tree(TreeRequest(tree, fragments=(fragment,)))


def test_a_patch_to_leave_out_has_to_be_named_without_doubt(tree: Path) -> None:
    """The patches of each folder of plait are numbered from 1."""
    folder = recipe.LABORATORY / recipe.PATCH_FOLDERS[-1] / "6.12"
    (folder / "0001-other.patch").write_text(
        "Subject: other\n\nWhy.\n---\n--- a/other.c\n+++ b/other.c\n@@ -1 +1 @@\n-two\n+three\n"
    )
    with pytest.raises(RequestError, match=r"several patches begin so \(0001-change, 0001-other\)"):
        build_tree(TreeRequest(tree, without=("0001",)))
    build_tree(TreeRequest(tree, without=("0001-o",)))
    assert [(checkout() / name).read_text() for name in ("file.c", "other.c")] == ["after\n", "two\n"]


@pytest.mark.parametrize(
    ("request_of", "message"),
    [
        (lambda tree: TreeRequest(tree / "none"), "there is no such folder"),
        (lambda tree: TreeRequest(tree.parent), "this is no git tree"),
        (lambda tree: TreeRequest(tree, "v9.9"), "git knows no commit 'v9.9'"),
        (lambda tree: TreeRequest(tree, "--all"), "git knows no commit '--all'"),
        (lambda tree: TreeRequest(tree, without=("0007",)), "it has: 0001-change"),
        (lambda tree: TreeRequest(tree, label="6.12"), "looks like a version"),
        (lambda tree: TreeRequest(tree, label="a/b"), "this is no name"),
        (lambda tree: TreeRequest(tree, label="default"), "the mark of the kernel"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_built(
    tree: Path, request_of: object, message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        build_tree(request_of(tree))
    assert cache.list_built() == []


def test_debug_information_is_a_file_beside_the_kernel_and_not_in_it(tree: Path, tmp_path: Path) -> None:
    assert build_tree(TreeRequest(tree)).symbols is None
    fragment = tmp_path / "debug.config"
    fragment.write_text("CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT=y\n")
    kernel = build_tree(TreeRequest(tree, fragments=(fragment,)))
    assert kernel.symbols is not None
    assert kernel.symbols.read_bytes().startswith(b"\x7fELF")
    assert kernel.symbols.read_bytes() != kernel.binary.read_bytes()


@pytest.fixture
def with_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has what a kernel with BTF needs."""
    monkeypatch.setattr(build, "_FOR_BTF", ({}, {}))


@pytest.mark.usefixtures("with_tools")
def test_a_kernel_for_machine_is_the_tree_without_any_change_of_plait(tree: Path) -> None:
    kernel = build_tree(TreeRequest(tree, label="mine", engine="machine"))
    assert (checkout() / "file.c").read_text() == "before\n"
    assert not (checkout() / recipe.ADDED).exists()
    stock = machine._kernel(EngineRequest("mine"))
    with pytest.raises(RequestError, match="the kernel mine has none; leave it out"):
        machine._kernel(EngineRequest("mine", modules=tree))
    assert stock.image == kernel.binary
    assert (stock.modules, stock.version) == (None, "6.12.7-plait")
    assert b"of x86_64" in kernel.binary.read_bytes()
    config = (kernel.binary.parent / "config").read_text().splitlines()
    assert {"CONFIG_HZ=100", "CONFIG_MPTCP=y", "CONFIG_VIRTIO_PCI=y"} <= set(config)


@pytest.mark.usefixtures("with_tools")
def test_a_name_means_another_kernel_on_each_engine(tree: Path, tmp_path: Path) -> None:
    virtual = build_tree(TreeRequest(tree, label="mine"))
    with pytest.raises(RequestError, match="built it for the engine virtual, and not for machine"):
        find("mine", "machine")
    stock = build_tree(TreeRequest(tree, label="mine", engine="machine"))
    assert stock.identity != virtual.identity
    assert find("mine").identity == virtual.identity
    assert find("mine", "machine").identity == stock.identity
    with pytest.raises(
        RequestError, match=r"no kernel for the engine machine has this name \(built: mine\); give an image"
    ):
        find("other", "machine")
    with pytest.raises(RequestError, match=r"only `plait run --engine machine` boots a stock kernel"):
        find("debian:6.12")
    listed = CliRunner().invoke(app, ["kernel", "list"]).stdout
    assert "mine  machine  HZ=100  from linux working files" in listed


@pytest.mark.usefixtures("with_tools")
def test_both_architectures_keep_their_products(tree: Path) -> None:
    build_tree(TreeRequest(tree))
    build_tree(TreeRequest(tree, engine="machine"))
    folders = sorted((cache.kernels_root() / ".trees").glob("*/"))
    assert [(folder / "linux").exists() for folder in folders] == [True, False]
    assert [(folder / "arch/x86/boot/bzImage").exists() for folder in folders] == [False, True]


def test_a_kernel_for_machine_needs_what_writes_btf(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_FOR_BTF", ({"no-such-pahole": "pahole"}, {"/no/gelf.h": "libelf-dev"}))
    with pytest.raises(MachineError, match="apt-get install libelf-dev pahole"):
        build_tree(TreeRequest(tree, engine="machine"))
    build_tree(TreeRequest(tree))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--engine", "machine"], "--engine machine need --tree"),
        (["--tree", "TREE", "--engine", "machine", "--tracing"], "has trace events anyway"),
        (["--tree", "TREE", "--engine", "machine", "--without", "0001"], "it has: none"),
    ],
)
def test_what_a_kernel_for_machine_cannot_have_is_refused(
    tree: Path, arguments: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_FOR_BTF", ({}, {}))
    arguments = [str(tree) if argument == "TREE" else argument for argument in arguments]
    refused = CliRunner().invoke(app, ["kernel", "build", *arguments])
    assert isinstance(refused.exception, RequestError)
    assert problem in str(refused.exception)
