"""Plays cases in a guest, and judges what it reports by the invariants.

    bytes     what a side receives is what the other one sent, once and in order
    progress  a connection with a usable subflow does not stall for 30 s after the last event
    error     a connection fails only if an event happened
    closing   after a reset, the other side does not keep its stream
    paths     at rest, each endpoint has its subflow, and a removed one has none
    backup    a backup subflow carries nothing as long as the initial one is usable
    sockets   no socket is left half an hour after the last one was closed
    counters  counters of both sides add up, and both ends know the same of their bytes and subflows
    kernel    the kernel prints no warning, and no report of lockdep, KASAN or RCU
    guest     the guest ends by itself

What the guest reports is untrusted: it is bounded and validated.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from plait.binaries import AGENT
from plait.engine.engine import Interrupted
from plait.engine.interactive import END, STDERR, STDOUT, ProgramStart
from plait.engine.virtual.boot_inputs import EMPTY_PLAN
from plait.engine.virtual.session import Session, SessionRequest
from plait.engine.workspace import working_folder
from plait.errors import MachineError, TrialError, printable, shell_command
from plait.files import Folder
from plait.kernel import Kernel, additions
from plait.plan.model.plan import Plan
from plait.testing.hunt.case import HuntCase, HuntConnection, HuntLink
from plait.testing.hunt.netlink import COMPLAINTS

Kind = Literal[
    "bytes", "progress", "error", "closing", "paths", "backup", "sockets", "counters", "kernel", "guest"
]
_AT_MOST = {
    "MPTcpExtMPJoinAckRx": "MPTcpExtMPJoinSynAckRx",
    "MPTcpExtMPCapableACKRX": "MPTcpExtMPCapableSYNACKRX",
}
"""Counters of the server, and those of the client that they cannot exceed."""
_BEYOND_WINDOW = 3
"""Segments beyond the window that are no fault: on 6.12.117 with plait's patches there is one now and then, and
without the patch `0006` of the schedulers there are 5 to 8 in a case.

If a program writes small pieces, no number is a fault. The sender fills the window that the handshake offered, and the
receiver does not remember that one (`subflow_set_remote_key`): it drops what exceeds the windows of its DATA_ACKs. That
was 2 kB at the beginning of a connection, so two segments, or six pieces."""
_NOTICED = {"MPTcpExtDataCsumErr", "MPTcpExtDSSCorruptionReset"}
"""Counters of a side that noticed a middlebox, beside those of fallbacks."""
_NO_FALLBACK = "MPTcpExtFallbackFailed"
"""A fallback that was not allowed, so that the subflow is reset and delivers nothing."""
_FALLBACKS = ("MPTcpExtDssFallback", "MPTcpExtDSSCorruptionFallback")
"""Counters of fallbacks of a receiver in the middle of a stream: without a mapping, or beyond one."""
_BEYOND_A_GAP = ("MPTcpExtOFOQueue", "MPTcpExtNoDSSInWindow")
"""Counters of segments that a receiver keeps until a gap before them is filled, or drops."""
_LONG_QUEUE = 100
"""Packets that a queue takes before a sender's congestion control lets it drop much."""
_SENT_AGAIN = 3
"""Segments that a timer may send again although nothing is lost; in 116 transfers of a sound kernel it was one."""
_SHORTEST_TIMER_MS = 200
"""The shortest time after which TCP and MPTCP send again (`TCP_RTO_MIN`)."""
_PLAYER = Path(__file__).with_name("player.py")
_MEMORY_MIB = 512
_SYSTEM_CALL_NS = 7000
_LIMIT_US = 2 * 3600 * 1_000_000
_PROCESSOR_S = 120.0
"""The processor time in which a guest ends a case, many times what one takes."""
_WALL_S = 3600.0
"""The wall time in which it does, on a machine that has little time for it."""
_OUTPUT_BYTES = 2 << 20
_LONGEST_TEXT = 300


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold."""

    kind: Kind
    text: str

    def is_like(self, violation: Violation) -> bool:
        """Return whether both are probably the same fault."""
        return self.kind == violation.kind and (
            self.kind != "kernel" or _without_numbers(self) == _without_numbers(violation)
        )


class _Seen(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["bytes", "progress", "error", "closing", "paths", "backup", "counters"]
    text: Annotated[str, Field(max_length=2000)]
    memory_full: bool = False
    """Whether a stalled receiver's buffer is full of data that it cannot pass on yet."""
    fell_back: bool = False
    """Whether an end of a stalled connection has fallen back to TCP."""


