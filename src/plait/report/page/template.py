"""From values to HTML: the templates beside this file, filled with everything escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def fill(template: str, **values: object) -> Markup:
    """Return `templates/TEMPLATE.html.j2` filled with `values`; it has no default for one that is missing.

    Jinja2 escapes every text; only what is a `Markup` already is taken as HTML.
    """
    text = _environment().get_template(f"{template}.html.j2").render(values)
    return Markup(text)  # noqa: S704 - the template escaped what is in it


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("plait.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment
