"""The files that every page loads: the page itself, its style, its scripts, and the library that draws charts."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from plait.report.render.render import script
from plait.report.render.theme import DARK, LIGHT, PAGE_FONT, config
from plait.view.encode import data_script

SCRIPTS = (
    "base.js", "format.js", "table.js", "charts.js", "cases.js", "scenario.js", "live.js", "studies.js", "study.js",
    "trials.js", "trial.js", "compare.js", "app.js",
)  # fmt: skip
ASSETS = ("theme.css", "view.css", "theme.js", "vega.js", *SCRIPTS)
"""`theme.css` and `theme.js` have the colours; `vega.js` is the library, loaded for the first chart."""
FILE_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; "
    "base-uri 'none'; form-action 'none'"
)
"""The content policy of an exported page, which has no server to send one."""


def index(*, live: bool) -> str:
    """Return the page; one that is not `live` carries its content policy itself."""
    environment = Environment(
        loader=PackageLoader("plait.view", "pages"), autoescape=True, undefined=StrictUndefined
    )
    policy = "" if live else FILE_POLICY
    return environment.get_template("index.html.j2").render(
        scripts=("base.js", "theme.js", *SCRIPTS[1:]), policy=policy
    )


@cache
def asset(name: str) -> bytes:
    """Return the content of one of `ASSETS`."""
    if name == "vega.js":
        return script().encode()
    if name == "theme.js":
        return data_script("theme", {"light": LIGHT, "dark": DARK, "config": config(PAGE_FONT)})
    if name == "theme.css":
        return _theme_style().encode()
    return (files("plait.view") / "pages" / name).read_bytes()


def _theme_style() -> str:
    """Return the colours of both themes as variables; the reader's system selects, unless the page has a theme."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in theme.items()) for theme in (LIGHT, DARK)
    )
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{color-scheme:dark;{dark}}}}}\n"
        f':root[data-theme="light"]{{color-scheme:light;{light}}}\n'
        f':root[data-theme="dark"]{{color-scheme:dark;{dark}}}\n'
    )
