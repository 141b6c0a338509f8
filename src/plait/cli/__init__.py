"""The command `plait`: registers the verbs, one file for each, and turns errors into exit codes.

Exit codes: 0 success; 1 some trials failed, or part of the report is missing; 2 the request is wrong and plait ran
nothing; 3 this machine cannot run it; 130 interrupted (129 by SIGHUP, 143 by SIGTERM).
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

import typer

from plait import limits
from plait.cli import lines, store
from plait.cli.laboratory import bpf, kernel
from plait.cli.shared import ending
from plait.cli.shared.verbs import Verbs
from plait.errors import Ended, PlaitError
from plait.version import __version__

app = typer.Typer(
    name="plait",
    help="A Multipath TCP laboratory: a real Linux kernel in virtual time.",
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_GROUPS = {
    "Run": "new import_ list lint plan run crosscheck laboratory.shell laboratory.exec",
    "Look": "results.report results.explain results.compare results.view results.export",
    "Real hosts": "observe lines results.advise undo",
    "Kernels": "laboratory.benchmark laboratory.selftest laboratory.hunt laboratory.bisect",
    "Manage": "results.merge results.bundle results.verify laboratory.doctor help",
}
"""The modules of the verbs by what they are for, in the order of the help. A verb is called as its module is."""
_PROGRAM_FOLLOWS = {"exec": {"allow_interspersed_args": False}}
"""Settings of verbs: what follows the program of `exec` belongs to the program."""

for _group, _modules in _GROUPS.items():
    for _module in _modules.split():
        _verb = _module.rpartition(".")[2].rstrip("_")
        _register = app.command(_verb, rich_help_panel=_group, context_settings=_PROGRAM_FOLLOWS.get(_verb))
        _register(import_module(f"plait.cli.{_module}").command)
app.command("measure", hidden=True)(lines.command)  # the former name of `plait lines`
app.add_typer(kernel.app, name="kernel", rich_help_panel="Kernels")
app.add_typer(bpf.app, name="bpf", rich_help_panel="Real hosts")
app.add_typer(store.app, name="store", rich_help_panel="Manage")


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Print the version and exit")) -> None:
    if version:
        typer.echo(f"plait {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line and exit with its exit code."""
    gc.set_threshold(100_000, 50, 100)  # modules and tables live as long as the command: a sixth of its start
    try:
        ending.on_signals()
        ending.refuse_old_processors()
        ending.show_old_spellings()
        limits.require(limits.FILES, limits.ADDRESSES)
        limits.require_processes()
        code = app(standalone_mode=False)
        ending.flush()
    except PlaitError as error:
        ending.notify(str(error))
        sys.exit(error.exit_code)
    except typer.TyperException as error:
        if problem := ending.words_of_usage(error):  # `plait` alone has already printed its help
            path = getattr(getattr(error, "ctx", None), "command_path", "plait")
            verb = path if " " in path else "plait VERB"
            ending.notify(
                f"{problem}\nSee `plait --help` for the verbs and `{verb} --help` for "
                f"{'its' if ' ' in path else 'their'} options."
            )
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        ending.notify("interrupted")
        sys.exit(130)
    except Ended as end:
        ending.notify(f"terminated by {end.signal.name}")
        raise
    except BaseException as error:
        exit_code = ending.code_of(error)
        if exit_code is None:
            raise
        sys.exit(exit_code)
    sys.exit(code if isinstance(code, int) else 0)
