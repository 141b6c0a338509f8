"""`plait exec`: one program of this machine in a guest of its own."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.binaries import AGENT
from plait.cli.shared.ending import notify
from plait.cli.shared.environment import environment_of
from plait.cli.shared.kernel import chosen_kernel
from plait.cli.shared.options import KernelOption
from plait.cli.shared.sandbox import DISK, DiskOption, UnconfinedOption, bytes_of, policy

if TYPE_CHECKING:
    from plait.engine.interactive import ProgramStart
    from plait.engine.uml.containment import Policy
    from plait.engine.uml.foreground import SessionLimits
    from plait.engine.uml.session import SessionRequest
    from plait.plan.model.plan import Plan
    from plait.units import Duration

CLOCKS = ("virtual", "real")
SYSTEM_CALL_NS = 7000
"""What a system call takes of the virtual clock: measured in a guest whose clock is real (`getppid`, least of many).

What programs compute takes no time, so that switches that ask a controller answer too soon with less.
"""
_READ_AHEAD_BYTES = 256 << 20
_BROKEN_PIPE = 141
"""What a shell gives a program that SIGPIPE has ended."""


def command(
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="CMD", help="The program and its arguments; the options of plait stand before it."
        ),
    ],
    *,
    rw: Annotated[
        list[Path] | None, typer.Option("--rw", metavar="DIR", help="A folder that the program may change.")
    ] = None,
    clock: Annotated[str, typer.Option(help="virtual or real (for what talks to a person).")] = "virtual",
    seed: Annotated[int, typer.Option(min=0, help="Of all that is random in the guest.")] = 1,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Of the guest.")] = "1GiB",
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="Of the guest's clock; `none` for no end.")
    ] = "1h",
    wall_timeout: Annotated[str, typer.Option(metavar="TIME", help="Of this machine's clock.")] = "1h",
    system_call: Annotated[
        str, typer.Option(metavar="TIME", help="Of the virtual clock, for each system call.")
    ] = f"{SYSTEM_CALL_NS}ns",
    processes: Annotated[int, typer.Option(min=1, help="No more than so many at once.")] = 2000,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME=VALUE", help="A variable; NAME alone passes on the one that is here."
        ),
    ] = None,
    with_: Annotated[
        list[str] | None, typer.Option("--with", metavar="SERVICE", help="ovs: Open vSwitch, started before.")
    ] = None,
    kernel: KernelOption = None,
    output: Annotated[
        str, typer.Option("--output-limit", metavar="SIZE", help="Most that the program may print.")
    ] = "1GiB",
    disk: DiskOption = DISK,
    unconfined: UnconfinedOption = False,
) -> int:
    """Run a program of this machine, as root, in a fresh guest that cannot change this machine."""
    from plait.engine.uml.foreground import SessionLimits
    from plait.engine.uml.services import iperf_settings, services
    from plait.engine.uml.session import SessionRequest
    from plait.errors import RequestError

    if clock not in CLOCKS:
        raise RequestError(f"--clock {clock}: there is no such clock; there is: {', '.join(CLOCKS)}")
    real_time = clock == "real"
    environment = environment_of(env or [], terminal=_has_terminal(real_time=real_time))
    environment = sorted({**iperf_settings(program, dict(environment)["PATH"]), **dict(environment)}.items())
    plan = plan_of(seed, _mebibytes(memory), system_call_ns=_duration("--system-call", system_call))
    request = SessionRequest(
        start=_start(program, environment, real_time=real_time),
        writable=[_writable(folder) for folder in rw or []],
        processes_max=processes,
        before=services(with_, program, environment),
        time_limit_us=_micros("--timeout", timeout),
    )
    output_bytes = bytes_of("--output-limit", output)
    limits = SessionLimits(_wall_s(wall_timeout), plan.machine.memory_mib, processes, real_time, output_bytes)
    return _boot(kernel, plan, request, limits, policy(disk, unconfined=unconfined))


def _wall_s(text: str) -> float:
    wall_us = _micros("--wall-timeout", text)
    return float("inf") if wall_us is None else wall_us / 1e6


def _boot(
    kernel: str | None, plan: Plan, request: SessionRequest, limits: SessionLimits, policy: Policy
) -> int:
    """Boots the guest, follows its program to its end, and returns its exit code."""
    from plait.cache import cache_root
    from plait.engine.uml import foreground
    from plait.engine.uml.containment import caution
    from plait.engine.uml.session import Session
    from plait.engine.workspace import Workspace

    assert request.start is not None
    chosen = chosen_kernel(kernel)
    with Workspace(cache_root() / "exec", ".work-") as workspace:
        folder = workspace.job()
        if request.start.input == "file":
            (folder / "input").mkdir()
            foreground.read_ahead(0, folder / "input" / "stdin", _READ_AHEAD_BYTES, _report)
        with Session(
            chosen, AGENT, folder, plan, request, real_time=limits.real_time, policy=policy
        ) as session:
            if session.guest.missing:
                _report(caution(session.guest.missing))
            typed, terminal = request.start.input == "orders", request.start.terminal is not None
            try:
                return foreground.follow(session, limits, _report, typed=typed, terminal=terminal)
            except BrokenPipeError:
                os.dup2(
                    os.open(os.devnull, os.O_WRONLY), 1
                )  # nobody reads what Python may still want to write
                return _BROKEN_PIPE


def _report(text: str) -> None:
    sys.stdout.flush()
    notify(text)


def plan_of(seed: int, memory_mib: int, *, system_call_ns: int = SYSTEM_CALL_NS) -> Plan:
    """Returns the plan of a guest without any network, in which programs run at this virtual cost of system calls."""
    from plait.engine.uml.boot import EMPTY_PLAN

    machine = EMPTY_PLAN.machine.model_copy(
        update={"memory_mib": memory_mib, "syscall_ns": int(system_call_ns)}
    )
    return EMPTY_PLAN.model_copy(update={"seed": seed, "machine": machine})


def _start(program: list[str], environment: list[tuple[str, str]], *, real_time: bool) -> ProgramStart:
    from plait.engine.interactive import ProgramStart
    from plait.engine.uml.foreground import RUN, merged_streams, terminal_size

    terminal = _has_terminal(real_time=real_time)
    return ProgramStart(
        run=RUN,
        argv=program,
        environment=environment,
        directory=str(Path.cwd()),
        input="orders" if terminal else _input(real_time=real_time),
        merged=merged_streams(),
        terminal=terminal_size(sys.stdin.fileno()) if terminal else None,
    )


def _has_terminal(*, real_time: bool) -> bool:
    return real_time and sys.stdin.isatty() and sys.stdout.isatty()


def _input(*, real_time: bool) -> str:
    """Where the program's standard input comes from, by what plait's own is."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return "nothing"
    if stat.S_ISCHR(mode) and (not real_time or not os.isatty(0)):
        return "nothing"  # a terminal, in virtual time, or /dev/null
    return "orders" if real_time else "file"


