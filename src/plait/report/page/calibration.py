"""The section of the page on calibration: how close the links came to their configured values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from plait.analysis.wording import MISSING, micros, percent, plain, rate
from plait.dataset.files import first_line
from plait.errors import DataError
from plait.files import Folder, json_of
from plait.report.page.tables import section
from plait.report.table import Column

MOST_ROWS = 40
MOST_LINKS = 4
LEAST = 0.001
"""Smaller differences are not printed as numbers."""
_HEADINGS = ("Links", "Delay", "off by", "Rate", "off by", "Loss", "measured")


def calibration(folder: Path) -> Markup | str:
    """Return a table of the study's link settings, configured and measured; nothing where they were not measured.

    Raises DataError when calibration.json is damaged.
    """
    path = folder / "calibration.json"
    if not Folder(folder).has(path.name):
        return ""
    try:
        document = json_of(Folder(folder).read(path.name))
        settings = document["settings"]
        rows = [_row(entry) for entry in settings[:MOST_ROWS]]
        tolerance = document["tolerance"]
        limits = f"{tolerance['delay_us']:g} us and {tolerance['rate_ratio'] * 100:g} %"
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise DataError(
            f"{path}: not a calibration: {first_line(error)}; remove it, or run the study again"
        ) from error
    hidden = len(settings) - MOST_ROWS
    note = (
        "Before the study, plait measured each link setting in the same kernel: full packets across an idle link, "
        f"then more than it carries. The study runs only if the errors are at most {limits}, and if chance "
        "explains the loss."
    )
    columns = [
        Column(heading, heading, tuple(row[place] for row in rows), title=heading, is_factor=place == 0)
        for place, heading in enumerate(_HEADINGS)
    ]
    remark = f"{hidden} more are in calibration.json." if hidden > 0 else ""
    return section("calibration", "Calibration", note, [("", columns)], remark)


def _row(entry: dict[str, Any]) -> list[str]:
    links = entry["links"]
    names = ", ".join(links[:MOST_LINKS]) + (
        f" and {len(links) - MOST_LINKS} more" if len(links) > MOST_LINKS else ""
    )
    if "engine" in entry:
        names = f"{names} ({entry['engine']})"
    delay, rates, loss = (entry["figures"][name] for name in ("delay_us", "rate_bps", "loss_ratio"))
    return [
        names.replace("->", "\N{RIGHTWARDS ARROW}"),
        _configured(delay, micros),
        _difference(delay, 1, "us"),
        _configured(rates, rate),
        _difference(rates, 100 / rates["meant"], "%") if rates["meant"] else MISSING,
        _configured(loss, percent),
        MISSING if loss["measured"] is None else plain(percent(loss["measured"])),
    ]


def _configured(figure: dict[str, Any], words: Callable[[float | None], str]) -> str:
    return MISSING if figure["meant"] is None else plain(words(figure["meant"]))


def _difference(figure: dict[str, Any], scale: float, unit: str) -> str:
    """Return by how much the measured value is off."""
    if figure["meant"] is None or figure["measured"] is None:
        return MISSING
    error = (figure["measured"] - figure["meant"]) * scale
    return f"{error:+.2g} {unit}" if error == 0 or abs(error) >= LEAST else f"below {LEAST} {unit}"
