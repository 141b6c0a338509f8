"""Publishers' fonts are embedded as outlines; colours differ in grey and for people who are colour-blind."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from plait.report.render import fonts
from plait.report.render.render import draw_all, standalone
from plait.report.render.theme import CASES, LIGHT, PATHS, dashes, luminance, shapes

if TYPE_CHECKING:
    from collections.abc import Iterator

CHART = {
    "width": 200,
    "height": 80,
    "data": {"values": [{"x": 1, "y": 2}]},
    "mark": "point",
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    "usermeta": {"width_mm": 85.0},
}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """What a test says about installed fonts ends with it."""
    yield
    fonts.is_installed.cache_clear()


def embedded(pdf: bytes) -> set[str]:
    """Return the names of the fonts in a PDF, without their subset's tag."""
    return {name.decode() for name in re.findall(rb"/FontName\s*/(?:[A-Z]{6}\+)?([^\s/]+)", pdf)}


def test_a_publishers_figure_has_the_first_installed_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "is_installed", lambda family: family == "STIX Two Text")
    assert fonts.family_of("ieee") == "STIX Two Text"
    assert fonts.family_of("acm") == "STIX Two Text"
    assert fonts.family_of("plain") is None
    assert fonts.stack_of("usenix").startswith("STIX Two Text, Liberation Sans")
    assert fonts.fallback_note("ieee") is None
    spec = standalone({**CHART, "usermeta": {"width_mm": 85.0, "font": "STIX Two Text"}})
    assert spec["config"]["font"].startswith("STIX Two Text, Liberation Sans")


def test_without_any_of_them_plait_says_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "is_installed", lambda _: False)
    assert fonts.family_of("acm") is None
    note = fonts.fallback_note("acm") or ""
    assert note.startswith(
        "figures have Liberation Sans, because none of these fonts is installed: Libertinus"
    )
    assert fonts.fallback_note("plain") is None
    assert standalone(CHART)["config"]["font"].startswith("Liberation Sans")


def test_a_family_that_nobody_has_is_not_installed_and_the_renderers_own_is() -> None:
    assert fonts.is_installed("Liberation Sans")
    assert not fonts.is_installed("A Font That Nobody Has")


def test_pdf_files_embed_outlines_of_the_family_and_no_type_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "FAMILIES", {"ieee": ("Liberation Sans",)})
    family = fonts.family_of("ieee")
    drawing = draw_all({"a": {**CHART, "usermeta": {"width_mm": 85.0, "font": family}}})["a"]
    assert embedded(drawing.pdf) == {"LiberationSans"}
    assert b"/Type3" not in drawing.pdf
    assert b"/FontFile" in drawing.pdf


def lightness(colour: str) -> float:
    """Return CIE L* of a colour, from 0 to 100."""
    y = luminance([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
    return 116 * y ** (1 / 3) - 16 if y > 216 / 24389 else 24389 / 27 * y


# Viénot, Brettel and Mollon, "Digital video colourmaps for checking the legibility of displays by dichromats" (1999).
DICHROMATS = {
    "protanope": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0)),
    "deuteranope": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0)),
}


def seen_by(colour: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """Return the CIE L*a*b* of a colour as somebody with this deficiency sees it."""
    linear = [
        c / 12.92 if (c := int(colour[at : at + 2], 16) / 255) <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for at in (1, 3, 5)
    ]
    r, g, b = (min(max(sum(w * v for w, v in zip(row, linear, strict=True)), 0.0), 1.0) for row in matrix)
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
    )
    x, y, z = (v ** (1 / 3) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("kind", DICHROMATS)
@pytest.mark.parametrize(
    ("palette", "count", "marks"), [("case", CASES, shapes(CASES)), ("path", PATHS, dashes(PATHS))]
)
def test_two_colours_alike_to_the_colour_blind_have_another_mark(
    kind: str, palette: str, count: int, marks: list[object]
) -> None:
    colours = [seen_by(LIGHT[f"{palette}{number}"], DICHROMATS[kind]) for number in range(count)]
    for a, b in combinations(range(count), 2):
        distance = sum((x - y) ** 2 for x, y in zip(colours[a], colours[b], strict=True)) ** 0.5
        assert distance >= 10 or marks[a] != marks[b], f"{palette}{a} and {palette}{b}"


@pytest.mark.parametrize(
    ("palette", "count", "marks"), [("case", CASES, shapes(CASES)), ("path", PATHS, dashes(PATHS))]
)
def test_two_colours_alike_in_grey_have_another_mark(palette: str, count: int, marks: list[object]) -> None:
    greys = [lightness(LIGHT[f"{palette}{number}"]) for number in range(count)]
    for a, b in combinations(range(count), 2):
        distance = abs(greys[a] - greys[b])
        assert distance >= 8 or marks[a] != marks[b], f"{palette}{a} and {palette}{b}"


@pytest.mark.parametrize("pair", [("path0", "path1"), ("case0", "case1")])
def test_the_first_two_colours_differ_in_grey_without_marks(pair: tuple[str, str]) -> None:
    first, second = (lightness(LIGHT[name]) for name in pair)
    assert abs(first - second) >= 15
    assert min(first, second) <= 60, "one of them is as faint as the grid"
