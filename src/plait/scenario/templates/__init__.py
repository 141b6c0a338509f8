"""Commented scenarios to start from, which `plait new` writes; they are YAML files beside this one."""

from __future__ import annotations

from pathlib import Path

_PLACE = Path(__file__).parent


def templates() -> list[tuple[str, str]]:
    """Return (name, title) of each template, sorted by name."""
    return [(path.stem, _title(path)) for path in sorted(_PLACE.glob("*.yaml"))]


def template_text(name: str) -> str:
    """Return the text of the template `name`, which must exist."""
    return (_PLACE / f"{name}.yaml").read_text(encoding="utf-8")


def _title(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("title: ") for line in lines if line.startswith("title: "))
