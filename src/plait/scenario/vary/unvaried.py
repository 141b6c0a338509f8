"""Remove parts of a scenario that a `vary` of the command line makes meaningless, before validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait.scenario.names import varied_by


def without_unvaried(raw: dict[str, Any]) -> None:
    """Remove what names cases and factors that no longer exist, in place, after `vary` replaced the file's."""
    labels = raw.get("labels")
    if isinstance(labels, dict) and "cases" in labels:
        raw["labels"] = {kind: texts for kind, texts in labels.items() if kind != "cases"}
    published, vary, across = raw.get("published"), raw.get("vary"), raw.get("across")
    if isinstance(across, list):
        raw["across"] = [name for name in across if name in varied_by(vary)]
    if not isinstance(published, dict) or not isinstance(values := published.get("values"), list):
        return
    varied = varied_by(vary)
    kept = [
        value for value in values if not isinstance(value, dict) or set(value.get("case") or ()) <= varied
    ]
    raw["published"] = {**published, "values": kept} if kept else None


def without_unvaried_figures(raw: dict[str, Any]) -> None:
    """Remove figures over fields that no longer vary, in place, after `vary` replaced the file's own."""
    figures = raw.get("figures")
    if isinstance(figures, list):
        names = sorted(varied_by(raw.get("vary")))
        raw["figures"] = [
            figure
            for figure in figures
            if all(field_named(names, name) is not None for name in _named(figure))
        ]


def _named(figure: object) -> list[str]:
    """Return the varied fields that an unvalidated figure names."""
    if not isinstance(figure, dict):
        return []
    axes = [figure.get(part) for part in ("x", "y", "facets")]
    only = figure.get("only")
    return [name for name in (*axes, *(only if isinstance(only, dict) else ())) if isinstance(name, str)]


def field_named(names: Sequence[str], name: str) -> str | None:
    """Return the varied field of a name, which is its path or a unique ending of it; None otherwise."""
    ends = [key for key in names if key == name or key.endswith(f".{name}")]
    return name if name in names else ends[0] if len(ends) == 1 else None
