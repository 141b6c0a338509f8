"""The fonts of publishers: the first family of each that this machine has; plait brings Liberation Sans alone along.

The renderer embeds what it uses of a font as outlines of TrueType or CFF in PDF files, never as Type 3, which many
publishers refuse.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path

from plait.report.render.theme import FONT

TIMES = (
    "Times New Roman",
    "TeX Gyre Termes",
    "Nimbus Roman",
    "Liberation Serif",
    "STIX Two Text",
    "STIXGeneral",
)
"""Times, and families with its widths or its look."""
LIBERTINE = ("Libertinus Serif", "Linux Libertine O", "Linux Libertine", *TIMES)
"""The text of acmart is Linux Libertine, which Libertinus continues."""
FAMILIES: dict[str, tuple[str, ...]] = {"ieee": TIMES, "usenix": TIMES, "acm": LIBERTINE}
"""By style, the families in the order in which plait prefers them. All are narrower than Liberation Sans."""
_PLACES = ("/usr/share/fonts", "/usr/local/share/fonts", "/etc/fonts", "~/.fonts", "~/.local/share/fonts")
"""Where the renderer looks for fonts, and for the names that stand for them."""
_NAME = re.compile(rb"/FontName\s*/(?:[A-Z]{6}\+)?([^\s/]+)")


def family_of(style: str) -> str | None:
    """Return the family of a publisher's style that this machine has; None without any, and for other styles."""
    return next((family for family in FAMILIES.get(style, ()) if is_installed(family)), None)


def fallback_note(style: str) -> str | None:
    """Return what to know about the font of a style if this machine has none of its families; None if it has one."""
    families = FAMILIES.get(style, ())
    if not families or family_of(style) is not None:
        return None
    return f"figures have Liberation Sans, because none of these fonts is installed: {', '.join(families)}"


def stack_of(style: str) -> str:
    """Return the families of a style as CSS names them, the preferred one first."""
    family = family_of(style)
    return FONT if family is None else f"{family}, {FONT}"


@cache
def is_installed(family: str) -> bool:
    """Return whether the renderer finds a family: it draws a letter and names the font that it took."""
    import vl_convert

    text = f'<text y="8" font-family="{family}">a</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{text}</svg>'
    taken = [name.decode("latin-1").lower() for name in _NAME.findall(bytes(vl_convert.svg_to_pdf(svg)))]
    return any(name.startswith(family.replace(" ", "").lower()) for name in taken)


@cache
def fonts_here(places: tuple[str, ...] = _PLACES) -> str:
    """Return a hash of the paths, sizes and times of this machine's fonts, which decide how a figure looks."""
    digest = hashlib.sha256()
    for place in places:
        for folder, folders, names in os.walk(Path(place).expanduser()):
            folders.sort()
            for name in sorted(names):
                status = os.lstat(Path(folder, name))
                digest.update(
                    f"{folder}/{name} {status.st_size} {status.st_mtime_ns}\n".encode(
                        errors="surrogateescape"
                    )
                )
    return digest.hexdigest()
