"""Runs plait-agent as an ordinary process on one plan, until it ends or must end.

    job folder
      plan.json, input/   -->  plait-agent --job, in namespaces of its own (`agent/src/process`)
      data/*.arrow, progress, fidelity.json, status.json, console.log  <--

The agent holds the read end of a pipe whose write end only plait holds. It ends when the pipe closes and when no
heartbeat arrives, so it does not outlive plait.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import select
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from plait.binaries import AGENT, agent_sha256
from plait.engine.engine import EngineIdentity, Interrupted, Job, preparing, write_inputs
from plait.errors import MachineError, TrialError, printable
from plait.files import Folder
from plait.limits import remedy
from plait.plan.links.chain import with_chains

HEARTBEAT_S = 15
"""The agent ends itself this long after the last heartbeat, for example when plait is stopped with Ctrl-Z."""
_BEAT_S, _POLL_S = 1.0, 0.2
_SETUP_S = 60.0
"""How long an agent may take beyond the planned duration of the trial."""
_END_S = 10.0
_STATUS_BYTES = 1 << 20


class _AgentStatus(BaseModel):
    """The report of the agent at its end (agent/src/status.rs)."""

    model_config = ConfigDict(extra="ignore")
    ok: bool
    phase: str
    error: str | None


def identity(engine: str) -> EngineIdentity:
    """Return the identities of this machine's kernel and of the agent (MachineError without it)."""
    version = Path("/proc/version").read_text(encoding="utf-8", errors="replace").strip()
    kernel = hashlib.sha256(version.encode()).hexdigest()
    return EngineIdentity(engine, kernel, platform.release(), agent_sha256())


def run(
    job: Job,
    limit_s: float,
    *,
    node: str | None = None,
    namespace: Path | None = None,
    over: threading.Event | None = None,
) -> None:
    """Write the inputs of the agent to the job folder, and run it there.

    Without `node` it has namespaces of its own. With it, the agent builds no network: `node` is the one of the plan
    that the network namespace in the file `namespace` is, or that of plait. `over` ends the trial early, with complete
    tables. Raises TrialError if the trial fails or takes longer than `limit_s`, MachineError if the agent cannot start,
    and Interrupted.
    """
    with preparing(job):
        write_inputs(replace(job, plan=with_chains(job.plan)))
    words = [str(AGENT), "--job", str(job.folder.absolute()), "--heartbeat", str(HEARTBEAT_S)]
    words += [] if node is None else ["--node", node]
    words += [] if namespace is None else ["--netns", str(namespace)]
    with os.fdopen(Folder(job.folder).new("console.log"), "wb") as console:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=console,
                env={},
                start_new_session=True,  # Ctrl-C must reach plait only
            )
        except OSError as error:
            advice = remedy(error, "run `make setup`")
            raise MachineError(f"starting {AGENT}: {error.strerror}; {advice}") from error
        try:
            verdict = _watch(process, job, limit_s, over)
        finally:
            _end(process)
    _judge(job.folder, process.returncode, verdict)


def _watch(
    process: subprocess.Popen[bytes], job: Job, limit_s: float, over: threading.Event | None
) -> str | None:
    """Return None if the agent ended by itself, else why plait must end it. Raises Interrupted."""
    assert process.stdin is not None
    started = beaten = time.monotonic()
    longest_s = min(limit_s, job.plan.end_us / 1e6 + _SETUP_S)
    handle = os.pidfd_open(process.pid)
    try:
        while not select.select([handle], [], [], _POLL_S)[0]:
            if job.stop.is_set():
                raise Interrupted
            now = time.monotonic()
            if over is not None and over.is_set():
                over = None
                with contextlib.suppress(BrokenPipeError):
                    os.write(process.stdin.fileno(), b"end\n")
            if now - beaten >= _BEAT_S:
                beaten = now
                with contextlib.suppress(BrokenPipeError):  # it has just ended
                    os.write(process.stdin.fileno(), b"\n")
            job.progress(_reached_us(job.folder))
            if now - started > longest_s:
                return (
                    f"the trial had not ended after {longest_s:.0f} s of real time; "
                    "shorten it, or raise --trial-timeout"
                )
    finally:
        os.close(handle)
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the agent and everything that it started: it ends itself when its input closes."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()  # the kernel then kills what is in its namespaces
        process.wait()


def _reached_us(folder: Path) -> int:
    try:
        last = Folder(folder).tail("progress", 4096).splitlines()[-1:]
        return int(last[0].split()[0])
    except (OSError, LookupError, ValueError):
        return -1


def _judge(folder: Path, exit_code: int, verdict: str | None) -> None:
    if verdict is not None:
        raise TrialError(verdict)
    try:
        status = _AgentStatus.model_validate_json(Folder(folder).read("status.json", _STATUS_BYTES))
    except FileNotFoundError as error:
        raise TrialError(
            f"the agent ended without a report (exit code {exit_code}); did another program kill it?"
        ) from error
    except (OSError, ValidationError) as error:
        raise TrialError("reading the agent's status.json: the agent did not write this content") from error
    if not status.ok:
        raise TrialError(printable(f"{status.phase}: {status.error}"))
