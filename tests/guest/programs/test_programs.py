"""Programs run in nodes with their files, start and end as the scenario says, and fail with one message each."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import AGENT, run_plan
from plait import kernel as kernels
from plait.engine.engine import Job
from plait.engine.virtual.trial import VirtualEngine
from plait.engine.virtual.watch import TrialLimits
from plait.errors import TrialError
from plait.plan.resolve import resolve
from plait.scenario import parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran

pytestmark = pytest.mark.guest

NETWORK = """\
title: Programs
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit, delay: 5ms}, h1-h2#2: {rate: 10mbit, delay: 5ms}}}
programs:
"""


@pytest.fixture
def run(engine: VirtualEngine, tmp_path: Path) -> Callable[[str], tuple[Ran, Path]]:
    """Return a function that runs these programs and returns the trial and its folder."""

    def run(programs: str) -> tuple[Ran, Path]:
        folder = tmp_path / "job"
        folder.mkdir()
        scenario = parse(NETWORK + programs, "t.yaml")
        return run_plan(engine, resolve(scenario, 1), folder), folder

    return run


def failure(engine: VirtualEngine, folder: Path, programs: str) -> str:
    with pytest.raises(TrialError) as failed:
        engine.execute(Job(resolve(parse(NETWORK + programs, "t.yaml"), 1), {}, folder))
    return str(failed.value)


@pytest.mark.users
def test_npm_packages_are_there_also_if_the_cache_is_below_a_folder_that_is_private_to_the_guest(
    run: Callable[[str], tuple[Ran, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as cache:  # private to a guest; TMPDIR may be elsewhere
        monkeypatch.setenv("PLAIT_CACHE", cache)
        Path(cache, "npm").mkdir()
        Path(cache, "npm/package").write_text("a package\n")
        _, folder = run("  - {name: one, node: h1, wait: true, run: 'cat /mnt/npm/package'}\n")
    assert (folder / "programs/one.log").read_text() == "a package\n"


@pytest.mark.users
def test_a_program_finds_its_files_and_leaves_what_is_collected(
    run: Callable[[str], tuple[Ran, Path]],
) -> None:
    ran, folder = run(
        "  - {name: one, node: h1, wait: true,"
        " run: 'cat given; pwd; echo $WHAT; getent hosts h2 h2-eth1; echo left > here',"
        " files: {given: 'a text'}, environment: {WHAT: so}, collect: here}\n"
    )
    assert (folder / "programs/one.log").read_text() == (
        "a text/tmp/one\nso\n10.0.0.2        h2\n10.0.1.2        h2-eth1\n"
    )
    assert (folder / "programs/one/here").read_text() == "left\n"
    row = ran.tables["programs"].row(0, named=True)
    assert (row["exit_code"], row["stopped"]) == (0, False)


@pytest.mark.parametrize(
    ("ready", "shows"),
    [
        ("{tcp: 7000}", "iperf3 -s -p 7000"),
        ("{udp: 7000}", "socat -u UDP-RECV:7000 -"),
        ("{file: there}", "touch there; sleep 100"),
        ("{log: 'I am here'}", "echo I am here; sleep 100"),
    ],
)
def test_the_next_program_waits_for_the_probe(
    run: Callable[[str], tuple[Ran, Path]], ready: str, shows: str
) -> None:
    programs = (
        f"  - {{name: first, node: h1, run: 'sleep 1; {shows}', ready: {ready}, stop: {{signal: KILL}}}}\n"
    )
    programs += "  - {name: second, node: h2, run: 'true', after: first, at: 100ms, wait: true}\n"
    programs += "traffic: [transfer: {from: h1, to: h2, bytes: 10KB, after: first}]\n"
    ran, _ = run(programs)
    first, second = ran.tables["programs"].iter_rows(named=True)
    assert 1_000_000 <= first["ready_us"] < 1_100_000
    assert second["start_us"] - first["ready_us"] in range(100_000, 101_000)
    assert ran.tables["flows"]["start_us"][0] - first["ready_us"] in range(10_000)


def test_a_program_is_stopped_by_its_signal_and_after_its_grace_by_force(
    run: Callable[[str], tuple[Ran, Path]],
) -> None:
    ran, folder = run(
        "  - {name: polite, node: h1, stop: {at: 1s, signal: INT},"
        " run: 'trap \"echo bye; exit 3\" INT; sleep 9 & wait'}\n"
        "  - {name: deaf, node: h1, stop: {at: 1s, grace: 500ms}, run: 'trap \"\" TERM; while :; do sleep 1; done'}\n"
        "until: 2s\n"
    )
    polite, deaf = ran.tables["programs"].iter_rows(named=True)
    assert (folder / "programs/polite.log").read_text() == "bye\n"
    assert (polite["exit_code"], polite["stopped"]) == (3, True)
    assert polite["end_us"] in range(1_000_000, 1_010_000)
    assert deaf["exit_code"] == 128 + 9
    assert deaf["end_us"] in range(1_500_000, 1_510_000)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            "run: 'echo why; exit 7'",
            "it ended with exit code 7 instead of exit code 0; the last lines of its log:\n  why",
        ),
        ("run: 'kill -SEGV $$'", "it ended by signal 11"),
        ("run: [no-such-program]", "there is no program no-such-program"),
        (
            "run: 'cat /dev/net/nothing'",
            "exit code 0; there is no /dev/net/nothing in a guest, which has none of this machine's devices",
        ),
        ("run: 'echo x > /etc/x'", "cannot create /etc/x: Read-only file system"),
        ("run: 'yes | head -c 1G > full'", "No space left on device"),
        ("run: 'yes'", "it printed more than 16 MiB"),
        ("run: 'sleep infinity'", "it still ran when the trial's time was over, at 3.000 s"),
        (
            "run: 'sleep 3', ready: {tcp: 80, within: 1s}",
            "s after its start: it needs a listener on TCP port 80",
        ),
        ("run: 'true', ready: {tcp: 80}", "it ended before it was ready: it needs a listener on TCP port 80"),
        ("run: 'true', collect: nothing", "collecting /tmp/it/nothing: ENOENT"),
        ("run: 'echo {}', result: iperf3", "parsing its output as iperf3's JSON"),
    ],
)
def test_each_failure_of_a_program_gives_one_message(
    engine: VirtualEngine, tmp_path: Path, program: str, expected: str
) -> None:
    message = failure(engine, tmp_path, f"  - {{name: it, node: h1, wait: true, {program}}}\nuntil: 3s\n")
    assert message.startswith("run: program it (")
    assert ") in h1: " in message
    assert expected in message


def test_plait_distinguishes_exhausted_memory_from_a_killed_program(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    greedy = "import sys; kept = [bytearray(1 << 20) for _ in range(300)]"
    programs = (
        f"  - {{name: it, node: h1, wait: true, run: [/usr/bin/python3, -c, '{greedy}']}}\nmemory: 256MiB\n"
    )
    message = failure(engine, tmp_path, programs)
    assert "it ended by signal 9" in message
    assert message.splitlines()[-1].startswith(
        "the guest ran out of memory (256 MiB), and its kernel killed a program"
    )


@pytest.mark.users
def test_full_file_systems_leave_memory_to_run_in(engine: VirtualEngine, tmp_path: Path) -> None:
    fill = "for place in /tmp /run /var/tmp /mnt /dev/shm; do dd if=/dev/zero of=$place/much bs=1M; done; ls /; exit 9"
    programs = f"  - {{name: it, node: h1, wait: true, run: '{fill}'}}\nmemory: 256MiB\n"
    message = failure(engine, tmp_path, programs)
    assert "it ended with exit code 9" in message
    assert "No space left on device" in message or "usr" in message


@pytest.mark.users
def test_a_program_that_forks_without_end_is_bounded(engine: VirtualEngine, tmp_path: Path) -> None:
    message = failure(
        engine,
        tmp_path,
        "  - {name: it, node: h1, wait: true, run: 'while :; do sleep 1000 & done'}\nuntil: 3s\n",
    )
    assert "it reached the limit of 512 processes and threads" in message
    assert "fork" in message


def test_plait_distinguishes_a_program_that_stops_the_clock_from_a_slow_one(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    impatient = VirtualEngine(kernels.ensure(), AGENT, TrialLimits(stall_s=6))
    message = failure(
        impatient,
        tmp_path,
        "  - {name: it, node: h1, wait: true, run: 'echo spinning; while :; do :; done'}\n",
    )
    assert "no virtual progress" in message