class _PlayerReport(BaseModel):
    """The output of the guest's side."""

    model_config = ConfigDict(extra="forbid", strict=False)
    violations: Annotated[list[_Seen], Field(max_length=8)]
    left: dict[Literal["client", "server"], int]
    counters: dict[Literal["client", "server"], dict[str, int]]
    log: str
    received: int
    virtual_s: int


@dataclass(frozen=True)
class CaseResult:
    """The result of one case."""

    violations: tuple[Violation, ...]
    received_bytes: int
    virtual_s: int
    joined: int
    """Subflows that the server accepted beyond the initial ones."""
    log: str
    """The kernel's log."""
    standstills: int = 0
    """Connections that stood still where Linux itself may (`_linux_may_stand_still`), so that they are no fault."""


def require_programs() -> None:
    """Raise MachineError if this machine lacks a program that the guest runs."""
    for name, package in (("ip", "iproute2"), ("tc", "iproute2"), ("nft", "nftables")):
        if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
            command = shell_command("sudo", "apt-get", "install", package)
            raise MachineError(f"hunting: {name} is not installed; run `{command}`")


def play(
    case: HuntCase,
    kernel: Kernel,
    environment: Sequence[tuple[str, str]],
    stopped: Callable[[], bool] = lambda: False,
) -> CaseResult:
    """Play the case in a guest of its own.

    Raises TrialError if the guest's side of plait itself fails, for instance without a program, and Interrupted if
    `stopped` returns True before the end.
    """
    return play_together([case], kernel, environment, stopped)[0]


def play_together(
    cases: Sequence[HuntCase],
    kernel: Kernel,
    environment: Sequence[tuple[str, str]],
    stopped: Callable[[], bool] = lambda: False,
) -> list[CaseResult]:
    """Play cases one after the other in one guest, whose random numbers have the first one's seed.

    Returns results of at least the first one, and of none after a violation. Raises as `play` does.
    """
    died: str | None = None
    with working_folder() as workspace:
        folder = workspace.job()
        (Folder(folder) / "input").write("stdin", to_json([case.model_dump() for case in cases]))
        start = ProgramStart(1, [sys.executable, "-s", "-S", str(_PLAYER)], environment, input="file")
        request = SessionRequest(start=start, time_limit_us=_LIMIT_US * len(cases))
        output = _Output(len(cases))
        with Session(kernel, AGENT, folder, _plan(cases), request) as session:
            try:
                output.collect(session, stopped)
            except TrialError as error:
                died = str(error)
            log = "\n".join(session.console())
    results: list[CaseResult] = []
    for case, line in zip(cases, output.reports(), strict=False):
        results.append(judge(line, case, kernel.version))
        if results[-1].violations:
            return results
    if died is not None and len(results) < len(cases):
        results.append(CaseResult((Violation("guest", _first_line(died)),), 0, 0, 0, f"{died}\n{log}"))
    if not results:
        seed, said = cases[0].seed, printable(output.errors.decode(errors="replace").strip()[-800:])
        raise TrialError(f"playing the case of seed {seed}: {said or 'no report'}")
    return results


def _plan(cases: Sequence[HuntCase]) -> Plan:
    """Return the plan of a guest that plays these cases."""
    named, added = (
        {name for case in cases for name in (case.scheduler, case.congestion_control)},
        additions.modules_by_name(),
    )
    machine = EMPTY_PLAN.machine.model_copy(
        update={
            "memory_mib": _MEMORY_MIB,
            "syscall_ns": _SYSTEM_CALL_NS,
            "modules": tuple(sorted({added[name] for name in named if name in added}, key=lambda m: m.name)),
        }
    )
    return EMPTY_PLAN.model_copy(update={"seed": cases[0].seed, "machine": machine})


