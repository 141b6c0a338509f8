"""The groups of verbs as people see them: their help without types of switches, and options that went away."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from plait.errors import RequestError

_FORMER = {
    "run": {
        "--calibration": "plait calibrates no links any more: leave it out",
        "--pause": "the scenario has it: write --set pause=before, --set pause=after, or --set 'pause=[before, after]'",
        "--trace": "the scenario has it: write --set 'monitors.tracepoints=[\"mptcp:*\"]'",
    }
}
"""By verb, the options that went away, and what to write instead."""
_CALLED_ELSEWHERE = {"check": "lint", "validate": "lint", "clean": "store"}
"""Verbs that people look for by the names of other tools; the nearest spelling is another verb, or none."""


class Verbs(TyperGroup):
    """A group of verbs."""

    def invoke(self, ctx: Any) -> Any:
        """Carry out a verb. Raise Abort after Ctrl-C: typer would return its exit code without a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise typer.Abort from interrupt

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the group, switches without a type."""
        return _untyped(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb, whose switches have no type and whose help has the lines of the terminal."""
        verb = super().get_command(ctx, cmd_name)
        if verb is not None:
            _untyped(verb.get_params(ctx))
            verb.help = _whole_paragraphs(verb.help or "")
        return verb

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb and its words. Raises RequestError for an option that went away, or a name of other tools."""
        if args and ctx.parent is None and args[0] in _CALLED_ELSEWHERE:
            verb = _CALLED_ELSEWHERE[args[0]]
            raise RequestError(f"plait {args[0]}: there is no such verb; see `plait {verb} --help`")
        former = _FORMER.get(args[0], {}) if args else {}
        for word in args[1 : args.index("--") if "--" in args else None]:
            option = word.partition("=")[0]
            if option in former:
                raise RequestError(f"plait {args[0]} {option}: this option is gone, because {former[option]}")
        return super().resolve_command(ctx, args)


def _whole_paragraphs(text: str) -> str:
    """Return a help text with each paragraph in one line: the lines of the source are not those of a terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _untyped(parameters: list[Any]) -> list[Any]:
    """Return the parameters, of which each switch shows no `<bool>`."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters
