"""`plait view`: show studies in a browser, from a local server or as static files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared.ending import notify

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR]..", help="Result folders, or folders above them", show_default="results"
        ),
    ] = None,
    *,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export", metavar="DIR", help="Write the pages as static files to DIR instead of serving them"
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=65_535, help="Port of the server", show_default="a free one"),
    ] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address and open no browser")] = False,
) -> int:
    """Show studies in a browser.

    The server listens on this machine's loopback only; Ctrl-C ends it.
    """
    roots = folders or [Path("results")]
    if export is not None:
        from plait.view.export import export_site

        written = export_site(roots, export, notify)
        typer.echo(f"Wrote {written} files; open {export / 'index.html'}")
        return 0
    from plait.view.server import serve

    server = serve(roots, port)
    typer.echo(f"Open {server.address}")
    sys.stdout.flush()  # for scripts that wait for the address
    typer.echo("Ctrl-C ends the server.", err=True)
    if not no_open:
        import webbrowser

        if not webbrowser.open(server.address):
            notify("no browser could be opened; open the address above")
    server.run()
    return 0
