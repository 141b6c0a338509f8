"""What the programs in the wheel are made of: the licence texts, and the bill of materials, from Cargo's metadata."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

from plait.kernel import built_by_default

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


def write(root: Path, target: Path, version: str, seconds: int) -> None:
    """Write the bill of materials of the distributions as CycloneDX: crates, Linux, and required Python packages."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion
    from packageurl import PackageURL

    def component(kind: str, name: str, number: str | None) -> Component:
        return Component(
            type=ComponentType.LIBRARY, name=name, version=number, bom_ref=f"{kind}:{name}@{number}",
            purl=PackageURL(type=kind, name=name, version=number),
        )  # fmt: skip

    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"plait@{version}@{seconds}"))
    bom.metadata.timestamp = dt.datetime.fromtimestamp(seconds, dt.UTC)
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION, name="plait", version=version, bom_ref=f"plait@{version}"
    )
    for crate in crates(root):
        bom.components.add(component("cargo", crate["name"], crate["version"]))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in project["dependencies"]:
        bom.components.add(component("pypi", re.split(r"[<>=!~\[ ]", requirement)[0], None))
    kernel = built_by_default()
    if kernel is not None:
        bom.components.add(component("generic", "linux", kernel.version))
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    target.write_text(f"{text}\n", encoding="utf-8")
