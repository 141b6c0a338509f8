"""From specifications to SVG, PNG and PDF, through a cache: a figure that was drawn once is not drawn again.

Costs on a 2-core machine: 0.6 s for the renderer's first figure (it starts a JavaScript engine), then 0.06 s per
figure, 0.03 s per PNG and 0.05 s per PDF; 2 s, once, for the script that makes the page's charts interactive. Nothing
of it is spent, and the renderer not even loaded, when all figures are in the cache.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plait.analysis.gaps import part
from plait.cache import ContentCache
from plait.limits import DRAWING, require
from plait.process_pool import kept_pool, shared_out
from plait.report.render.fonts import fonts_here
from plait.report.render.formats import canonical, in_points, scaled, short_paths, stable_names
from plait.report.render.paper import PAGE_MM, refitted
from plait.report.render.text_width import with_text_lengths
from plait.report.render.theme import FONT, LIGHT, config, paint

PNG_PPI = 300.0
"""The resolution that journals require."""
FORM = 6
"""Grows when the same figure is drawn otherwise: what an earlier version left in the cache is not used."""
_FIGURES_EACH = 7
"""Figures that take about as long as the start of a worker."""
_FAMILY = FONT.partition(",")[0]
CACHE = ContentCache("figures", most=2_000)
_TARGET = "plait.report.render.render:draw_into_cache"


@dataclass(frozen=True)
class Drawing:
    """One figure, drawn."""

    svg: str
    png: bytes
    pdf: bytes

    @property
    def files(self) -> dict[str, bytes]:
        """The content of its files by their suffixes."""
        return {"svg": self.svg.encode(), "pdf": self.pdf, "png": self.png}


def draw_all(
    figures: Mapping[str, dict[str, Any] | str],
    width_mm: float = PAGE_MM,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> dict[str, Drawing]:
    """Return every figure drawn in the light theme, as wide as it was laid out for, drawings `width_mm`.

    A figure is a Vega-Lite specification, or SVG already. Those that are not in the cache are drawn in several
    processes; `progress` is called with the number of figures done, and the number of all.
    """
    requests = {
        name: (figure if isinstance(figure, str) else standalone(figure), width_of(figure, width_mm))
        for name, figure in figures.items()
    }
    drawings: dict[str, Drawing] = {}

    def draw(name: str) -> None:
        """Draw a figure in this process, or take it from the cache."""
        drawing = part(f"figure {name}", lambda: _draw(*requests[name]), None)
        if drawing is not None:
            drawings[name] = drawing
        progress(len(drawings), len(figures))

    # Those over time come last in a report and take longest: first of all, so that no process waits for another.
    missing = [name for name, request in requests.items() if not _is_kept(*request)][::-1]
    asked = [requests[name] for name in missing]
    for place, was_drawn in shared_out(
        _TARGET, asked, lambda place: draw(missing[place]), batch=_FIGURES_EACH
    ):
        if was_drawn:  # by another process
            draw(missing[place])
    for name in requests:
        if name not in missing:
            draw(name)
    workers = kept_pool()
    if workers is not None:
        workers.finish()
    if missing:
        CACHE.prune()
    return {name: drawings[name] for name in figures if name in drawings}


def draw_into_cache(request: list[Any] | None) -> bool:
    """Draw a figure, [the painted specification or SVG, the width in mm], into the cache; for None put `script` there.

    Always returns true.
    """
    if request is None:
        script()
    else:
        _draw(request[0], request[1])
    return True


def width_of(figure: dict[str, Any] | str, width_mm: float) -> float:
    """Return the width in mm that a figure was laid out for; for one without, `width_mm`."""
    laid_out = figure.get("usermeta", {}).get("width_mm") if isinstance(figure, dict) else None
    return width_mm if laid_out is None else float(laid_out)


def script() -> str:
    """Return the JavaScript of Vega, Vega-Lite and vega-embed in one piece; they are set on `window`."""
    return _cached(_key("script"), ".js", _bundle).decode()


def begin() -> None:
    """Let a worker bundle the script while this process computes what figures show."""
    workers = kept_pool()
    if workers is not None and CACHE.get(f"{_key('script')}.js") is None:
        workers.begin(_TARGET, None)


def warm() -> None:
    """Put into the cache what the first page needs most time for; may be called while trials run."""
    script()


def standalone(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with the light theme's look and colours put in."""
    family = spec.get("usermeta", {}).get("font")
    font = FONT if family is None else f"{family}, {FONT}"
    painted: dict[str, Any] = paint({**spec, "config": config(font)}, LIGHT)
    return painted


def _draw(figure: dict[str, Any] | str, width_mm: float) -> Drawing:
    key = _figure_key(figure, width_mm)
    drawn = (
        figure if isinstance(figure, str) else _cached(key, ".svg", lambda: svg_of(figure).encode()).decode()
    )
    svg = scaled(drawn, width_mm)
    png = _cached(key, ".png", lambda: _png(svg))
    return Drawing(with_text_lengths(svg, _FAMILY), png, _cached(key, ".pdf", lambda: _pdf(svg)))


def _is_kept(figure: dict[str, Any] | str, width_mm: float) -> bool:
    """Return whether all files of a figure are in the cache."""
    key = _figure_key(figure, width_mm)
    suffixes = (".png", ".pdf") if isinstance(figure, str) else (".svg", ".png", ".pdf")
    return all(CACHE.get(f"{key}{suffix}") is not None for suffix in suffixes)


def _figure_key(figure: dict[str, Any] | str, width_mm: float) -> str:
    content = figure if isinstance(figure, str) else json.dumps(figure, sort_keys=True)
    return _key(f"{fonts_here()} {width_mm} {content}")


def svg_of(spec: dict[str, Any]) -> str:
    """Return a specification with its colours as SVG, whose panels together have the width that it names."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec)
    refit = refitted(spec, svg)
    if refit is not None:
        svg = vl_convert.vegalite_to_svg(refit)
    return short_paths(stable_names(svg))


def _png(svg: str) -> bytes:
    import vl_convert

    return bytes(vl_convert.svg_to_png(in_points(svg), ppi=PNG_PPI))


def _pdf(svg: str) -> bytes:
    import vl_convert

    return canonical(bytes(vl_convert.svg_to_pdf(in_points(svg))))


def _bundle() -> bytes:
    import vl_convert

    # Without a snippet it sets vega, vegaLite and vegaEmbed on window.
    return vl_convert.javascript_bundle(None).encode()  # type: ignore[arg-type]  # its stub requires one


def _key(content: str) -> str:
    """Return the name under which something is cached: it changes with the content and with the renderer."""
    version = importlib.metadata.version("vl-convert-python")
    return hashlib.sha256(f"{version}\n{PNG_PPI}\n{FORM}\n{content}".encode()).hexdigest()[:40]


def _cached(key: str, suffix: str, compute: Callable[[], bytes]) -> bytes:
    """Return what is in the cache, or make it and put it there."""
    kept = CACHE.get(f"{key}{suffix}")
    if kept is not None:
        return kept
    require(DRAWING)
    content = bytes(compute())
    CACHE.put(f"{key}{suffix}", content)
    return content
