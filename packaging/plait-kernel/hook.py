"""Tags the wheel, and builds the kernel first if its files are absent (in the source distribution they are)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLATFORMS = "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"


class KernelHook(BuildHookInterface):
    """Runs `build-kernel` where the kernel is missing."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        """Set the tag: the kernel is a static program."""
        root = Path(self.root)
        if not (root / "plait_kernel" / "linux.gz").is_file():
            subprocess.run([str(root / "build-kernel")], cwd=root, check=True)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{PLATFORMS}"
