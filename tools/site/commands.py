"""The reference of the command, made from the verbs themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from plait.cli import app

EXIT_CODES = """\
## Exit codes

| code | meaning |
| -- | -- |
| 0 | success |
| 1 | some trials failed, or part of the report is missing; `compare`: a metric is worse |
| 2 | the request is wrong; plait ran nothing |
| 3 | this machine cannot run it; the message names what is missing |
| 129, 130, 143 | SIGHUP, Ctrl-C or SIGTERM ended it; plait keeps what is finished |
"""


def page() -> str:
    """Return the page with every verb of `plait`, its arguments and its options, as Markdown."""
    lines = [
        "# Commands",
        "",
        "`plait VERB --help` prints the same on a terminal.",
        "",
        EXIT_CODES,
    ]
    for name, command in _commands("plait", typer.main.get_command(app)):
        lines += _section(name, command)
    return "\n".join(lines) + "\n"


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield each verb with its whole name, and the verbs of groups after the group's own name."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for verb, inner in sorted(command.commands.items()):
        if inner.hidden:
            continue  # the former name of another verb
        yield from _commands(f"{name} {verb}", inner)


def _section(name: str, command: Any) -> list[str]:
    arguments = [parameter for parameter in command.params if not parameter.opts[0].startswith("-")]
    options = [
        parameter
        for parameter in command.params
        if parameter.opts[0].startswith("-") and not parameter.hidden
    ]
    usage = [name, *(["[OPTIONS]"] if options else []), *(_argument(parameter) for parameter in arguments)]
    lines = [f"## {name}", "", "```", " ".join(usage), "```", "", *_paragraphs(command.help or ""), ""]
    for title, parameters in (("argument", arguments), ("option", options)):
        if parameters:
            lines += [f"| {title} | meaning |", "| -- | -- |"]
            lines += [f"| {_names(parameter)} | {_meaning(parameter)} |" for parameter in parameters]
            lines.append("")
    return lines


def _paragraphs(text: str) -> list[str]:
    """Return help as Markdown: the terminal's line breaks inside a paragraph mean nothing."""
    return [text.replace("\b", "").strip()]


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    name = name if parameter.required else f"[{name}]"
    return f"{name}.." if parameter.nargs == -1 else name


def _names(parameter: Any) -> str:
    if not parameter.opts[0].startswith("-"):
        return f"`{parameter.metavar or parameter.name.upper()}`"
    metavar = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    names = [*parameter.opts, *parameter.secondary_opts]
    return ", ".join(f"`{name}{metavar}`" for name in names).replace("|", "\\|")


def _meaning(parameter: Any) -> str:
    text = re.sub(r"\s+", " ", parameter.help or "").strip().rstrip(".")
    shown = parameter.show_default
    default = shown if isinstance(shown, str) else None
    if default is None and shown and parameter.default not in (None, False, True, (), []):
        default = str(parameter.default)
    return f"{text}; default: {default}".replace("|", "\\|") if default else text.replace("|", "\\|")
