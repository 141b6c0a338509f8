"""A name in results stays text in the documents of a bundle, whatever it contains."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from plait.artefact.documents import duration, words


@pytest.mark.parametrize(
    "name",
    [
        "# heading", "`plait`; rm -rf ~", "[click](http://x)", "<script>alert(1)</script>", "a | b | c",
        "![image](file:///etc/passwd)", "*bold* _thin_ ~~gone~~", "two\n\n## lines", "a\x1b[31mred", "\\`x`", "&lt;",
    ],
)  # fmt: skip
def test_a_name_is_one_piece_of_text(name: str) -> None:
    """It has no markup as a paragraph, and stays in its cell of a table."""
    shown = words(name)
    assert "\n" not in shown
    (inline,) = [
        token for token in MarkdownIt("gfm-like", {"linkify": False}).parse(f"x {shown}") if token.children
    ]
    assert {child.type for child in inline.children or ()} <= {"text", "text_special"}
    table = MarkdownIt("gfm-like", {"linkify": False}).parse(f"| a | b |\n| - | - |\n| {shown} | c |")
    assert sum(token.type == "td_open" for token in table) == 2


def test_durations_are_in_words() -> None:
    assert [duration(seconds) for seconds in (0.2, 12.4, 99, 180)] == [
        "less than a second", "12 s", "99 s", "3 min",
    ]  # fmt: skip