def _writable(folder: Path) -> Path:
    from plait.errors import RequestError

    path = folder.resolve()
    if path.is_file():
        raise RequestError(f"--rw {folder}: this is a file; give the folder that it is in")
    if not path.is_dir():
        raise RequestError(f"--rw {folder}: there is no such folder; make it first (mkdir -p {folder})")
    if path == Path("/"):
        raise RequestError("--rw /: the whole machine cannot be given away; name the folder that is needed")
    if not os.access(path, os.W_OK | os.X_OK):
        raise RequestError(f"--rw {folder}: you may not write to it yourself")
    return path


def _mebibytes(text: str) -> int:
    from plait.errors import RequestError
    from plait.units import Size

    try:
        size = int(Size.parse(text))
    except ValueError as error:
        raise RequestError(f"--memory {text}: {error}") from error
    if not 64 << 20 <= size <= 1 << 40:
        raise RequestError(f"--memory {text}: a guest has between 64 MiB and 1 TiB")
    return size >> 20


def _micros(option: str, text: str) -> int | None:
    return None if text == "none" else _duration(option, text).us


def _duration(option: str, text: str) -> Duration:
    from plait.errors import RequestError
    from plait.units import Duration

    try:
        return Duration.parse(text)
    except ValueError as error:
        raise RequestError(f"{option} {text}: {error}") from error
