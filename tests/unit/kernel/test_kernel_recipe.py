"""A kernel's identity follows from its recipe, and plait reads and checks its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernel_fakes import make_laboratory
from plait.errors import KernelBuildError
from plait.kernel import recipe

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def laboratory(tmp_path: Path) -> Path:
    return make_laboratory(tmp_path)


def identity(laboratory: Path, version: str = "6.12.7", source: str = "s") -> str:
    return recipe.load(version, laboratory).identity(source)


def test_the_identity_is_the_same_for_the_same_inputs(laboratory: Path) -> None:
    assert identity(laboratory) == identity(laboratory)
    assert len(identity(laboratory)) == 64


def test_the_identity_changes_with_the_source(laboratory: Path) -> None:
    assert identity(laboratory, source="s") != identity(laboratory, source="t")


def test_the_identity_changes_with_what_a_patch_does_but_not_with_what_it_says(laboratory: Path) -> None:
    before = identity(laboratory)
    patch = laboratory / "patches" / "6.12" / "0001-change.patch"
    patch.write_text(patch.read_text().replace("Why, and", "For a better reason, and"))
    assert identity(laboratory) == before
    patch.write_text(patch.read_text().replace("+after", "+later"))
    assert identity(laboratory) != before


def test_the_identity_changes_with_an_option_but_not_with_a_comment(laboratory: Path) -> None:
    before = identity(laboratory)
    config = laboratory / "config" / "laboratory.config"
    config.write_text("# said better\n" + config.read_text())
    assert identity(laboratory) == before
    config.write_text(config.read_text().replace("HZ=250", "HZ=1000"))
    assert identity(laboratory) != before


def test_the_identity_changes_with_a_pinned_setting(
    laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identity(laboratory)
    monkeypatch.setitem(recipe.PINNED, "KBUILD_BUILD_USER", "somebody")
    assert identity(laboratory) != before


def test_the_identity_changes_with_an_added_source(laboratory: Path) -> None:
    before = identity(laboratory)
    (laboratory / "schedulers" / "one.c").write_text("int one;\n")
    (laboratory / "schedulers" / "notes.md").write_text("not a source\n")
    added = identity(laboratory)
    (laboratory / "schedulers" / "one.c").write_text("int two;\n")
    changed = identity(laboratory)
    assert len({before, added, changed}) == 3
    (laboratory / "schedulers" / "notes.md").write_text("changed\n")
    assert identity(laboratory) == changed


def test_a_version_takes_its_own_patches_and_its_own_options(laboratory: Path) -> None:
    old, new = recipe.load("6.12.7", laboratory), recipe.load("7.3.0-rc7", laboratory)
    assert [patch.parent.name for patch in (*old.patches, *new.patches)] == ["6.12", "7.x"]
    assert {option.name for option in old.options} ^ {option.name for option in new.options} == {
        "CONFIG_OLD",
        "CONFIG_NEW",
    }
    assert old.hz == 250


@pytest.mark.parametrize("version", ["6.1.2", "5.10", "8.0-rc1", "nonsense"])
def test_a_version_without_patches_is_refused(laboratory: Path, version: str) -> None:
    with pytest.raises(KernelBuildError, match=f"Linux {version[:3]}|{version}"):
        recipe.load(version, laboratory)


def test_a_line_that_cannot_be_read_is_refused_with_its_place(laboratory: Path) -> None:
    config = laboratory / "config" / "laboratory.config"
    config.write_text(config.read_text() + "CONFIG_A=y until tomorrow\n")
    with pytest.raises(KernelBuildError, match=r"laboratory\.config:7: .*until tomorrow"):
        recipe.load("6.12", laboratory)


def test_options_that_did_not_survive_are_found(laboratory: Path) -> None:
    options = recipe.load("6.12", laboratory).options
    assert (
        recipe.rejected_options(options, "CONFIG_HZ=250\nCONFIG_MPTCP=y\nCONFIG_OLD=y\nCONFIG_MORE=y\n") == []
    )
    lost = recipe.rejected_options(
        options, "CONFIG_HZ=100\n# CONFIG_MPTCP is not set\nCONFIG_OLD=y\nCONFIG_UML_RANDOM=y\n"
    )
    assert [option.line for option in lost] == [
        "CONFIG_HZ=250",
        "CONFIG_MPTCP=y",
        "# CONFIG_UML_RANDOM is not set",
    ]


def test_a_debug_kernel_has_the_options_of_both_files_and_its_own_win(laboratory: Path) -> None:
    (laboratory / "config" / "debug.config").write_text("CONFIG_HZ=100\nCONFIG_KASAN=y\n")
    plain, debug = recipe.load("6.12", laboratory), recipe.load("6.12", laboratory, debug=True)
    assert plain.sha256 != debug.sha256
    lines = {option.line for option in plain.options} - {"CONFIG_HZ=250"}
    assert {option.line for option in debug.options} == lines | {"CONFIG_HZ=100", "CONFIG_KASAN=y"}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("version", ["6.12", "7.2"])
def test_the_shipped_recipe_asks_for_no_option_twice(version: str, debug: bool) -> None:
    names = [option.name for option in recipe.load(version, debug=debug).options]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("version", ["6.12", "7.2"])
def test_every_shipped_patch_says_why_and_when_it_can_go(version: str) -> None:
    for patch in recipe.load(version).patches:
        header = patch.read_text(encoding="utf-8").partition("\n---\n")[0]
        assert header.startswith("Subject: "), patch
        assert "\nDrop this " in header, patch
