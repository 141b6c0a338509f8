"""The width of words in figures: the advance widths of Liberation Sans, which are those of Arial and Helvetica."""

from __future__ import annotations

import html
import re

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
_DIGIT = 556
_WIDE = 1000
"""Scripts of East Asia, and symbols: as wide as high."""
_TEXT = re.compile(r"<text([^>]*)>([^<]+)</text>")
_SIZE = re.compile(r'font-size="([0-9.]+)px"')
_APART = re.compile(r" (?!(?:%|[kMG]?bit/s|[kMGT]i?B|B|[mu]?s|packets)(?:[,;.)]| |$))")
"""What is between words, of which a unit is none."""
BOLD = 1.08
"""Bold words are wider by about this factor."""


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a line of text in the unit of its font size."""
    widths = (_WIDTHS.get(letter, _DIGIT if ord(letter) < 0x2E80 else _WIDE) for letter in text)
    return sum(widths) * size / 1000 * (BOLD if bold else 1.0)


def folded(words: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """Return words in lines of at most this width; a longer word, or number with its unit, has a line of its own."""
    lines: list[str] = []
    for word in _APART.split(words):
        if lines and text_width(f"{lines[-1]} {word}", size, bold=bold) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def with_text_lengths(svg: str, family: str) -> str:
    """Return the drawing with the length of each text in it whose font is `family`.

    A viewer that lacks the font, and all others with its widths, squeezes the letters of the one that it has instead of
    drawing over the edge of the figure or over the next text.
    """
    return _TEXT.sub(lambda text: _with_length(text) if f'font-family="{family}' in text[1] else text[0], svg)


def _with_length(text: re.Match[str]) -> str:
    size = _SIZE.search(text[1])
    words = html.unescape(text[2])
    if size is None or not words.strip():
        return text[0]
    length = text_width(words, float(size[1]), bold='font-weight="bold"' in text[1])
    return f'<text{text[1]} textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs">{text[2]}</text>'
