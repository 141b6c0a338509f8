"""Trace events of the guest's kernel during a session, as a table with virtual times.

Steps before the program mount tracefs and enable the events; a shell around the program writes the trace at its end to
the guest's folder in memory, whose size is limited. The guest writes that file, so it is untrusted: plait reads it with
bounds and through `GuestFolder`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import polars as pl

from plait.engine.virtual.session import SessionRequest
from plait.errors import RequestError, TrialError, printable
from plait.files import Folder, Output
from plait.kernel import Kernel

TRACE = pl.Schema(
    {
        # one row per event, in the kernel's order
        "t_us": pl.Int64,  # virtual time since the guest's boot
        "event": pl.String,  # "mptcp_subflow_get_send"
        "task": pl.String,  # the task that ran
        "pid": pl.Int64,
        "text": pl.String,  # the event's fields as the kernel prints them
    }
)
MOST_BYTES = 512 << 20
_NAME = "trace"
_TRACEFS = "/sys/kernel/tracing"
_BUFFER_KIB = 65_536
_EVENTS = re.compile(r"[A-Za-z0-9_*]{1,64}(:[A-Za-z0-9_*]{1,64})?")
_LINE = re.compile(
    r"^ *(?P<task>.{1,16}?)-(?P<pid>\d{1,10}) +\[\d{1,4}\] +\S+ +(?P<s>\d{1,9})\.(?P<us>\d{6}): (?P<event>\w{1,64}): ?"
    r"(?P<text>.*)$",
    re.ASCII,
)
_COUNTS = re.compile(r"^# entries-in-buffer/entries-written: (?P<kept>\d{1,18})/(?P<written>\d{1,18})")
_ENABLE = f"""\
{{ echo "$1" >> {_TRACEFS}/set_event; }} 2> /dev/null && exit
echo "this kernel has no events $1; these commands list what it has:" >&2
echo "  mount -t tracefs tracefs {_TRACEFS}; cat {_TRACEFS}/available_events" >&2
exit 1
"""
_FILE = f"/proc/1/root/job/{_NAME}"
"""Where the file is for a program: the agent, process 1, has the guest's folder at `/job`."""
_AROUND = f'"$@"; code=$?; cat {_TRACEFS}/trace > {_FILE}; exit $code'


def require_events(kernel: Kernel) -> None:
    """Raise RequestError if the kernel has no trace events."""
    try:
        config = Folder(kernel.binary.parent).read("config").decode(errors="replace")
    except OSError:
        config = ""
    if "CONFIG_EVENT_TRACING=y\n" not in config:
        raise RequestError(
            f"--trace: the kernel {kernel.name} has no trace events; build one with "
            "`plait kernel build --tree DIR --tracing --name traced`, and boot it with --kernel traced"
        )


def traced(request: SessionRequest, events: str, keep: Callable[[bytes], None]) -> SessionRequest:
    """Return the session with trace events (`mptcp:*,tcp:*`), whose trace `keep` gets at its end (RequestError)."""
    names = [name.strip() for name in events.split(",")]
    for name in names:
        if not _EVENTS.fullmatch(name):
            raise RequestError(
                f"--trace {events}: {name!r} names no events; write SYSTEM:EVENT, such as mptcp:*"
            )
    assert request.start is not None
    steps = [
        ("mount", "-t", "tracefs", "tracefs", _TRACEFS),
        ("sh", "-c", f"echo mono > {_TRACEFS}/trace_clock && echo {_BUFFER_KIB} > {_TRACEFS}/buffer_size_kb"),
        *(("sh", "-c", _ENABLE, "sh", name) for name in names),
    ]
    steps_before = [*request.before, *(("trace", step) for step in steps)]
    argv = ["sh", "-c", _AROUND, "sh", *request.start.argv]
    return replace(
        request,
        start=replace(request.start, argv=argv),
        before=steps_before,
        at_end=lambda left: keep(left.read(_NAME, MOST_BYTES) or b""),
    )


@contextmanager
def kept_trace(
    kernel: Kernel, events: str, target: Output, report: Callable[[str], None]
) -> Iterator[Callable[[SessionRequest], SessionRequest]]:
    """Yield what adds trace events to a session; after it, write their table to `target`, and report how many.

    Raises RequestError for a kernel without trace events, TrialError without a trace or if plait cannot write it.
    """
    require_events(kernel)
    traces: list[bytes] = []
    yield lambda request: traced(request, events, traces.append)
    table, lost = read_trace(b"".join(traces))
    try:
        with target.create() as file:
            table.write_parquet(file)
    except OSError as error:
        raise TrialError(f"writing {target}: {error.strerror}; name another file with --trace-to") from error
    report(f"{len(table)} trace events in {target}" + (f"; {lost} older ones were lost" if lost else ""))


def read_trace(trace: bytes) -> tuple[pl.DataFrame, int]:
    """Return the table of events, and the number of older events that the kernel's buffer lost (TrialError)."""
    if not trace:
        raise TrialError("reading the guest's trace: there is none; did the program end by itself?")
    text = trace.decode(errors="replace")
    columns: dict[str, list[int | str]] = {name: [] for name in TRACE}
    lost = 0
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            columns["t_us"].append(int(match["s"]) * 1_000_000 + int(match["us"]))
            columns["event"].append(match["event"])
            columns["task"].append(printable(match["task"]))
            columns["pid"].append(int(match["pid"]))
            columns["text"].append(printable(match["text"]))
        elif (counts := _COUNTS.match(line)) is not None:
            lost = max(0, int(counts["written"]) - int(counts["kept"]))
    return pl.DataFrame(columns, schema=TRACE), lost
