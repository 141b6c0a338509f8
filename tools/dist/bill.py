"""What the programs in the wheel are made of: the licence texts, and the bill of materials, from Cargo's metadata."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_TARGET = "x86_64-unknown-linux-gnu"
_NAMES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*")


def crates(root: Path) -> list[dict[str, Any]]:
    """Return Cargo's records of the crates in plait's programs, without plait's own, by name and version."""
    cargo = subprocess.run([str(root / "tools" / "rust")], capture_output=True, text=True, check=False)
    if cargo.returncode != 0:
        sys.exit(cargo.stderr)
    command = [
        cargo.stdout.strip(), "metadata", "--locked", "--format-version=1", f"--filter-platform={_TARGET}",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"reading the crates of plait's programs: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    used = {node["id"] for node in found["resolve"]["nodes"]}
    others = [crate for crate in found["packages"] if crate["source"] is not None and crate["id"] in used]
    return sorted(others, key=lambda crate: (crate["name"], crate["version"]))


def write_licences(root: Path, target: Path) -> None:
    """Write the licences of all crates to one file, for the wheel."""
    parts = []
    for crate in crates(root):
        folder = Path(crate["manifest_path"]).parent
        texts = sorted({path for name in _NAMES for path in folder.glob(name) if path.is_file()})
        parts.append(f"{crate['name']} {crate['version']}: {crate['license']}\n")
        parts += [path.read_text(encoding="utf-8", errors="replace").rstrip() + "\n" for path in texts]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(parts), encoding="utf-8")