class _Output:
    """The output of a guest: one line for each case."""

    def __init__(self, cases: int) -> None:
        self._cases = cases
        self.errors = b""
        self._text = b""
        self._most_bytes = _OUTPUT_BYTES * cases

    def reports(self) -> list[bytes]:
        """Return the complete lines."""
        return self._text.split(b"\n")[:-1]

    def collect(self, session: Session, stopped: Callable[[], bool]) -> None:
        """Collect the output until the program's end (TrialError if the guest dies or a case exceeds a bound)."""
        reported, began_s, began = 0, 0.0, time.monotonic()
        while (
            used_s := session.processor_s()
        ) - began_s < _PROCESSOR_S and time.monotonic() - began < _WALL_S:
            session.wait()
            if stopped():
                raise Interrupted
            gone = session.has_ended()
            for frame in session.frames():
                if frame.kind == STDOUT:
                    self._text += frame.content
                elif frame.kind == STDERR:
                    self.errors += frame.content
                elif frame.kind == END:
                    return
            lines = min(self._text.count(b"\n"), self._cases)  # further ones give a guest no further time
            if lines > reported:
                reported, began_s, began = lines, used_s, time.monotonic()
            session.check_disk()
            if len(self._text) + len(self.errors) > self._most_bytes:
                raise TrialError(f"the guest printed more than {self._most_bytes >> 20} MiB")
            if gone:
                session.explain_end()
                raise TrialError("the guest ended before its program")
        limit = (
            f"{_PROCESSOR_S:.0f} s of processor time"
            if used_s - began_s >= _PROCESSOR_S
            else f"{_WALL_S:.0f} s of wall time"
        )
        raise TrialError(f"the guest did not end its case within {limit}: its kernel hangs")


def judge(output: bytes, case: HuntCase, version: str) -> CaseResult:
    """Return what the report of a case means, from a guest with this version of Linux (TrialError: it is damaged)."""
    try:
        report = _PlayerReport.model_validate_json(output)
    except ValidationError as error:
        raise TrialError(
            f"playing the case of seed {case.seed}: the report is damaged: {error.errors()[0]}"
        ) from error
    violations = [
        Violation(violation.kind, printable(violation.text)[:_LONGEST_TEXT])
        for violation in report.violations
        if not (
            _linux_stands_still(violation, version, report.counters)
            if violation.kind == "progress"
            else violation.kind == "bytes" and _may_be_wrong(case, report.counters)
        )
    ]
    standstills = sum(violation.kind == "progress" for violation in report.violations) - sum(
        violation.kind == "progress" for violation in violations
    )
    if any(report.left.values()):
        leftovers = ", ".join(
            f"{count} of the {side}" for side, count in sorted(report.left.items()) if count
        )
        violations.append(
            Violation("sockets", f"sockets are left half an hour after the last close: {leftovers}")
        )
    violations += [Violation("counters", text) for text in _odd_counters(report.counters, case)]
    complaints = [line for line in report.log.splitlines() if COMPLAINTS.search(line)]
    if complaints:
        violations.append(Violation("kernel", printable(complaints[0])[:_LONGEST_TEXT]))
    joined = report.counters.get("server", {}).get("MPTcpExtMPJoinAckRx", 0)
    return CaseResult(
        tuple(violations), report.received, report.virtual_s, joined, printable(report.log), standstills
    )


def _linux_stands_still(
    sighting: _Seen, version: str, counters: dict[Literal["client", "server"], dict[str, int]]
) -> bool:
    """Return whether Linux itself stalls the connection, without a fault of the code under test.

    Linux before 7 does, once the memory of segments beyond a gap exceeds the receive buffer. It then leaves all others
    in the subflows, also the one that fills the gap, wakes nobody, and discards none (`mptcp_data_ready`). Small
    segments take several times their bytes, so this happens with small buffers, and with small writes before the
    buffer has grown.

    All known versions do when the ACK is lost that ends the handshake: if the client then ends its stream without a
    byte, that ACK has a DATA_FIN, but no MP_CAPABLE. The server falls back to TCP, where this is no end, and the client
    repeats it for ever.

    They also do when a receiver falls back after the sender sent bytes twice (`kernel/upstream/0007-*`). It takes the
    place in the subflow for that in the stream, so all that follows lies beyond a gap that nothing fills. A connection
    whose only subflow keeps its order has no other reason to queue bytes out of order, or to drop them.
    """
    lost_ack = counters.get("server", {}).get("MPTcpExtMPCapableFallbackACK", 0) > 0
    beyond_a_gap = sighting.fell_back and any(
        all(any(side.get(name, 0) for name in names) for names in (_FALLBACKS, _BEYOND_A_GAP))
        for side in counters.values()
    )
    return lost_ack or beyond_a_gap or (sighting.memory_full and int(version.partition(".")[0]) < 7)


