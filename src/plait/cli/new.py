"""`plait new`: writes a commented scenario to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared import complete
from plait.cli.shared.outputs import output_file, output_folder, write_output
from plait.errors import RequestError, shell_command


def command(
    template: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEMPLATE]",
            help="Template or shipped scenario to start from",
            show_default="list them",
            autocompletion=complete.templates,
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Scenario file to write", show_default="TEMPLATE.yaml")
    ] = None,
) -> None:
    """Copy a template, or a shipped scenario with its files.

    Without a template, list the templates.
    """
    from plait.scenario.templates import templates

    known = templates()
    if template is None:
        if out is not None:
            raise RequestError(f"--out {out}: plait needs a template to write; `plait new` lists them")
        width = max(len(name) for name, _ in known)
        for name, title in known:
            typer.echo(f"{name:<{width}}  {title}")
        typer.echo("plait also copies each shipped scenario; `plait list` names them")
        return
    text, files = _contents(template, [name for name, _ in known])
    target = out if out is not None else Path(f"{template}.yaml")
    for reference, content in {**files, target.name: text}.items():  # the scenario last: its files are there
        place = target.parent / reference
        output_folder(place.parent, "--out")
        write_output(output_file(place, "--out", new=True), "--out", content, new=True)
    others = f" and {', '.join(files)}" if files else ""
    check, run = (shell_command("plait", verb, target) for verb in ("lint", "run"))
    typer.echo(f"Wrote {target}{others}; check it with `{check}`, run it with `{run}`")


def _contents(template: str, names: list[str]) -> tuple[bytes, dict[str, bytes]]:
    """Return the text of a template or shipped scenario, and its input files by their paths (RequestError)."""
    from plait.scenario import load as load_scenario
    from plait.scenario.read import library
    from plait.scenario.templates import template_text
    from plait.scenario.wording import nearest

    if template in names:
        return template_text(template).encode(), {}
    shipped = library.find(template)
    if shipped is None:
        hint = (
            nearest(template, [*names, *library.names()])
            or f"there is: {', '.join(names)}; see also `plait list`"
        )
        asked = shell_command("plait", "new", template)
        raise RequestError(f"{asked}: there is no such template or shipped scenario; {hint}")
    files = load_scenario(template).files
    return shipped.read_bytes(), {reference: file.path.read_bytes() for reference, file in files.items()}
