"""The shipped patches apply to the distribution's own source where the host has it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from plait.kernel import fetch, recipe

ARCHIVES = (Path("/usr/src"), Path("/var/cache/apt/archives"))


def touched(patches: tuple[Path, ...]) -> list[str]:
    """Return the files that the patches change."""
    text = "".join(patch.read_text(encoding="utf-8") for patch in patches)
    return sorted(set(re.findall(r"^--- a/(\S+)", text, re.MULTILINE)))


def archive(folder: Path) -> Path:
    """Return the distribution's source archive, from the place where it is installed or from apt's cache."""
    for place in ARCHIVES:
        for path in sorted(place.glob(f"{fetch.PACKAGE}*")):
            if path.suffix != ".deb":
                return path
            unpack = ["dpkg-deb", "--extract", str(path), str(folder)]
            subprocess.run(unpack, check=True)
            return next(folder.glob(f"usr/src/{fetch.PACKAGE}.tar.*"))
    pytest.skip(f"{fetch.PACKAGE} is neither installed nor in apt's cache")


def test_the_patches_apply_to_the_distributions_source_one_after_another(tmp_path: Path) -> None:
    patches = recipe.load().patches
    tree = tmp_path / "linux"
    tree.mkdir()
    wanted = [f"*/{name}" for name in touched(patches)]
    source = archive(tmp_path)
    subprocess.run(
        ["tar", "-xf", str(source), "-C", str(tree), "--strip-components=1", "--wildcards", *wanted],
        check=True,
    )
    for patch in patches:
        command = ["patch", "-p1", "--batch", "--forward", f"--input={patch}"]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{patch.name}: {done.stdout}"
        assert "fuzz" not in done.stdout, f"{patch.name}: {done.stdout}"


@pytest.mark.parametrize(
    "patch", [*recipe.load("6.12").patches, *recipe.load("7.3").patches],
    ids=lambda patch: f"{patch.parent.name}-{patch.name}",
)  # fmt: skip
def test_a_patch_names_what_it_changes_so_that_git_can_merge_it(patch: Path) -> None:
    """Without the names of the files' contents, `git apply --3way` only applies what fits exactly."""
    changes = re.split(r"^diff --git ", patch.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    nameless = [
        change.splitlines()[0]
        for change in changes
        if not re.search(
            r"^index [0-9a-f]{40}\.\.[0-9a-f]{40} 100\d{3}$|^new file mode ", change, re.MULTILINE
        )
    ]
    assert changes
    assert not nameless
