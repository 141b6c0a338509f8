"""The entry of the command `plait`, which imports everything else where Ctrl-C ends the process without a traceback."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

    app: typer.Typer
else:

    def __getattr__(name: str) -> Any:
        """Return `app`, the command with all its verbs, at its first use."""
        if name != "app":
            raise AttributeError(f"module 'plait.cli' has no attribute '{name}'")
        from plait.cli.commands import command_line

        globals()["app"] = command_line()
        return globals()["app"]


def main() -> None:
    """Run the command line and exit with its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `ending.on_signals`: imports take a while
    from plait.cli.commands import run

    run()
