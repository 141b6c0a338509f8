"""`plait exec`: runs one program of this machine in a guest of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import discard_output, notify
from plait.cli.shared.environment import environment_of
from plait.cli.shared.guest import booted
from plait.cli.shared.kernel import chosen_kernel
from plait.cli.shared.observing import (
    CAPTURED_BYTES,
    TRACE,
    PcapOption,
    TraceOption,
    TraceToOption,
    capture_folder,
    tracing,
)
from plait.cli.shared.options import KernelOption, parsed
from plait.cli.shared.sandbox import DISK, DiskOption, RoOption, UnconfinedOption, bytes_of, policy
from plait.engine.packages import install_hint
from plait.errors import MachineError, RequestError, shell_command
from plait.files import Folder

if TYPE_CHECKING:
    from plait.engine.interactive import ProgramStart
    from plait.engine.request import Policy
    from plait.engine.virtual.foreground import SessionLimits
    from plait.engine.virtual.guest import Guest
    from plait.engine.virtual.session import SessionRequest
    from plait.kernel import Kernel
    from plait.plan.model.plan import Plan

CLOCKS = ("virtual", "real")
SYSTEM_CALL_NS = 7000
"""The virtual time of a system call: the fastest of many `getppid` calls in a guest with a real clock.

Computing takes no virtual time. With a lower cost of system calls, a switch that asks a controller answers too soon.
"""
_GDB_FILE = "attach.gdb"
_GDB_SCRIPT = """\
# gdb reads this file: the guest's kernel is process {pid}.
set debuginfod enabled off
set sysroot {empty}
exec-file {binary}
symbol-file {symbols}
# The guest's kernel uses these signals itself.
handle SIGSEGV SIGUSR1 SIGUSR2 SIGALRM SIGIO SIGWINCH nostop noprint pass
# plait stopped the process with it.
handle SIGSTOP nostop noprint nopass
set print inferior-events off
set auto-load libthread-db off
attach {pid}
"""

ProgramArgument = Annotated[
    list[str],
    typer.Argument(metavar="CMD", help="The program and its arguments; put options of plait before it"),
]
RwOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--rw", metavar="DIR", help="Folder that the program may change; repeat the option for more"
    ),
]
ClockOption = Annotated[
    str,
    typer.Option(metavar="virtual|real", help="Clock of the guest; choose real for an interactive program"),
]
TimeoutOption = Annotated[
    str,
    typer.Option(metavar="TIME", help="End the program after this time of the guest's clock; `none`: never"),
]
WallTimeoutOption = Annotated[
    str,
    typer.Option(metavar="TIME", help="End the guest after this time of this machine's clock; `none`: never"),
]
SystemCallOption = Annotated[
    str, typer.Option(metavar="TIME", help="Virtual time that each system call takes")
]
ProcessesOption = Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of processes at once")]
EnvOption = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME=VALUE",
        help="Set an environment variable; NAME alone copies its value from your environment",
    ),
]
WithOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="SERVICE", help="Start a service before the program: `ovs` (Open vSwitch)"
    ),
]
OutputOption = Annotated[
    str, typer.Option("--output-limit", metavar="SIZE", help="Maximum output of the program")
]


def command(
    program: ProgramArgument,
    *,
    ro: RoOption = None,
    rw: RwOption = None,
    clock: ClockOption = "virtual",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the guest's random numbers")] = 1,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Guest memory")] = "1GiB",
    timeout: TimeoutOption = "1h",
    wall_timeout: WallTimeoutOption = "1h",
    system_call: SystemCallOption = f"{SYSTEM_CALL_NS}ns",
    processes: ProcessesOption = 2000,
    env: EnvOption = None,
    with_: WithOption = None,
    kernel: KernelOption = None,
    trace: TraceOption = None,
    trace_to: TraceToOption = TRACE,
    pcap: PcapOption = None,
    output: OutputOption = "1GiB",
    disk: DiskOption = DISK,
    unconfined: UnconfinedOption = False,
    gdb: Annotated[
        bool, typer.Option("--gdb", help="Stop the guest's kernel at its start for a debugger")
    ] = False,
) -> int:
    """Run a program as root in a guest, apart from this machine.

    The exit code is that of the program, or 124 if --timeout ended it.
    """
    from plait.engine.virtual.foreground import SessionLimits
    from plait.engine.virtual.services import iperf_settings, services
    from plait.engine.virtual.session import SessionRequest
    from plait.units import Duration

    if clock not in CLOCKS:
        raise RequestError(f"--clock {clock}: unknown clock; write one of: {', '.join(CLOCKS)}")
    real_time = clock == "real"
    environment = environment_of(env or [], terminal=_has_terminal(real_time=real_time))
    environment = sorted({**iperf_settings(program, dict(environment)["PATH"]), **dict(environment)}.items())
    plan = plan_of(seed, _mebibytes(memory), system_call_ns=parsed("--system-call", system_call, Duration))
    writable = [_writable(folder) for folder in rw or []]
    captures = capture_folder(pcap, writable)
    request = SessionRequest(
        start=_start(program, environment, real_time=real_time),
        writable=writable,
        processes_max=processes,
        before=services(with_, program, dict(environment).get("PATH")),
        time_limit_us=_micros("--timeout", timeout),
        capture_bytes=None if captures is None else CAPTURED_BYTES,
    )
    output_bytes = bytes_of("--output-limit", output)
    limits = SessionLimits(
        _wall_s(wall_timeout), plan.machine.memory_mib, processes, real_time, output_bytes, debugged=gdb
    )
    sandbox = policy(disk, ro, unconfined=unconfined)
    return _boot(kernel, plan, request, limits, sandbox, captures, (trace, trace_to))


def _wall_s(text: str) -> float:
    wall_us = _micros("--wall-timeout", text)
    return float("inf") if wall_us is None else wall_us / 1e6


def _boot(  # noqa: PLR0917 - one caller of this module
    kernel: str | None,
    plan: Plan,
    request: SessionRequest,
    limits: SessionLimits,
    policy: Policy,
    captures: Folder | None,
    trace: tuple[str | None, Path],
) -> int:
    """Boot the guest, follow its program to its end, and return its exit code."""
    from plait.engine.virtual import foreground

    assert request.start is not None
    chosen, writable = chosen_kernel(kernel), request.writable
    if limits.debugged:
        require_debugger(chosen)
    with (
        tracing(*trace, chosen, _report, writable) as traced,
        booted(chosen, plan, traced(request), _report, real_time=limits.real_time, policy=policy) as session,
    ):
        if limits.debugged:
            _invite_debugger(session.guest, chosen, session.folder)
        typed, terminal = request.start.input == "orders", request.start.terminal is not None
        try:
            code = foreground.follow(session, limits, _report, typed=typed, terminal=terminal)
        except BrokenPipeError:
            code = discard_output()
        if captures is not None:
            session.keep_captures(captures)
        return code


def _report(text: str) -> None:
    sys.stdout.flush()
    notify(text)


def plan_of(seed: int, memory_mib: int, *, system_call_ns: int = SYSTEM_CALL_NS) -> Plan:
    """Return the plan of a guest without a network; a system call takes `system_call_ns` of virtual time."""
    from plait.engine.virtual.boot_inputs import EMPTY_PLAN

    machine = EMPTY_PLAN.machine.model_copy(
        update={"memory_mib": memory_mib, "syscall_ns": int(system_call_ns)}
    )
    return EMPTY_PLAN.model_copy(update={"seed": seed, "machine": machine})


def _start(program: list[str], environment: list[tuple[str, str]], *, real_time: bool) -> ProgramStart:
    from plait.engine.interactive import ProgramStart
    from plait.engine.virtual.foreground import RUN, merged_streams, terminal_size

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
    """Return where the program's standard input comes from; it depends on the standard input of plait."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return "nothing"
    if stat.S_ISCHR(mode) and (not real_time or not os.isatty(0)):
        return "nothing"  # a terminal, in virtual time, or /dev/null
    return "orders" if real_time else "file"


