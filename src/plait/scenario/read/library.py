"""Find the scenarios that ship with plait, in the installed package or in `scenarios/` of the repository."""

from __future__ import annotations

from pathlib import Path

_PLACES = (Path(__file__).parents[1] / "shipped", Path(__file__).parents[4] / "scenarios")
"""Their folder in an installed package (from the wheel), and in the repository."""


def folder() -> Path | None:
    """Return the folder of the shipped scenarios; None if this installation lacks it."""
    return next((place for place in _PLACES if (place / "two-paths.yaml").is_file()), None)


def find(name: str) -> Path | None:
    """Return the file of the shipped scenario `name`; None if there is none."""
    return dict(_files()).get(name)


def names() -> list[str]:
    """Return the names of the shipped scenarios, sorted."""
    return [name for name, _ in _files()]


def shipped() -> list[tuple[str, str]]:
    """Return (name, title) of each shipped scenario, sorted by name."""
    return [(name, _title(path)) for name, path in _files()]


def _files() -> list[tuple[str, Path]]:
    place = folder()
    return sorted((path.stem, path) for path in place.glob("*.yaml")) if place is not None else []


def _title(path: Path) -> str:
    """Return the title without validating the whole file, which takes longer."""
    from plait.scenario.read.document import read

    value = read(path.read_text(encoding="utf-8")).value
    return str(value.get("title", "")) if isinstance(value, dict) else ""
