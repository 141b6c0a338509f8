"""Run upstream's suites in guests, several at once: one guest for each shard and seed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event

from plait.binaries import AGENT
from plait.engine.engine import Interrupted
from plait.engine.interactive import END, STDERR, STDOUT, ProgramEnd, ProgramStart
from plait.engine.packages import install_hint
from plait.engine.request import DEFAULT_POLICY
from plait.engine.virtual.boot_inputs import EMPTY_PLAN
from plait.engine.virtual.session import Session, SessionRequest
from plait.engine.workspace import working_folder
from plait.errors import Ended, TrialError, printable
from plait.files import Folder
from plait.kernel import Kernel
from plait.testing.selftest import tap
from plait.testing.selftest.packetdrill import Scripts
from plait.testing.selftest.suites import Suites, SuiteShard, missing_tools

Traced = Callable[[SessionRequest], SessionRequest]
Captures = tuple[Folder, int] | None

MEMORY_MIB = 1024
SYSTEM_CALL_NS = 7000
"""The virtual time of a system call, as in `plait exec`."""
_ENVIRONMENT = (
    ("HOME", "/root"),
    ("LANG", "C.UTF-8"),
    ("LOGNAME", "root"),
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("USER", "root"),
)
"""The environment of every suite: a shell searches PATH with system calls, which take virtual time."""
_LIMIT_US = 2 * 3600 * 1_000_000
_PROCESSOR_S = 3600.0
"""The processor time that a suite may use, many times what one takes."""
_WALL_S = 12 * 3600.0
"""The wall time that it may use, on a machine that has little time for it."""
_OUTPUT_BYTES = 16 << 20
_SKIPPED = 4
"""The exit code with which a suite of the kernel says that it cannot run here."""


@dataclass(frozen=True)
class ShardResult:
    """The result of one shard for one seed."""

    shard: SuiteShard
    seed: int
    subtests: list[tap.Subtest]
    output: str
    """The output of the suite."""
    wall_s: float
    virtual_s: float
    tested: bool
    """Whether a subtest passed, failed or was ignored; False if the suite cannot run on this machine."""


def run(
    suites: Suites | Scripts,
    shards: Sequence[SuiteShard],
    seeds: Sequence[int],
    kernel: Kernel,
    *,
    jobs: int,
    on_result: Callable[[ShardResult], None],
    traced: Traced = lambda request: request,
    captures: Captures = None,
) -> list[ShardResult]:
    """Run every shard with every seed, `jobs` at once; call `on_result` with each result.

    An interrupt ends the running guests, whose results are then missing.

    `traced` returns a guest's request with its trace events; `captures` are the folder for captures and the bytes of
    each packet to keep, for a single guest. A suite that fails as a whole counts as one failed subtest, and one that
    cannot run as one skipped subtest.
    """
    stop = Event()

    def run_shard(work: tuple[int, SuiteShard]) -> ShardResult:
        result = _run(suites, work[1], work[0], kernel, traced, captures, stop)
        on_result(result)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(run_shard, [(seed, shard) for shard in shards for seed in seeds]))
        except (KeyboardInterrupt, Ended):
            stop.set()
            raise


def _run(  # noqa: PLR0917 - it is called at one place
    suites: Suites | Scripts,
    shard: SuiteShard,
    seed: int,
    kernel: Kernel,
    traced: Traced,
    captures: Captures,
    stop: Event,
) -> ShardResult:
    argv, directory = suites.command(shard)
    start = ProgramStart(1, argv, _ENVIRONMENT, directory=str(directory), merged=True)
    machine = EMPTY_PLAN.machine.model_copy(update={"memory_mib": MEMORY_MIB, "syscall_ns": SYSTEM_CALL_NS})
    plan = EMPTY_PLAN.model_copy(update={"seed": seed, "machine": machine})
    folder, keep = captures or (None, None)
    request = traced(SessionRequest(start=start, time_limit_us=_LIMIT_US, capture_bytes=keep))
    policy = replace(DEFAULT_POLICY, readable=suites.readable)
    began = time.monotonic()
    code: int | None = None
    pieces: list[bytes] = []
    virtual_s = 0.0
    try:
        with (
            working_folder() as workspace,
            Session(kernel, AGENT, workspace.job(), plan, request, policy=policy) as session,
        ):
            code = _follow(session, pieces, began, stop)
            virtual_s = session.virtual_s()
            if folder is not None:
                session.keep_captures(folder)
    except TrialError as error:
        pieces.append(f"\nplait: {error}\n".encode())
    output = b"".join(pieces).decode(errors="replace")
    subtests = tap.read(shard.suite, seed, output)
    whole = _as_a_whole(shard, seed, code, subtests, output)
    tested = any(subtest.verdict != "skip" for subtest in (*subtests, *whole))
    elapsed_s = time.monotonic() - began
    return ShardResult(shard, seed, [*subtests, *whole], output, elapsed_s, virtual_s, tested)


def _as_a_whole(
    shard: SuiteShard, seed: int, code: int | None, subtests: Sequence[tap.Subtest], output: str
) -> list[tap.Subtest]:
    """Return what the end of a suite says beside its subtests: that it failed as a whole, or could not run."""
    if any(subtest.verdict == "fail" for subtest in subtests) or (code == 0 and subtests):
        return []
    verdict: tap.Verdict = "fail"
    if code == _SKIPPED:
        verdict, reason = "skip", tap.reason_of_skip(output) or "the suite does not say why"
        lacking = [tool for tool in missing_tools() if re.search(rf"\b{tool}\b", reason)]
        reason += "".join(f"; {install_hint(tool)}" for tool in lacking)
    elif code == 0:
        verdict, reason = "skip", "the suite ended without a result"
    elif code is None:
        reason = output.rstrip().rpartition("\nplait: ")[2]
    else:
        reason = f"it ended with exit code {code} and no failed subtest"
    return [tap.Subtest(shard.suite, f"{shard.title} as a whole", seed, verdict, printable(reason, keep=""))]


def _follow(session: Session, pieces: list[bytes], began: float, stop: Event) -> int | None:
    """Collect the output until the suite's end, and return its exit code.

    Raises TrialError if the guest exceeds a bound, and Interrupted after an interrupt.
    """
    while time.monotonic() - began < _WALL_S and session.processor_s() < _PROCESSOR_S:
        session.wait()
        if stop.is_set():
            raise Interrupted
        gone = session.has_ended()
        for content, end in _contents(session):
            if end:
                return ProgramEnd.read(content).code
            pieces.append(content)
        session.check_disk()
        if sum(map(len, pieces)) > _OUTPUT_BYTES:
            raise TrialError(f"the suite printed more than {_OUTPUT_BYTES >> 20} MiB")
        if gone:
            session.explain_end()
            return None
    raise TrialError(
        f"the suite did not end within {_PROCESSOR_S:.0f} s of processor time and {_WALL_S:.0f} s of wall time"
    )


def _contents(session: Session) -> Iterator[tuple[bytes, bool]]:
    for frame in session.frames():
        if frame.kind in (STDOUT, STDERR, END):
            yield frame.content, frame.kind == END
