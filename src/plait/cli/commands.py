"""Registers the verbs of `plait`, one file for each, runs one of them, and turns errors into exit codes.

Exit codes: 0 success; 1 some trials failed, or part of the report is missing; 2 the request is wrong and plait ran
nothing; 3 this machine cannot run it; 130 interrupted (129 by SIGHUP, 143 by SIGTERM).
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

import typer

from plait import limits
from plait.cli.shared import ending
from plait.cli.shared.verbs import Verbs
from plait.errors import Ended, PlaitError
from plait.version import __version__

_VERBS = {
    "Run": "new import_ list lint plan run crosscheck laboratory.shell laboratory.exec",
    "Look": "results.report results.explain results.compare results.view results.export",
    "Real hosts": "observe lines results.advise undo",
    "Kernels": "laboratory.benchmark laboratory.selftest laboratory.hunt laboratory.bisect",
    "Manage": "results.merge results.bundle results.verify laboratory.doctor help",
}
"""The modules of the verbs by what they are for, in the order of the help. A verb is called as its module is."""
_GROUPS = {"laboratory.kernel": "Kernels", "laboratory.bpf": "Real hosts", "store": "Manage"}
"""The modules of verbs that have verbs of their own."""
_PROGRAM_FOLLOWS = {"exec": {"allow_interspersed_args": False}}
"""Settings of verbs: what follows the program of `exec` belongs to the program."""
_FORMER = {"measure": "lines"}
"""Former names of verbs."""


def command_line(words: Sequence[str] = ()) -> typer.Typer:
    """Return the command, with as much of it as the words after `plait` need; without words, all.

    One verb needs no other one, `--version` needs none, and the list of verbs shows no options: to read those of all
    takes longer than many a verb.
    """
    command = typer.Typer(
        name="plait",
        help="A Multipath TCP laboratory: a real Linux kernel in virtual time.",
        cls=Verbs,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    command.callback(invoke_without_command=True)(_options)
    if [*words] == ["--version"]:
        return command
    verbs = {_called(module): (module, panel) for panel, names in _VERBS.items() for module in names.split()}
    verbs |= {former: verbs[name] for former, name in _FORMER.items()}
    groups = {_called(module): (module, panel) for module, panel in _GROUPS.items()}
    listed = [*words] == ["--help"]  # `list` is a verb here
    one = words[0] if words and words[0] != "help" and words[0] in {*verbs, *groups} else None
    for name, (module, panel) in verbs.items():
        if one in (None, name):
            settings = _PROGRAM_FOLLOWS.get(name)
            register = command.command(
                name, rich_help_panel=panel, context_settings=settings, hidden=name in _FORMER
            )
            verb = import_module(f"plait.cli.{module}").command
            register(_without_options(verb) if listed else verb)
    for name, (module, panel) in groups.items():
        if one in (None, name):
            group = import_module(f"plait.cli.{module}").app
            group = typer.Typer(help=group.info.help) if listed else group
            command.add_typer(group, name=name, rich_help_panel=panel)
    return command


def _without_options(verb: Callable[..., object]) -> Callable[[], None]:
    def summary() -> None:
        """Do nothing."""

    summary.__doc__ = verb.__doc__
    return summary


def _called(module: str) -> str:
    return module.rpartition(".")[2].rstrip("_")


def _options(version: bool = typer.Option(False, "--version", help="Print the version and exit")) -> None:
    if version:
        typer.echo(f"plait {__version__}")
        raise typer.Exit


def run() -> None:
    """Run the command line and exit with its exit code."""
    gc.set_threshold(100_000, 50, 100)  # modules and tables live as long as the command: a sixth of its start
    atexit.register(gc.freeze)  # at the end Python would visit all objects for cycles: a tenth of the time
    ending.open_closed_streams()
    try:
        ending.on_signals()
        ending.refuse_old_processors()
        ending.show_old_spellings()
        limits.require(limits.FILES, limits.ADDRESSES)
        limits.require_processes()
        code = command_line(sys.argv[1:])(standalone_mode=False)
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
