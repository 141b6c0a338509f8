"""The cache lists its kernels and finds one by name."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from plait.errors import RequestError
from plait.kernel import cache, find, list_built, recipe
from plait.kernel.model import BuildRecord, SourceRecord

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    return tmp_path / "kernels"


def add(
    kernels: Path,
    identity: str,
    version: str,
    *,
    default: bool = True,
    recipe: str = "r",
    label: str | None = None,
) -> Path:
    """Put a kernel of 5 bytes into the cache."""
    folder = kernels / identity
    folder.mkdir(parents=True)
    (folder / "linux").write_bytes(b"linux")
    record = BuildRecord(
        schema_version=1, identity=identity, version=version, hz=1000, recipe_sha256=recipe, chosen_by_default=default,
        source=SourceRecord(kind="given", name="linux.tar.xz", content_sha256="c"), compiler="gcc",
        binary_sha256=sha256(b"linux").hexdigest(), binary_bytes=5,
        built_at="2026-01-01T00:00:00+00:00", build_s=1.0, jobs=2, label=label,
    )  # fmt: skip
    cache.write_record(folder, record)
    return folder


def test_an_empty_cache_holds_nothing() -> None:
    assert list_built() == []
    with pytest.raises(RequestError, match="plait kernel build"):
        find("6.12")


def test_kernels_are_listed_by_version_as_numbers(kernels: Path) -> None:
    for number, version in enumerate(["6.12.9", "7.2.13", "6.12.117"]):
        add(kernels, f"{number}" * 64, version)
    assert [kernel.version for kernel, _ in list_built()] == ["7.2.13", "6.12.117", "6.12.9"]


@pytest.mark.parametrize(
    "name", ["6.12", "6.12.117", "6.12.117-abc", "abcd", "abcd" * 16, "6.12.117-abcdabcd"]
)
def test_a_kernel_is_found_by_version_identity_prefix_or_both(kernels: Path, name: str) -> None:
    add(kernels, "abcd" * 16, "6.12.117")
    add(kernels, "ef01" * 16, "7.2.13")
    assert find(name).identity == "abcd" * 16


@pytest.mark.parametrize("name", ["abc", "6.1", "12", "nothing"])
def test_an_unknown_name_is_refused_with_the_known_names(kernels: Path, name: str) -> None:
    add(kernels, "abcd" * 16, "6.12.117")
    with pytest.raises(RequestError, match=r"6\.12\.117-abcdabcd"):
        find(name)


def test_an_ambiguous_name_is_refused_with_the_candidates(kernels: Path) -> None:
    add(kernels, "a" * 64, "6.12.117")
    add(kernels, "b" * 64, "6.12.117")
    with pytest.raises(RequestError, match=r"6\.12\.117-[ab]{8}, 6\.12\.117-[ab]{8}"):
        find("6.12.117")


def test_a_kernel_with_a_name_is_found_by_it_and_not_by_its_version(kernels: Path) -> None:
    add(kernels, "abcd" * 16, "6.12.117")
    add(kernels, "ef01" * 16, "6.12.117", label="patched")
    assert [find(name).name for name in ("6.12", "patched", "patch", "ef01")] == [
        "6.12.117-abcdabcd", "patched", "patched", "patched"
    ]  # fmt: skip


def test_a_kernel_keeps_its_names_and_a_name_means_the_kernel_that_got_it_last(kernels: Path) -> None:
    """The same tree may be built as `before` and, when nothing has changed yet, as `after`."""
    for identity in ("abcd" * 16, "ef01" * 16):
        add(kernels, identity, "6.12.117")
    first = find("abcd")
    assert cache.label(first, "before").name == "before"
    assert cache.label(first, "after").name == "after"
    assert [find(name).name for name in ("before", "after")] == ["before", "after"]
    assert {find(name).identity for name in ("before", "after")} == {first.identity}
    cache.label(find("ef01"), "after")
    assert (find("after").identity, find("before").identity) == ("ef01" * 16, first.identity)
    assert {kernel.name for kernel, _ in list_built()} == {"before", "after"}


def test_a_version_selects_the_default_kernel_of_several(kernels: Path) -> None:
    """After an update of plait, the cache also has the default kernel of the version before."""
    add(kernels, "a" * 64, "6.12.117", recipe=recipe.load().sha256)
    add(kernels, "c" * 64, "6.12.117", recipe="of the version before")
    add(kernels, "b" * 64, "6.12.117", default=False)
    assert find("6.12").identity == "a" * 64


def test_a_whole_name_wins_over_the_beginning_of_another(kernels: Path) -> None:
    add(kernels, "a" * 64, "6.12.117", label="fix")
    add(kernels, "b" * 64, "6.12.117", label="fix-2")
    assert find("fix").identity == "a" * 64


@pytest.mark.parametrize("damage", ["no record", "half a record", "half a binary", "no binary"])
def test_a_damaged_kernel_does_not_count(kernels: Path, damage: str) -> None:
    folder = add(kernels, "a" * 64, "6.12.117")
    match damage:
        case "no record":
            (folder / "build.json").unlink()
        case "half a record":
            (folder / "build.json").write_bytes((folder / "build.json").read_bytes()[:100])
        case "half a binary":
            (folder / "linux").write_bytes(b"li")
        case "no binary":
            (folder / "linux").unlink()
    assert list_built() == []


def test_only_kernels_built_of_the_default_source_and_this_recipe_are_the_default(kernels: Path) -> None:
    add(kernels, "a" * 64, "6.12.117", default=False)
    add(kernels, "b" * 64, "6.12.117", recipe="another")
    assert cache.default("r") is None
    assert cache.of_identity("a" * 64, by_default=True) is not None
    default = cache.default("r")
    assert default is not None
    assert default.identity == "a" * 64
