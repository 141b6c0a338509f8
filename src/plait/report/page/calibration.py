"""The section of the page that tells how near the links came to what they are meant to be."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from plait.analysis.wording import MISSING, micros, percent, plain, rate
from plait.dataset.files import first_line
from plait.errors import DataError
from plait.files import Folder, json_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_ROWS = 40
MOST_LINKS = 4


def calibration(folder: Path) -> str:
    """Return a table of the study's link settings, meant and measured; nothing where they were not measured.

    Raises DataError when calibration.json is damaged.
    """
    path = folder / "calibration.json"
    if not Folder(folder).has(path.name):
        return ""
    try:
        found = json_of(Folder(folder).read(path.name))
        settings = found["settings"]
        rows = "".join(_row(entry) for entry in settings[:MOST_ROWS])
        tolerance = found["tolerance"]
        limits = f"{tolerance['delay_us']:g} us and {tolerance['rate_ratio'] * 100:g} %"
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        why = first_line(error)
        raise DataError(f"{path}: not a calibration: {why}; remove it, or run the study again") from error
    more = (
        f"<p>{len(settings) - MOST_ROWS} more are in calibration.json.</p>"
        if len(settings) > MOST_ROWS
        else ""
    )
    heads = "".join(
        f"<th>{head}</th>" for head in ("Links", "Delay", "off by", "Rate", "off by", "Loss", "measured")
    )
    return (
        '<section id="calibration"><h2>Calibration</h2><p class="note">Each setting of a link was measured in the same '
        f"kernel before anything ran: full packets across an idle link, then more than it carries. Beyond {limits}, or "
        "with a loss that no fair draw gives, nothing would have run.</p>"
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{more}</section>'
    )


def _row(entry: dict[str, Any]) -> str:
    links = entry["links"]
    names = ", ".join(links[:MOST_LINKS]) + (
        f" and {len(links) - MOST_LINKS} more" if len(links) > MOST_LINKS else ""
    )
    delay, rates, loss = (entry["figures"][name] for name in ("delay_us", "rate_bps", "loss_ratio"))
    cells = [
        names.replace("->", "\N{RIGHTWARDS ARROW}"),
        _meant(delay, micros),
        _off(delay, 1, "us"),
        _meant(rates, rate),
        _off(rates, 100 / rates["meant"], "%") if rates["meant"] else MISSING,
        _meant(loss, percent),
        MISSING if loss["measured"] is None else plain(percent(loss["measured"])),
    ]
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _meant(figure: dict[str, Any], words: Callable[[float | None], str]) -> str:
    return MISSING if figure["meant"] is None else plain(words(figure["meant"]))


def _off(figure: dict[str, Any], scale: float, unit: str) -> str:
    """Return by how much the measured value is off."""
    if figure["meant"] is None or figure["measured"] is None:
        return MISSING
    return f"{(figure['measured'] - figure['meant']) * scale:+.2g} {unit}"
