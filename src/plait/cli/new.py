"""`plait new`: writes a commented scenario to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared import complete
from plait.errors import RequestError


def command(
    template: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEMPLATE]",
            help="What to start from",
            show_default="list them",
            autocompletion=complete.templates,
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Scenario file to write", show_default="TEMPLATE.yaml")
    ] = None,
) -> None:
    """Write a commented scenario to start from.

    Without a template, list the templates.
    """
    from plait.scenario.read.wording import nearest
    from plait.scenario.templates import template_text, templates

    known = templates()
    if template is None:
        if out is not None:
            raise RequestError(f"--out {out}: plait needs a template to write; `plait new` lists them")
        width = max(len(name) for name, _ in known)
        for name, title in known:
            typer.echo(f"{name:<{width}}  {title}")
        return
    names = [name for name, _ in known]
    if template not in names:
        hint = nearest(template, names) or "there is: " + ", ".join(names)
        raise RequestError(f"plait new {template}: there is no such template; {hint}")
    target = out if out is not None else Path(f"{template}.yaml")
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(template_text(template))
    except FileExistsError:
        raise RequestError(
            f"writing {target}: the file exists and may hold changes of yours; choose another name with --out"
        ) from None
    except OSError as error:
        raise RequestError(f"writing {target}: {error.strerror}; choose another name with --out") from error
    typer.echo(f"Wrote {target}; check it with `plait lint {target}`, run it with `plait run {target}`")
