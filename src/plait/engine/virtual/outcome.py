"""Determines how a guest ended, from its report, its kernel's console and the disk space that it used."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from plait.engine.host_view import HostView
from plait.engine.virtual import crash
from plait.engine.virtual.containment import GUEST, MAX_ENTRIES
from plait.engine.virtual.guest_folder import GuestFolder
from plait.errors import TrialError, printable
from plait.parts import Part
from plait.plan.model.plan import Plan

CONSOLE, MACHINE_CONSOLE = "console.log", "console"
"""The log of a guest's console in its job folder, and that of a machine in the folder that it may write to."""
MAX_CONSOLE_BYTES = 64 << 20
"""The limit of the log of a guest's console, which is on the disk of the job folder and not in the guest's folder."""
_STATUS_BYTES, _CONSOLE_BYTES = 1 << 20, 8 << 20
_CONSOLE_LINES = 12

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,15}$")]

_Microseconds = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]


class _Brought(BaseModel):
    schedulers: tuple[_Name, ...] = ()
    congestion_controls: tuple[_Name, ...] = ()


class _Status(Part):
    """The report of the agent at its end (agent/src/status.rs)."""

    ok: bool
    phase: str
    error: str | None
    virtual_us: _Microseconds
    boot_us: _Microseconds
    brought: _Brought = _Brought()


def judge(folder: Path, exit_code: int, verdict: str | None, view: HostView | None = None) -> None:
    """Raise TrialError unless the agent reported success. `verdict`: why plait ended the guest, if it did.

    `view`: what programs saw of this machine.
    """
    verdict = verdict or folder_is_full(folder)
    if verdict is not None:
        raise TrialError("\n".join([verdict, *_printed(folder), _console_tail(folder)]))
    content = GuestFolder(folder / GUEST).read("status.json", _STATUS_BYTES)
    if content is None:
        raise TrialError(_crash(folder, exit_code))
    try:
        report = _Status.model_validate_json(content)
    except ValidationError as error:
        (folder / GUEST / "status.json").unlink(missing_ok=True)  # so that plait reads it nowhere else
        raise TrialError(
            "reading the guest's status.json: the agent did not write this content; see the trial's console log"
        ) from error
    if not report.ok:
        advice = view.hidden_path(report.error or "") if view is not None else None
        lines = [f"{report.phase}: {report.error}", *_short(folder), *([advice] if advice else [])]
        raise TrialError(printable("\n".join(lines)))


def _short(folder: Path) -> Iterator[str]:
    """Yield the resource that a failed trial ran out of."""
    if crash.ran_out_of_memory(console_lines(folder)):
        plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
        yield (
            f"the guest ran out of memory ({plan.machine.memory_mib} MiB), and its kernel killed a program; "
            "set more in the scenario (memory: SIZE)"
        )


def _printed(folder: Path) -> Iterator[str]:
    """Yield the last lines of each program that printed anything."""
    plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
    for program in plan.programs:
        log = GuestFolder(folder / GUEST).tail(f"programs/{program.name}.log", 1 << 16)
        lines = printable(log.decode("utf-8", errors="replace")).splitlines()[-_CONSOLE_LINES:]
        if lines:
            yield "\n".join([f"last lines of {program.name}.log:", *(f"  {line[:200]}" for line in lines)])


def _crash(folder: Path, exit_code: int) -> str:
    if exit_code == 128 + signal.SIGXFSZ:
        return "the guest wrote a file that is larger than its limit; raise it with --disk-limit SIZE"
    reason = crash.panic(console_lines(folder))
    if reason is None:
        ended = (
            f"the guest ended without a report (exit code {exit_code}); was it killed, or is the disk full?"
        )
        return f"{ended}\n{_console_tail(folder)}"
    calls = "\n".join(f"  {call}" for call in crash.trace(console_lines(folder), folder / "modules"))
    return f"the guest's kernel panicked: {reason}\n{calls or _console_tail(folder)}"


def console_lines(folder: Path) -> list[str]:
    """Return the last lines of the guest's console, with control characters escaped."""
    with (folder / CONSOLE).open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _CONSOLE_BYTES))
        return printable(file.read(_CONSOLE_BYTES).decode("utf-8", errors="replace")).splitlines()


def _console_tail(folder: Path) -> str:
    lines = [line[:400] for line in console_lines(folder)[-_CONSOLE_LINES:]]
    return (
        "\n".join(["last lines of the guest's console:", *(f"  {line}" for line in lines)]) if lines else ""
    )


def folder_is_full(folder: Path) -> str | None:
    """Return a message if the guest has filled its folder, or written too much to its console; None otherwise."""
    consoles = GuestFolder(folder).length(CONSOLE), GuestFolder(folder / GUEST).length(MACHINE_CONSOLE)
    if max(consoles) > MAX_CONSOLE_BYTES:
        return (
            f"the guest wrote more than {MAX_CONSOLE_BYTES >> 20} MiB to its console; find out in console.log what "
            "its kernel repeats"
        )
    match GuestFolder(folder / GUEST).exhausted():
        case "space":
            size = os.statvfs(folder / GUEST)
            limit = size.f_blocks * size.f_frsize >> 20
            return (
                f"the guest wrote more than {limit} MiB to its folder; raise the limit with --disk-limit SIZE"
            )
        case "files":
            return f"the guest wrote more than {MAX_ENTRIES} files and folders; make its programs write fewer"
    return None
