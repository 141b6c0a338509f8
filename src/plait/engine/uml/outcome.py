"""How a guest ended, read from what it left: its report, its kernel's console, the room that it took."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plait.engine.uml import crash
from plait.engine.uml.containment import GUEST
from plait.engine.uml.guest_folder import GuestFolder
from plait.errors import TrialError, printable
from plait.plan.model.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_STATUS_BYTES, _CONSOLE_BYTES = 1 << 20, 8 << 20
_CONSOLE_LINES = 12

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,15}$")]


class _Brought(BaseModel):
    schedulers: tuple[_Name, ...] = ()
    congestion_controls: tuple[_Name, ...] = ()


class _Status(BaseModel):
    """What the agent says at the end (agent/src/status.rs)."""

    model_config = ConfigDict(strict=False, extra="forbid")
    ok: bool
    phase: str
    error: str | None
    virtual_us: int
    boot_us: int
    brought: _Brought = _Brought()


def judge(folder: Path, exit_code: int, verdict: str | None) -> None:
    """Raises TrialError unless the agent reported success. `verdict`: why the guest was given up."""
    if verdict is not None:
        raise TrialError("\n".join([verdict, *_printed(folder), _console_tail(folder)]))
    content = GuestFolder(folder / GUEST).read("status.json", _STATUS_BYTES)
    if content is None:
        raise TrialError(_crash(folder, exit_code))
    try:
        report = _Status.model_validate_json(content)
    except ValidationError as error:
        (folder / GUEST / "status.json").unlink(missing_ok=True)  # so that nobody else has to read it
        raise TrialError(
            "reading the guest's status.json: it is not what the agent writes; see the trial's console log"
        ) from error
    if not report.ok:
        raise TrialError(printable("\n".join([f"{report.phase}: {report.error}", *_short(folder)])))


def _short(folder: Path) -> Iterator[str]:
    """What a trial that failed was short of."""
    if crash.ran_out_of_memory(console_lines(folder)):
        plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
        yield (
            f"the guest's memory ({plan.machine.memory_mib} MiB) was used up, and its kernel killed a program; "
            "give the scenario more (memory: SIZE)"
        )


def _printed(folder: Path) -> Iterator[str]:
    """What programs printed last, of those that printed anything."""
    plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
    for program in plan.programs:
        log = GuestFolder(folder / GUEST).tail(f"programs/{program.name}.log", 1 << 16)
        lines = printable(log.decode("utf-8", errors="replace")).splitlines()[-_CONSOLE_LINES:]
        if lines:
            yield "\n".join([f"last lines of {program.name}.log:", *(f"  {line[:200]}" for line in lines)])


def _crash(folder: Path, exit_code: int) -> str:
    if exit_code == 128 + signal.SIGXFSZ:
        return "the guest wrote a file that is larger than its limit; --disk-limit SIZE allows more"
    reason = crash.panic(console_lines(folder))
    if reason is None:
        ended = (
            f"the guest ended without a report (exit code {exit_code}); was it killed, or is the disk full?"
        )
        return f"{ended}\n{_console_tail(folder)}"
    calls = "\n".join(f"  {call}" for call in crash.trace(console_lines(folder), folder / "modules"))
    return f"the guest's kernel panicked: {reason}\n{calls or _console_tail(folder)}"


def console_lines(folder: Path) -> list[str]:
    """Returns what the guest's kernel said last, without control characters."""
    with (folder / "console.log").open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _CONSOLE_BYTES))
        return printable(file.read(_CONSOLE_BYTES).decode("utf-8", errors="replace")).splitlines()


def _console_tail(folder: Path) -> str:
    lines = [line[:400] for line in console_lines(folder)[-_CONSOLE_LINES:]]
    return (
        "\n".join(["last lines of the guest's console:", *(f"  {line}" for line in lines)]) if lines else ""
    )


def disk_used(folder: Path) -> int:
    """Returns how many bytes of the disk the guest has taken (TrialError: more files than it may leave)."""
    console = (folder / "console.log").stat().st_blocks * 512
    return GuestFolder(folder / GUEST).used_bytes() + console


def disk_is_full(limit: int) -> str:
    """Returns why a guest that wrote more than `limit` bytes was given up."""
    return f"the guest wrote more than {limit >> 20} MiB to its folder; --disk-limit SIZE allows more"
