"""Rules for labels, the texts that people read instead of names, in scenarios and results."""

from __future__ import annotations

import unicodedata

LABEL_MAX = 60
"""In characters."""


def label_problem(text: str) -> str | None:
    """Return why a text cannot be a label, and what would be right; None if it can."""
    if not text.strip() or text != text.strip():
        return "a label has at least one letter, and no space at its ends"
    if len(text) > LABEL_MAX:
        return f"this label has {len(text)} characters; a label has at most {LABEL_MAX}"
    if any(unicodedata.category(letter)[0] == "C" or letter in "\u2028\u2029" for letter in text):
        return "a label is one line of visible characters; remove the control characters"
    return None
