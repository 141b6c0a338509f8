"""The scenarios that ship with plait: in `scenarios/` of the repository, and inside the installed package."""

from __future__ import annotations

from pathlib import Path

_PLACES = (Path(__file__).parent / "shipped", Path(__file__).parents[3] / "scenarios")
"""Where an installed package has them (a wheel puts them there), and where the repository does."""


def folder() -> Path | None:
    """Where the shipped scenarios are; None when this installation has lost them."""
    return next((place for place in _PLACES if (place / "two-paths.yaml").is_file()), None)


def find(name: str) -> Path | None:
    """The file of the shipped scenario `name`, if there is one."""
    return dict(_files()).get(name)


def shipped() -> list[tuple[str, str]]:
    """(name, title) of each shipped scenario, by name."""
    return [(name, _title(path)) for name, path in _files()]


def _files() -> list[tuple[str, Path]]:
    place = folder()
    return sorted((path.stem, path) for path in place.glob("*.yaml")) if place is not None else []


def _title(path: Path) -> str:
    """The title without the cost of validating the whole file (the tests validate every shipped scenario)."""
    from plait.scenario.read.document import read

    value = read(path.read_text(encoding="utf-8")).value
    return str(value.get("title", "")) if isinstance(value, dict) else ""
