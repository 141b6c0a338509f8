"""From specifications to SVG, PNG and PDF, through a cache: a figure that was drawn once is not drawn again.

Costs on a 2-core machine: 0.6 s for the renderer's first figure (it starts a JavaScript engine), then 0.06 s per
figure, 0.03 s per PNG and 0.05 s per PDF; 2 s, once, for the script that makes the page's charts interactive. Nothing
of it is spent, and the renderer not even loaded, when all figures are in the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plait.analysis.gaps import part
from plait.cache import cache_root
from plait.files import Folder
from plait.limits import DRAWING, require
from plait.report.render.paper import COLUMN_MM, PAGE_MM, in_points, scaled
from plait.report.render.theme import LIGHT, config, paint

if TYPE_CHECKING:
    from collections.abc import Collection

PNG_PPI = 300.0
"""What journals ask for."""
FORM = 4
"""Grows when the same figure is drawn otherwise: what an earlier version left in the cache is not used."""
_GIVEN_NAME = re.compile(r"""(id="|url\(#|href="#)((clip|gradient_?)\d+)(["\)])""")
_PATH = re.compile(r' d="[^"]*"')
_LONG_NUMBER = re.compile(r"(\d\.\d\d)\d+")
_SUM_BYTES = 32
KEPT = 900
"""Files that the cache holds at most; the oldest go first."""


@dataclass(frozen=True)
class Drawing:
    """One figure, drawn."""

    svg: str
    png: bytes
    pdf: bytes


def draw_all(
    figures: dict[str, dict[str, Any] | str],
    width_mm: float = PAGE_MM,
    narrow: Collection[str] = (),
) -> dict[str, Drawing]:
    """Return every figure drawn in the light theme, `width_mm` wide, those that are `narrow` at most as a column.

    A figure is a Vega-Lite specification, or SVG already.
    """
    with ThreadPoolExecutor(2) as pool:  # PNGs are made while the next figure is laid out
        waiting = {
            name: pool.submit(_draw, figure, min(width_mm, COLUMN_MM) if name in narrow else width_mm)
            for name, figure in figures.items()
        }
        drawings = {name: part(f"figure {name}", future.result, None) for name, future in waiting.items()}
    _prune()
    return {name: drawing for name, drawing in drawings.items() if drawing is not None}


def script() -> str:
    """Return the JavaScript of Vega, Vega-Lite and vega-embed in one piece; they are set on `window`."""
    return _cached(_key("script"), ".js", _bundle).decode()


def warm() -> None:
    """Put into the cache what the first page needs most time for; may be called while trials run."""
    script()


def standalone(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with the light theme's look and colours put in."""
    painted: dict[str, Any] = paint({**spec, "config": config()}, LIGHT)
    return painted


def _draw(figure: dict[str, Any] | str, width_mm: float) -> Drawing:
    spec = figure if isinstance(figure, str) else standalone(figure)
    key = _key(f"{width_mm} {spec if isinstance(spec, str) else json.dumps(spec, sort_keys=True)}")
    drawn = spec if isinstance(spec, str) else _cached(key, ".svg", lambda: _svg(spec)).decode()
    svg = scaled(drawn, width_mm)
    png = _cached(key, ".png", lambda: _png(svg))
    return Drawing(svg, png, _cached(key, ".pdf", lambda: _pdf(svg)))


def _svg(spec: dict[str, Any]) -> bytes:
    import vl_convert

    return short_paths(stable_names(vl_convert.vegalite_to_svg(spec))).encode()


def short_paths(svg: str) -> str:
    """Return the drawing with the coordinates of its lines to a hundredth of a pixel, in half the bytes."""
    return _PATH.sub(lambda path: _LONG_NUMBER.sub(r"\1", path[0]), svg)


def stable_names(svg: str) -> str:
    """Return the drawing with clips and gradients numbered from 0: Vega continues those of the previous figure."""
    numbers: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        name = numbers.setdefault(match[2], f"{match[3]}{len(numbers)}")
        return f"{match[1]}{name}{match[4]}"

    return _GIVEN_NAME.sub(renamed, svg)


def _png(svg: str) -> bytes:
    import vl_convert

    return bytes(vl_convert.svg_to_png(in_points(svg), ppi=PNG_PPI))


def _pdf(svg: str) -> bytes:
    import vl_convert

    from plait.report.render.pdf import canonical

    return canonical(bytes(vl_convert.svg_to_pdf(in_points(svg))))


def _bundle() -> bytes:
    import vl_convert

    # Without a snippet it sets vega, vegaLite and vegaEmbed on window; its stub does not know.
    return vl_convert.javascript_bundle(None).encode()  # type: ignore[arg-type]


def _key(content: str) -> str:
    """Return the name under which something is cached: it changes with the content and with the renderer."""
    version = importlib.metadata.version("vl-convert-python")
    return hashlib.sha256(f"{version}\n{PNG_PPI}\n{FORM}\n{content}".encode()).hexdigest()[:40]


def _cached(key: str, suffix: str, make: Any) -> bytes:
    """Return what is in the cache, or make it and put it there, with its SHA-256 behind it.

    A damaged entry is made again; a cache that cannot be written is no error.
    """
    folder, name = Folder(cache_root()) / "figures", f"{key}{suffix}"
    with contextlib.suppress(OSError):  # it was never drawn
        kept = folder.read(name)
        if kept[-_SUM_BYTES:] == hashlib.sha256(kept[:-_SUM_BYTES]).digest():
            return kept[:-_SUM_BYTES]
    require(DRAWING)
    content = bytes(make())
    with contextlib.suppress(OSError):  # the next report draws it again
        folder.write(name, content + hashlib.sha256(content).digest())
    return content


def _prune() -> None:
    """Remove the oldest files beyond the number that is kept."""
    folder = cache_root() / "figures"
    try:
        files = [path for path in folder.iterdir() if path.suffix in {".svg", ".png", ".pdf", ".js"}]
        if len(files) > KEPT:
            for path in sorted(files, key=lambda path: path.stat().st_mtime)[: len(files) - KEPT]:
                path.unlink(missing_ok=True)
    except OSError:
        return  # another report prunes at the same time, or the folder cannot be read
