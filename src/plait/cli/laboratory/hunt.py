"""`plait hunt`: searches a kernel's MPTCP for faults, and writes the smallest case of each to a file."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from plait.binaries import AGENT
from plait.cli.shared.ending import interruption_of, notify
from plait.cli.shared.environment import environment_of
from plait.cli.shared.kernel import chosen_kernel
from plait.cli.shared.options import GuestsOption, KernelOption
from plait.errors import RequestError, shell_command

if TYPE_CHECKING:
    from signal import Signals

    from plait.testing.hunt.run import CaseResult
    from plait.testing.hunt.search import Fault, HuntTotals

_MINUTES, _OUT = 10.0, Path("faults")


def command(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Repeat the case in this file", show_default="search"),
    ] = None,
    *,
    kernel: KernelOption = None,
    minutes: Annotated[
        float, typer.Option(metavar="M", min=0.01, max=10_000, help="Minutes to search")
    ] = _MINUTES,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Seed of the first case")] = 1,
    faults: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="End after N different faults")
    ] = 1,
    jobs: GuestsOption = None,
    not_in: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only faults that this kernel does not have")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the files of faults")] = _OUT,
) -> int:
    """Search a kernel's MPTCP for faults with random networks.

    Connections and events are random, too.
    plait checks that all bytes arrive once and intact, connections make progress, no socket is left, counters add up,
    and the kernel prints no warning. It makes the case of a fault smaller, and writes it to a file that repeats it.
    After an interrupt, plait prints what it has searched, and the command that continues. Exit code 1: there is a
    fault.
    """
    from plait.engine.virtual.trial import VirtualEngine
    from plait.testing.hunt.run import play, play_together, require_programs
    from plait.testing.hunt.search import Hunt, HuntLimits

    require_programs()
    options = (
        ("--minutes", f"{minutes:g}", f"{_MINUTES:g}"), ("--faults", f"{faults}", "1"), ("--jobs", f"{jobs}", "None"),
        ("--out", f"{out}", f"{_OUT}"), ("--not-in", f"{not_in}", "None"),
    )  # fmt: skip
    chosen = {option: value for option, value, default in options if value != default}
    if file is not None:
        return _repeat(file, kernel, ["--seed"] * (seed != 1) + list(chosen))
    booted = chosen_kernel(kernel)
    other = None if not_in is None else chosen_kernel(not_in)
    environment = environment_of([], terminal=False)
    inventory = VirtualEngine(booted, AGENT).inventory()
    limits = HuntLimits(minutes, faults, jobs or len(os.sched_getaffinity(0)))
    guests = f"{limits.jobs} guests at once" if limits.jobs > 1 else "one guest at a time"
    notify(f"hunting in {booted.name} for {minutes:g} min from seed {seed}, {guests}")
    stop = Event()
    hunt = Hunt(
        inventory, limits, lambda drawn: play_together(drawn, booted, environment, stop.is_set), notify, stop,
        keep=lambda fault: _write(out, fault, kernel),
        elsewhere=None if other is None else lambda drawn: play(drawn, other, environment, stop.is_set),
    )  # fmt: skip
    interrupted_by = interruption_of(lambda: hunt.run(seed))
    words = {"--seed": hunt.totals.next_seed, **chosen}
    if kernel:
        words = {"--kernel": kernel, **words}
    return _end(hunt.totals, interrupted_by, shell_command("plait", "hunt", *chain(*words.items())))


def _end(totals: HuntTotals, interrupted_by: Signals | None, continued: str) -> int:
    """Show what was found and the command that goes on; return the exit code."""
    _show(totals)
    if interrupted_by is not None:
        notify(f"interrupted by {interrupted_by.name}; to continue: {continued}")
        return 128 + interrupted_by
    if totals.faults:
        return 1
    notify(f"to search further: {continued}")
    return 0


def _repeat(file: Path, kernel: str | None, options: list[str]) -> int:
    """Play the case in a file; refuse the options of a search that are given."""
    from plait.testing.hunt.case import load_case
    from plait.testing.hunt.run import play

    if options:
        raise RequestError(
            f"hunt FILE repeats one case on one kernel, without {', '.join(options)}; leave that out"
        )
    case, booted = load_case(file), chosen_kernel(kernel)
    return _show_result(play(case, booted, environment_of([], terminal=False)), booted.name)


def _show_result(result: CaseResult, kernel: str) -> int:
    for violation in result.violations:
        typer.echo(f"{violation.kind}: {violation.text}")
    _show_standstills(result.standstills)
    if not result.violations:
        typer.echo(
            f"no fault in {kernel}: {result.received_bytes} bytes arrived, {result.joined} subflows joined"
        )
    return 1 if result.violations else 0


def _show_standstills(count: int) -> None:
    if count:
        typer.echo(
            f"not judged: {count} standstill{'s' * (count > 1)} in cases in which Linux itself can stand still"
        )


def _write(out: Path, fault: Fault, kernel: str | None) -> None:
    """Write the case and the kernel's log, and say so."""
    from plait.files import Folder
    from plait.testing.hunt.case import as_text

    out.mkdir(parents=True, exist_ok=True)
    name = f"{fault.violation.kind}-seed{fault.seed}"
    option = ["--kernel", kernel] if kernel else []
    repeat = shell_command("plait", "hunt", out / f"{name}.yaml", *option)
    comment = f"{fault.violation.kind}: {fault.violation.text}\n{repeat}"
    folder = Folder(out)
    folder.write(f"{name}.yaml", as_text(fault.case, comment).encode())
    folder.write(f"{name}.log", fault.log.encode())
    before, after = fault.drawn, fault.case
    typer.echo(f"{fault.violation.kind}: {fault.violation.text}")
    typer.echo(
        f"  seed {fault.seed}, after {fault.found_s:.0f} s; made smaller in {fault.attempts} attempts: "
        f"{len(before.events)} -> {len(after.events)} events, {len(before.connections)} -> "
        f"{len(after.connections)} connections"
    )
    typer.echo(f"  to repeat: {repeat}")


def _show(totals: HuntTotals) -> None:
    if totals.unrepeated:
        seeds = ", ".join(
            f"seed {seed} (in one guest from seed {first} on)" for first, seed in totals.unrepeated[:10]
        )
        typer.echo(f"failures that did not happen again in guests of their own: {seeds}")
    _show_standstills(totals.standstills)
    if totals.shared:
        typer.echo(
            f"not judged: {totals.shared} case{'s' * (totals.shared > 1)} that the other kernel fails, too"
        )
    if totals.alike:
        seeds = ", ".join(map(str, totals.alike[:10]))
        rest = f" and {len(totals.alike) - 10} more" * (len(totals.alike) > 10)
        typer.echo(
            f"not examined, because they have faults like these: seed{'s' * (len(totals.alike) > 1)} {seeds}{rest}"
        )
    cases = f"{totals.cases} case{'s' * (totals.cases != 1)}"
    faults = f"{len(totals.faults) or 'no'} fault{'s' * (len(totals.faults) > 1)}"
    typer.echo(
        f"{cases}, {totals.subflows} subflows joined, {totals.received_bytes / 1e6:.0f} MB arrived in "
        f"{totals.virtual_s / 60:.0f} min of virtual time: {faults}"
    )