def _may_be_wrong(case: HuntCase, counters: dict[Literal["client", "server"], dict[str, int]]) -> bool:
    """Return whether a program may receive other bytes: a middlebox changes packets, and a side noticed it.

    Then a program gets what the middlebox wrote (RFC 8684, 3.7). Where options are removed, Linux delivers bytes
    without a mapping that TCP appended to a mapped segment, and only then resets the subflow
    (`kernel/upstream/0004-*`). Data in a SYN (TCP Fast Open) have no checksum, so nobody notices what is rewritten
    there.
    """
    opens_fast = any(connection.fast_open for connection in case.connections)
    if opens_fast and any(event.do == "rewrite" for event in case.events):
        return True
    if all(event.do not in {"rewrite", "strip"} for event in case.events):
        return False
    values = [entry for side in counters.values() for entry in side.items()]
    noticed = {name for name, count in values if count and ("Fallback" in name or name in _NOTICED)}
    return bool(noticed - {_NO_FALLBACK})


def _odd_counters(counters: dict[Literal["client", "server"], dict[str, int]], case: HuntCase) -> list[str]:
    """Return what does not add up once all connections are gone."""
    texts = []
    # a server of Linux scales the window of a TCP Fast Open's SYN, so it sends beyond it (`kernel/upstream/0005-*`)
    # after a fallback it maps bytes by their place in the subflow, which counts those that were sent twice
    keeps_within = (
        case.scheduler != "default"
        and not any(entry.write_bytes or entry.fast_open for entry in case.connections)
        and not _may_be_wrong(case, counters)
    )
    for side, values in sorted(counters.items()):
        texts += [
            f"{name} of the {side} is {values[name]} after the last connection"
            for name in ("TcpCurrEstab", "MPTcpExtMPCurrEstab")
            if values.get(name, 0) != 0
        ]
        beyond = values.get("MPTcpExtNoDSSInWindow", 0)
        if beyond > _BEYOND_WINDOW and keeps_within:
            texts.append(
                f"the {side} dropped {beyond} segments beyond the window that it had offered, "
                f"and {case.scheduler} keeps within it"
            )
        again = values.get("MPTcpExtMPTCPRetrans", 0)
        if again > _SENT_AGAIN and (_loses_nothing(case) or _only_ends_subflows(case)):
            texts.append(f"the {side} sent {again} segments again by a timer, though no packet was lost")
    client, server = counters.get("client", {}), counters.get("server", {})
    fast_open = any(entry.fast_open for entry in case.connections)
    for name, limit in _AT_MOST.items():
        if fast_open and name == "MPTcpExtMPCapableACKRX":
            continue  # the server counts the SYN's data, and the client may be closed before the answer
        if server.get(name, 0) > client.get(limit, 0):
            texts.append(
                f"{name} of the server ({server[name]}) exceeds {limit} of the client ({client.get(limit, 0)})"
            )
    return texts


def _loses_nothing(case: HuntCase) -> bool:
    """Return whether all bytes arrive at first: over one link with a long queue, and nothing happens to it.

    And no timer runs out while a program pauses. Into a window that is closed TCP still takes a few bytes, which MPTCP
    acknowledges once the program reads.
    """
    link = case.links[0]
    return (
        len(case.links) == 1
        and not link.loss_percent
        and link.queue_packets >= _LONG_QUEUE
        and not case.events
        and not any(
            entry.fast_open or entry.read_every_ms >= _SHORTEST_TIMER_MS for entry in case.connections
        )
    )


def _only_ends_subflows(case: HuntCase) -> bool:
    """Return whether nothing but the end of subflows keeps the bytes of a plain transfer from arriving.

    A subflow ends if it is destroyed, or reset because its options are gone while there is another one. What it holds
    is then sent over another one at once, which `MPTCPRetrans` does not count.
    """
    ends = [event.do == "destroy" or (event.do == "strip" and event.link > 0) for event in case.events]
    if len(case.connections) > 1 or not ends or not all(ends):
        return False
    (connection,) = case.connections
    plain = HuntCase(
        seed=case.seed,
        congestion_control=case.congestion_control,
        ipv6=case.ipv6,
        most_subflows=case.most_subflows,
        links=tuple(
            HuntLink(
                rate_mbit=link.rate_mbit,
                delay_ms=link.delay_ms,
                queue_packets=max(_LONG_QUEUE, link.queue_packets),
            )
            for link in case.links
        ),
        connections=(
            HuntConnection(up_bytes=connection.up_bytes, down_bytes=connection.down_bytes, hold=True),
        ),
        events=case.events,
    )
    return case == plain and not (connection.up_bytes and connection.down_bytes)


def _first_line(text: str) -> str:
    return printable(text.splitlines()[0])[:_LONGEST_TEXT]


def _without_numbers(violation: Violation) -> str:
    """Return the text without time, processor and addresses."""
    return re.sub(r"0x[0-9a-f]+|\[ *[0-9.]+\]|[0-9]+", "", violation.text)
