"""Builds the links as a module for the laboratory kernel, which does not have them built in."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from plait.kernel import kit, recipe

if TYPE_CHECKING:
    from pathlib import Path

    from plait.kernel import Kernel


def build_module(kernel: Kernel, folder: Path) -> Path:
    """Return the module, built in a new folder."""
    shutil.copytree(recipe.LABORATORY / "links", folder)
    done = subprocess.run(
        ["make", "--silent", f"M={folder}", "modules"], cwd=kit.unpacked(kernel.binary.parent),
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", **recipe.PINNED}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "plait_links.ko"
