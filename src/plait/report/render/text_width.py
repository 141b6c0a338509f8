"""The width of words in figures: the advance widths of Liberation Sans, which are those of Arial and Helvetica."""

from __future__ import annotations

# In thousandths of the font size, from "Adobe Font Metrics" of Helvetica; all others count as the widest digit.
_WIDTHS = {
    **dict.fromkeys("ijl", 222),
    **dict.fromkeys(" !,./:;[]\\It f", 278),
    **dict.fromkeys("()-`r{}", 333),
    **dict.fromkeys("Jcksvxyz", 500),
    **dict.fromkeys("+<=>~\N{PLUS-MINUS SIGN}\N{MULTIPLICATION SIGN}\N{MINUS SIGN}", 584),
    **dict.fromkeys("FTZ", 611),
    **dict.fromkeys("&ABEKPSVXY", 667),
    **dict.fromkeys("CDHNRUw", 722),
    **dict.fromkeys("GOQ", 778),
    **dict.fromkeys("Mm", 833),
    "W": 944,
    "%": 889,
    "@": 1015,
    "'": 191,
    "|": 260,
    '"': 355,
    "*": 389,
    "\N{RIGHTWARDS ARROW}": 1000,
    "\N{LEFTWARDS ARROW}": 1000,
    "\N{UPWARDS ARROW}": 1000,
    "\N{DOWNWARDS ARROW}": 1000,
    "\N{HORIZONTAL ELLIPSIS}": 1000,
}
_OTHER = 556
_WIDE = 1000
"""Scripts of East Asia, and symbols: as wide as high."""
BOLD = 1.08
"""Bold words are wider by about this factor."""


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a line of text in the unit of its font size."""
    widths = (_WIDTHS.get(letter, _OTHER if ord(letter) < 0x2E80 else _WIDE) for letter in text)
    return sum(widths) * size / 1000 * (BOLD if bold else 1.0)
