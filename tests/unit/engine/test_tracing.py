"""Trace events of a session: the request around the program, and the table from what the guest wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.engine.interactive import ProgramStart
from plait.engine.virtual.guest_folder import GuestFolder
from plait.engine.virtual.session import SessionRequest
from plait.engine.virtual.tracing import TRACE, kept_trace, read_trace, require_events, traced
from plait.errors import RequestError, TrialError
from plait.files import Output
from plait.kernel import Kernel

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 3/10   #P:1
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
         python3-71      [000] .....     5.000123: mptcp_subflow_get_send: active=1 free=1
     kworker/0:1-9       [000] b..1.    12.345678: ack_update_msk: data_ack=5
 my prog-with-1-2222    [000] .....    12.345679: kfree_skb: reason: TCP_OFOMERGE
"""


def request() -> SessionRequest:
    return SessionRequest(start=ProgramStart(1, ["iperf3", "-c", "a b"], [("PATH", "/bin")]))


def test_events_become_rows_with_virtual_times_and_lost_ones_are_counted() -> None:
    table, lost = read_trace(TEXT.encode())
    assert table.schema == TRACE
    assert lost == 7
    assert table.rows() == [
        (5_000_123, "mptcp_subflow_get_send", "python3", 71, "active=1 free=1"),
        (12_345_678, "ack_update_msk", "kworker/0:1", 9, "data_ack=5"),
        (12_345_679, "kfree_skb", "my prog-with-1", 2222, "reason: TCP_OFOMERGE"),
    ]


def test_what_a_guest_makes_up_gives_no_row_and_no_control_characters() -> None:
    made_up = (
        f"x-1 [000] ..... {'9' * 40}.000000: e: t\nx-1 [000] ..... 1.000000: e: \x1b[31m\nno event\n\0\xff"
    )
    table, lost = read_trace(made_up.encode("latin-1"))
    assert (len(table), lost) == (1, 0)
    assert table["text"][0].isprintable()


def left_by(folder: Path, session: SessionRequest) -> None:
    """Do what the end of a session does with the guest's folder."""
    assert session.at_end is not None
    session.at_end(GuestFolder(folder))


def test_a_link_or_a_missing_trace_is_refused(tmp_path: Path) -> None:
    traces: list[bytes] = []
    session = traced(request(), "mptcp:*", traces.append)
    left_by(tmp_path, session)
    with pytest.raises(TrialError, match="did the program end by itself"):
        read_trace(b"".join(traces))
    (tmp_path / "secret").write_text(TEXT)
    (tmp_path / "trace").symlink_to(tmp_path / "secret")
    with pytest.raises(TrialError, match="reading trace of the guest's folder"):
        left_by(tmp_path, session)


def test_the_program_keeps_its_words_and_the_events_are_enabled_before_it() -> None:
    session = traced(request(), "mptcp:*, tcp:tcp_probe", lambda _: None)
    assert session.start is not None
    assert list(session.start.argv)[-3:] == ["iperf3", "-c", "a b"]
    assert not session.writable, "the trace goes to the guest's own folder, whose size is limited"
    commands = [" ".join(argv) for _, argv in session.before]
    assert commands[0].startswith("mount -t tracefs")
    assert [argv[-1] for _, argv in session.before][-2:] == ["mptcp:*", "tcp:tcp_probe"]


@pytest.mark.parametrize("events", ["", "mptcp:*;rm", "a b", "tcp:'x'", "$(x)", "a:b:c"])
def test_what_names_no_events_is_refused(events: str) -> None:
    with pytest.raises(RequestError, match="names no events; write SYSTEM:EVENT"):
        traced(request(), events, lambda _: None)


def test_a_kernel_without_trace_events_is_refused_with_the_command_that_builds_one(tmp_path: Path) -> None:
    kernel = Kernel("a" * 64, "6.12.1", tmp_path / "linux", "b" * 64, 1000)
    with pytest.raises(RequestError, match="kernel build --tree DIR --tracing"):
        require_events(kernel)
    (tmp_path / "config").write_text("CONFIG_EVENT_TRACING=y\n")
    require_events(kernel)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "config").write_text("CONFIG_EVENT_TRACING=y\n")
    return Kernel("a" * 64, "6.12.1", tmp_path / "linux", "b" * 64, 1000)


def test_the_table_is_written_after_the_session(kernel: Kernel, tmp_path: Path) -> None:
    messages: list[str] = []
    with kept_trace(kernel, "mptcp:*", Output.at(tmp_path / "t.parquet"), messages.append) as traced_request:
        (tmp_path / "trace").write_text(TEXT)
        left_by(tmp_path, traced_request(request()))
    assert messages == [f"3 trace events in {tmp_path / 't.parquet'}; 7 older ones were lost"]
    assert pl.read_parquet(tmp_path / "t.parquet").schema == TRACE