def _writable(folder: Path) -> Path:

    path = folder.resolve()
    if path.is_file():
        raise RequestError(f"--rw {folder}: this is a file; name its folder")
    if not path.is_dir():
        raise RequestError(
            f"--rw {folder}: there is no such folder; create it first "
            f"({shell_command('mkdir', '-p', folder)})"
        )
    if path == Path("/"):
        raise RequestError(
            "--rw /: a guest must not change the whole machine; name the folder that the program needs"
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise RequestError(
            f"--rw {folder}: you have no permission to write to this folder; choose another one"
        )
    return path


def _mebibytes(text: str) -> int:
    from plait.units import Size

    size = int(parsed("--memory", text, Size))
    if not 64 << 20 <= size <= 1 << 40:
        raise RequestError(f"--memory {text}: a guest has between 64 MiB and 1 TiB of memory")
    return size >> 20


def _micros(option: str, text: str) -> int | None:
    from plait.units import Duration

    return None if text == "none" else parsed(option, text, Duration).us


def require_debugger(kernel: Kernel) -> None:
    """Raise RequestError if the kernel has no symbols, MachineError if this machine has no gdb."""
    if kernel.symbols is None:
        raise RequestError(
            f"--gdb: the kernel {kernel.name} has no symbols; build one with "
            "`plait kernel build --tree DIR --tracing --name traced`, and choose it with `--kernel traced`"
        )
    if shutil.which("gdb") is None:
        raise MachineError(f"--gdb: this machine has no gdb; {install_hint('gdb')}")


def _invite_debugger(guest: Guest, kernel: Kernel, folder: Path) -> None:
    """Stop the guest, write the script with which gdb attaches to it, and report the command to type.

    User-Mode Linux is a process, so gdb(1) attaches to it like to any other. The virtual clock stops while that process
    is stopped: breakpoints and the time that a person needs change nothing in the guest.
    """
    guest.suspend()
    empty = folder / "sysroot"
    empty.mkdir()
    script = folder / _GDB_FILE
    text = _GDB_SCRIPT.format(
        pid=guest.pid,
        empty=empty,  # gdb takes the rest of this line as it is, and parses the two others like a shell
        binary=shlex.quote(str(kernel.binary)),
        symbols=shlex.quote(str(kernel.symbols)),
    )
    Folder(folder).write(_GDB_FILE, text.encode())
    _report(
        f"the guest's kernel waits for a debugger. Type in another terminal:\n{shell_command('gdb', '-x', script)}"
    )
