"""`plait advise`: try what a person can change on hosts with several lines, and advise what helps."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import JobsOption, KernelOption
from plait.errors import RequestError, printable, shell_command
from plait.files import Folder

if TYPE_CHECKING:
    from plait.advice.result import Advice
    from plait.advice.search import AdviceRequest
    from plait.scenario import Scenario

ApplyOption = Annotated[
    str | None,
    typer.Option(
        "--apply",
        metavar="NAME[=HOST]",
        help="Make the change on host NAME of the scenario, which ssh reaches as HOST (or localhost)",
    ),
]
ChangeOption = Annotated[
    str | None,
    typer.Option("--change", metavar="NAME", help="Change for --apply", show_default="the best one"),
]


def command(
    lines: Annotated[
        str, typer.Argument(metavar="LINES", help="Scenario of the lines, as `plait lines` writes it")
    ],
    *,
    goals: Annotated[
        str,
        typer.Option("--for", metavar="GOAL,..", help="What for: download, upload, call, video, pages"),
    ] = "download",
    minutes: Annotated[
        float, typer.Option(metavar="N", min=0.1, max=1440, help="Longest time of the search")
    ] = 5.0,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="First seed", show_default="that of the scenario")
    ] = None,
    jobs: JobsOption = None,
    kernel: KernelOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Result folder", show_default="results/NAME-advice"),
    ] = None,
    apply: ApplyOption = None,
    change: ChangeOption = None,
    printed: Annotated[
        bool, typer.Option("--print", help="With --apply: only print the commands, and those that undo them")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the advice as JSON")] = False,
) -> int:
    """Try changes of two hosts over emulated lines, and advise which ones help.

    plait tries congestion controls, buffers, MPTCP endpoints and shapers, with the same seeds for all, and more seeds
    for the better ones. It changes a host only with --apply, until `plait undo HOST` or a reboot.
    """
    from plait.advice.goals import goals_named
    from plait.advice.search import AdviceRequest
    from plait.scenario import load

    if printed and apply is None:
        raise RequestError("--print prints the commands of a host; name it with --apply NAME")
    if json_output and apply is not None:
        raise RequestError(
            "--json and --apply exclude each other; advice.json in the result folder has the advice"
        )
    folder = out or Path("results") / f"{Path(lines).stem}-advice"
    request = AdviceRequest(goals_named(goals), minutes, folder, seed, jobs)
    advice = _advice(load(lines, ()), request, kernel)
    text = json.dumps(advice.as_json(), indent=1) + "\n"
    Folder(folder).write("advice.json", text.encode())
    if json_output:
        typer.echo(text, nl=False)
    elif apply is not None:
        _apply(advice, apply, change, printed=printed)
    else:
        _show(advice, folder)
        again = ("plait", "advise", lines, "--for", goals, "--apply", advice.client, "--print")
        if advice.best is not None:
            notify(f"the commands for a host, and those that undo them: {shell_command(*again)}")
    return 0


def _advice(scenario: Scenario, request: AdviceRequest, kernel: str | None) -> Advice:
    from plait.advice.search import search
    from plait.cli.shared.kernel import build_with_progress
    from plait.engine.factory import make_engine
    from plait.engine.request import EngineRequest

    engine = partial(
        make_engine, request=EngineRequest(kernel=kernel, warn=notify, build=build_with_progress)
    )
    return search(scenario, request, engine, notify)


def _show(advice: Advice, folder: Path) -> None:
    from plait.advice.words import sentences, table
    from plait.report.terminal.summary import Screen

    screen = Screen()
    for goal in advice.goals:
        screen.tables.print(table(goal))
        screen.line("")
        for sentence in sentences(goal, [other for other in advice.goals if other is not goal]):
            screen.line(sentence)
        screen.line("")
    screen.line(f"Studies and advice.json: {folder}", whole=True)


def _apply(advice: Advice, named: str, change: str | None, *, printed: bool) -> None:
    """Make a change on a host, or print its commands. Raises RequestError, MachineError."""
    from plait.advice.words import commands
    from plait.engine.remote.lasting import RemoteHost
    from plait.engine.remote.lasting import apply as make

    host, _, destination = named.partition("=")
    if host not in (advice.client, advice.server):
        raise RequestError(f"--apply {host}: the hosts are {advice.client} and {advice.server}")
    known = [candidate.name for candidate in advice.candidates if candidate.commands]
    if change is not None and change not in known:
        raise RequestError(f"--change {change}: there is no such change; there is: {', '.join(known)}")
    name = change or advice.best
    if name is None:
        raise RequestError("--apply: nothing is shown to help; --change NAME selects a change")
    if change is None and (worse := advice.worse_for(name)):
        raise RequestError(
            f"--apply: {name} helps one goal, and is worse for {', '.join(worse)}; choose a change with --change NAME"
        )
    wanted = [item for item in advice.candidate(name).commands if item.host == host]
    if printed and not wanted:
        raise RequestError(f"--apply {host}: {name} changes nothing on this host; name the other one")
    if printed:
        for line in commands(advice, name, host):
            typer.echo(line)
        return
    lasting = [item.lasting for item in wanted if item.lasting is not None]
    if not wanted or len(lasting) < len(wanted):
        reason = (
            "is made on the other host" if not wanted else "needs a command that plait does not run by itself"
        )
        raise RequestError(f"--apply {host}: {name} {reason}; add --print to see the commands of a host")
    applied = make(RemoteHost.named(destination or host), lasting)
    for line in applied.changed:
        typer.echo(printable(f"{applied.host}: {line}"))
    if not applied.changed:
        typer.echo(f"{applied.host}: {name} is set already")
    notify(f"take it back: {shell_command('plait', 'undo', applied.host)}")
