"""`plait advise`: try what a person can change on hosts with several lines, and advise what helps."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import interruption_of, notify
from plait.cli.shared.options import JobsOption, KernelOption
from plait.errors import RequestError, printable, shell_command
from plait.files import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.advice.changes.model import HostCommand
    from plait.advice.result import Advice
    from plait.advice.search import AdviceRequest
    from plait.advice.situation import Situation
    from plait.advice.verify import RealLines
    from plait.engine.remote.lasting import RemoteHost
    from plait.scenario import Scenario

    Place = tuple[Path | None, Path | None]
    """A file of hosts, and a configuration file of ssh."""

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
_MINUTES = (0.1, 1440)
_REAL = "On the real lines (--verify)"
AdviceHostsOption = Annotated[
    Path | None,
    typer.Option("--hosts", metavar="FILE", help="File of the real hosts, hosts.yaml", rich_help_panel=_REAL),
]
AdviceSshOption = Annotated[
    Path | None,
    typer.Option(
        "--ssh-config",
        metavar="FILE",
        help="Configuration file for ssh",
        show_default="your own",
        rich_help_panel=_REAL,
    ),
]
LinesArgument = Annotated[
    str, typer.Argument(metavar="LINES", help="Scenario of the lines, as `plait lines` writes it")
]
GoalsOption = Annotated[
    str, typer.Option("--for", metavar="GOAL,..", help="What for: download, upload, call, video, pages")
]
MinutesOption = Annotated[
    float, typer.Option(metavar="N", min=_MINUTES[0], max=_MINUTES[1], help="Longest time of the search")
]
SeedOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="First seed", show_default="that of the scenario")
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Result folder", show_default="results/NAME-advice"),
]
InterfacesOption = Annotated[
    str | None,
    typer.Option(
        "--interfaces",
        metavar="NAME,..",
        help="Interfaces of the lines in the scenario's order, for commands",
        show_default="those that the labels name",
    ),
]
PrintOption = Annotated[
    bool, typer.Option("--print", help="With --apply: only print the commands, and those that undo them")
]
VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify", help="Run the settings now and the best change on the real lines, and compare",
        rich_help_panel=_REAL,
    ),
]  # fmt: skip
TrialsOption = Annotated[
    int,
    typer.Option(
        "--repeat",
        metavar="N",
        min=2,
        max=1000,
        help="Trials of each on the real lines",
        rich_help_panel=_REAL,
    ),
]
AdviceJson = Annotated[bool, typer.Option("--json", help="Print the advice as JSON")]


def command(
    lines: LinesArgument,
    *,
    goals: GoalsOption = "download",
    minutes: MinutesOption = 2.0,
    seed: SeedOption = None,
    jobs: JobsOption = None,
    kernel: KernelOption = None,
    out: OutOption = None,
    interfaces: InterfacesOption = None,
    apply: ApplyOption = None,
    change: ChangeOption = None,
    printed: PrintOption = False,
    verify: VerifyOption = False,
    hosts: AdviceHostsOption = None,
    ssh_config: AdviceSshOption = None,
    repeat: TrialsOption = 5,
    json_output: AdviceJson = False,
) -> int:
    """Try changes of two hosts over emulated lines, and advise which ones help.

    plait tries congestion controls, buffers, MPTCP endpoints and shapers, with the same seeds for all, and more seeds
    for the better ones. It changes a host with --apply, until `plait undo HOST` or a reboot, and with --verify while it
    compares the twin with the real lines.
    """
    from plait.advice.goals import goals_named
    from plait.advice.search import AdviceRequest, refuse_taken
    from plait.advice.situation import Situation

    _check_options(minutes, apply, printed=printed, json_output=json_output)
    _check_verify(hosts, apply, change, verify=verify)
    names = tuple(interfaces.replace(" ", "").split(",")) if interfaces else ()
    folder = out or Path("results") / f"{Path(lines).stem}-advice"
    request = AdviceRequest(goals_named(goals), minutes, folder, seed, jobs, names)
    scenario = _loaded(lines)
    situation = Situation.of(scenario, names)
    refuse_taken(folder, situation)
    at = (hosts, ssh_config)
    target = None if apply is None else _Target.of(apply, situation, change, at, printed=printed)
    real = None if not verify else _real_lines(situation, request, change, at, repeat)
    advices: list[Advice] = []
    if (
        number := interruption_of(lambda: advices.append(_advice(scenario, request, kernel, real)))
    ) is not None:
        notify(
            "interrupted; the trials that have finished are kept, and the same command continues from there"
        )
        return 128 + number
    (advice,) = advices
    text = json.dumps(advice.as_json(), indent=1) + "\n"
    Folder(folder).write("advice.json", text.encode())
    if json_output:
        typer.echo(text, nl=False)
    elif target is not None:
        _apply(advice, target, change, printed=printed)
    else:
        _show(advice, folder)
        _show_next(advice, lines, request, out, kernel)
    return 0


def _show_next(
    advice: Advice, lines: str, request: AdviceRequest, out: Path | None, kernel: str | None
) -> None:
    """Print the command that shows the best change, with the options that take its trials from the store."""
    if advice.best is None:
        return
    options = {
        "--for": ",".join(goal.name for goal in request.goals), "--minutes": f"{request.minutes:g}",
        "--seed": request.seed, "--jobs": request.jobs, "--kernel": kernel, "--out": out,
        "--interfaces": ",".join(request.interfaces) or None, "--apply": advice.client,
    }  # fmt: skip
    repeated = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    again = shell_command("plait", "advise", lines, *repeated, "--print")
    notify(f"the commands for a host, and those that undo them: {again}")


def _check_options(minutes: float, apply: str | None, *, printed: bool, json_output: bool) -> None:
    """Raise RequestError for options that exclude or need each other."""
    if not math.isfinite(minutes):
        raise RequestError(f"--minutes {minutes}: write a number from {_MINUTES[0]} to {_MINUTES[1]}")
    if printed and apply is None:
        raise RequestError("--print needs a host to change; name it with --apply NAME")
    if json_output and apply is not None:
        raise RequestError(
            "--json and --apply exclude each other; advice.json in the result folder has the advice"
        )


def _check_verify(hosts: Path | None, apply: str | None, change: str | None, *, verify: bool) -> None:
    """Raise RequestError for options of --verify and --apply that exclude or need each other."""
    if verify and apply is not None:
        raise RequestError(
            "--verify and --apply exclude each other: --verify takes the change back at its end"
        )
    if verify and hosts is None:
        raise RequestError("--verify needs the real hosts; name their file with --hosts hosts.yaml")
    if change is not None and apply is None and not verify:
        raise RequestError("--change needs a host to change; name it with --apply NAME, or add --verify")
    if hosts is not None and apply is None and not verify:
        raise RequestError("--hosts is for --verify and --apply; add one of them")


def _real_lines(
    situation: Situation, request: AdviceRequest, change: str | None, at: Place, repeat: int
) -> RealLines:
    """Return the real lines of --verify, after checks of the hosts (RequestError, MachineError)."""
    from plait.advice.verify import RealLines
    from plait.engine.factory import make_engine
    from plait.engine.remote.lasting import RemoteHost
    from plait.engine.request import EngineRequest
    from plait.hosts.read import read_hosts

    if change is not None:
        _commands_of(change, situation)
    hosts, ssh_config = at
    assert hosts is not None
    file = read_hosts(hosts)
    ends = (situation.client, situation.server)
    reached = {name: RemoteHost.named(name, file, ssh_config) for name in ends}
    engine = make_engine("remote", EngineRequest(hosts=hosts, ssh_config=ssh_config, warn=notify))
    real = RealLines(situation, request, reached, lambda _: engine, change, repeat)
    real.refuse_changed()
    return real


def _loaded(lines: str) -> Scenario:
    """Return the scenario of the lines. Raises RequestError for results, which are no scenario."""
    from plait.scenario import load

    place = Path(lines)
    if place.is_dir() and Folder(place).has("advice.json"):
        again = shell_command("plait", "advise", "LINES", "--out", lines)
        raise RequestError(
            f"{lines} has an advice, and no scenario; {place / 'advice.json'} has its numbers, and `{again}` shows it "
            "again from the store"
        )
    if place.is_dir():
        raise RequestError(
            f"{lines} is a folder; `plait advise` takes the scenario of the lines, such as lines.yaml; `plait explain "
            "DIR` says of results what plait advise would try"
        )
    if place.name == "advice.json" and place.is_file():
        raise RequestError(
            f"{lines} is the result of an advice, and no scenario; give the scenario of the lines that it was on"
        )
    return load(lines, ())


def _advice(scenario: Scenario, request: AdviceRequest, kernel: str | None, real: RealLines | None) -> Advice:
    """Return the advice, and with `real` lines their comparison with the twin."""
    from plait.advice.search import search
    from plait.advice.verify import verify
    from plait.cli.shared.kernel import engines_on

    engine = engines_on(kernel)
    advice = search(scenario, request, engine, notify)
    return advice if real is None else replace(advice, verified=verify(advice, real, engine, notify))


def _show(advice: Advice, folder: Path) -> None:
    from plait.advice.words import sentences, table, verified_sentences, verified_table
    from plait.report.terminal.summary import Screen

    screen = Screen()
    for goal in advice.goals:
        screen.tables.print(table(goal))
        screen.line("")
        for sentence in sentences(goal, [other for other in advice.goals if other is not goal]):
            screen.line(sentence)
        screen.line("")
    if advice.verified:
        screen.tables.print(verified_table(advice.verified))
        screen.line("")
        for sentence in verified_sentences(advice.verified):
            screen.line(sentence)
        screen.line("")
    screen.line(f"Studies and advice.json: {folder}", whole=True)


@dataclass(frozen=True)
class _Target:
    """The host of --apply: its name in the scenario, and the real one."""

    name: str
    host: RemoteHost

    @classmethod
    def of(cls, named: str, situation: Situation, change: str | None, at: Place, *, printed: bool) -> _Target:
        """Read the value of --apply, and check it and --change before a search (RequestError)."""
        from plait.engine.remote.lasting import RemoteHost
        from plait.hosts.read import read_hosts

        name, _, destination = named.partition("=")
        hosts = (situation.client, situation.server)
        if name not in hosts:
            raise RequestError(f"--apply {name}: the hosts are {' and '.join(hosts)}")
        if change is not None:
            commands = [item for item in _commands_of(change, situation) if item.host == name]
            _refuse_elsewhere(name, change, commands, printed=printed)
        file = None if at[0] is None or destination else read_hosts(at[0])
        return cls(name, RemoteHost.named(destination or name, file, at[1]))


def _commands_of(change: str, situation: Situation) -> list[HostCommand]:
    """Return the commands of a change or a pair (RequestError if there is none of that name)."""
    from plait.advice.candidates import candidates

    known = {candidate.name: candidate for candidate in candidates(situation) if candidate.commands}
    parts = change.split("+")
    if missing := [part for part in parts if part not in known]:
        raise RequestError(
            f"--change {change}: there is no change {missing[0]!r}; there is: {', '.join(known)}"
        )
    return [item for part in parts for item in known[part].commands]


def _refuse_elsewhere(host: str, change: str, commands: Sequence[HostCommand], *, printed: bool) -> None:
    """Raise RequestError if a change has nothing for a host, or something that plait does not do itself."""
    if not commands:
        raise RequestError(f"--apply {host}: {change} changes nothing on this host; name the other one")
    if not printed and any(item.lasting is None for item in commands):
        note = next((item.note for item in commands if item.note), "")
        remedy = "name the interfaces with --interfaces, or add --print" if note else "add --print"
        raise RequestError(
            f"--apply {host}: {change} needs a command that plait does not run by itself; {remedy} to see the commands"
        )


def _apply(advice: Advice, target: _Target, change: str | None, *, printed: bool) -> None:
    """Make a change on a host, or print its commands. Raises RequestError, MachineError."""
    from plait.advice.words import commands
    from plait.engine.remote.lasting import apply as make

    name = change or advice.best
    if name is None:
        raise RequestError("--apply: nothing is shown to help; --change NAME selects a change")
    if change is None and (worse := advice.worse_for(name)):
        raise RequestError(
            f"--apply: {name} helps one goal, and is worse for {', '.join(worse)}; choose a change with --change NAME"
        )
    wanted = [item for item in advice.candidate(name).commands if item.host == target.name]
    _refuse_elsewhere(target.name, name, wanted, printed=printed)
    if printed:
        for line in commands(advice, name, target.name):
            typer.echo(line)
        return
    applied = make(target.host, [item.lasting for item in wanted if item.lasting is not None])
    for line in applied.changed:
        typer.echo(printable(f"{applied.host}: {line}"))
    if not applied.changed:
        typer.echo(f"{applied.host}: {name} is set already")
    notify(f"take it back: {shell_command('plait', 'undo', applied.host)}")
