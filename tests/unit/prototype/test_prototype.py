"""The prototype's transport over a network in memory: it delivers everything, fills paths, and bounds schedulers."""

from __future__ import annotations

import inspect
import re

import pytest
from network_in_memory import MemoryLine, MemoryNetwork

from plait.prototype.application import Application
from plait.prototype.choice import SchedulerError, load_scheduler
from plait.prototype.packets import Ack, Data, Open, decode, encode_ack, encode_data, encode_open
from plait.prototype.path import SendingPath
from plait.prototype.receiver import Receiver, ReorderBuffer
from plait.prototype.schedulers import SCHEDULERS
from plait.prototype.sender import Sender, content
from plait.traffic import prototype as kind

EQUAL = (MemoryLine(10e6, 0.01), MemoryLine(10e6, 0.01))


class Run:
    """A transfer over lines, with what it delivered."""

    def __init__(
        self, lines: tuple[MemoryLine, ...], scheduler: object, size: int = 2_000_000, **settings: object
    ):
        window = int(settings.pop("window", 3_000_000))
        self.paths = [SendingPath(index, f"path {index}") for index in range(len(lines))]
        self.sender = Sender(self.paths, scheduler, **settings)
        self.application = Application({"bytes": size})
        self.data: list[bytes] = []
        self.receiver = Receiver(len(lines), window, 1, self.deliver, repairs=self.sender.repairs)
        self.ended = MemoryNetwork(lines, self.sender, self.receiver).run(self.application, limit=120)
        self.goodput = self.application.received * 8 / self.ended

    def deliver(self, data: bytes | memoryview, now: float) -> None:
        self.data.append(bytes(data))
        self.application.receive(data, now)


@pytest.mark.parametrize("coupling", ["none", "lia", "olia"])
@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_every_byte_arrives_once_and_in_order_despite_loss(name: str, coupling: str) -> None:
    lines = (MemoryLine(10e6, 0.01, loss=0.02), MemoryLine(5e6, 0.04, loss=0.01))
    run = Run(lines, SCHEDULERS[name](), 500_000, coupling=coupling)
    received = b"".join(run.data)
    assert len(received) == 500_000
    assert received == b"".join(content(at, min(1000, 500_000 - at)) for at in range(0, 500_000, 1000))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(SCHEDULERS) - {"redundant", "parity"}))
def test_two_equal_paths_carry_nearly_twice_as_much_as_one(name: str) -> None:
    both = Run(EQUAL, SCHEDULERS[name](), 6_000_000)
    assert 0.85 * 20e6 < both.goodput < 20e6


def test_redundant_is_as_fast_as_the_fastest_path_and_survives_its_cut_without_a_gap() -> None:
    run = Run((MemoryLine(10e6, 0.01), MemoryLine(5e6, 0.01)), SCHEDULERS["redundant"](), 4_000_000)
    assert 0.85 * 10e6 < run.goodput < 10e6


@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_a_cut_path_does_not_end_a_transfer(name: str) -> None:
    run = Run((MemoryLine(10e6, 0.01, cut=(0.5, 1e9)), MemoryLine(10e6, 0.01)), SCHEDULERS[name]())
    assert run.application.received == 2_000_000
    assert run.ended < 8


def test_capped_splits_evenly_over_unequal_paths() -> None:
    run = Run((MemoryLine(10e6, 0.01), MemoryLine(5e6, 0.02)), SCHEDULERS["capped"](), 4_000_000)
    shares = [path.sent_bytes / sum(each.sent_bytes for each in run.paths) for path in run.paths]
    assert max(shares) < 0.51


def test_a_small_window_bounds_the_rate_by_the_longest_rtt() -> None:
    run = Run((MemoryLine(50e6, 0.05),), SCHEDULERS["minrtt"](), 2_000_000, window=50_000)
    assert run.goodput < 1.05 * 50_000 * 8 / 0.1
    assert run.receiver.buffer.most_held_bytes <= 50_000


def test_the_same_run_twice_is_the_same() -> None:
    first, second = (
        Run((MemoryLine(10e6, 0.01, loss=0.01),), SCHEDULERS["bandit"](), 300_000) for _ in range(2)
    )
    assert first.ended == second.ended


@pytest.mark.parametrize("name", sorted(SCHEDULERS))
def test_a_shipped_scheduler_has_at_most_forty_lines(name: str) -> None:
    lines = inspect.getsource(SCHEDULERS[name]).splitlines()
    assert len(lines) <= 40


def test_scenarios_know_the_shipped_schedulers() -> None:
    assert set(kind.SCHEDULERS) == set(SCHEDULERS)


PICKS = {
    "exits": ("    raise SystemExit(0)", r"mine\.py:4: pick\(\) of Mine raised SystemExit: 0"),
    "raises": ("    return paths[7]", r"mine\.py:4: pick\(\) of Mine raised IndexError"),
    "nonsense": ("    return 'fast'", r"mine\.py:3: pick\(\) of Mine returned 'fast'; return a path"),
    "closed": (
        "    self.kept = getattr(self, 'kept', None) or __import__('copy').copy(paths[0])\n        return self.kept",
        r"mine\.py:3: pick\(\) of Mine returned path path 0, which is not in `paths`",
    ),
    "never": ("    return None", r"mine\.py:3: pick\(\) of Mine chose no path for 1 s"),
    "loops": (
        "    while True:\n            pass",
        r"mine\.py:\d: pick\(\) of Mine executed more than 100000 lines",
    ),
    "loops in one line": (
        "    while True: pass",
        r"mine\.py:4: pick\(\) of Mine executed more than 100000 lines",
    ),
    "swallows": (
        "    while True:\n            try:\n                pass\n            except Exception:\n                pass",
        r"mine\.py:\d: pick\(\) of Mine executed more than 100000 lines",
    ),
}


def mine(body: str) -> str:
    return (
        "from plait.prototype import Scheduler\nclass Mine(Scheduler):\n"
        f"    def pick(self, paths, segment):\n    {body}\n"
    )


@pytest.mark.parametrize("name", sorted(PICKS))
def test_a_wrong_scheduler_ends_in_an_error_with_its_file_and_line(name: str) -> None:
    body, message = PICKS[name]
    with pytest.raises(SchedulerError, match=message):
        Run(EQUAL, load_scheduler("mine.py", "Mine", mine(body)))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class Mine(:\n", r"mine\.py:1: invalid syntax"),
        ("import nothing_of_this_name\n", r"mine\.py:1: the file raised ModuleNotFoundError"),
        ("x = 1\nwhile True: x += 1\n", r"mine\.py:2: the file executed more than 100000 lines"),
        ("while True: pass\n", r"mine\.py:1: the file executed more than 100000 lines"),
        ("class Other: pass\n", r"mine\.py:1: there is no class Mine that inherits"),
        (
            "from plait.prototype import Scheduler\nclass Mine(Scheduler): pass\n",
            r"mine\.py:1: class Mine has no method pick",
        ),
    ],
)
def test_a_file_without_the_scheduler_is_refused_with_its_line(source: str, message: str) -> None:
    with pytest.raises(SchedulerError, match=message):
        load_scheduler("mine.py", "Mine", source)


def test_packets_survive_encoding_and_strangers_datagrams_are_ignored() -> None:
    ack = Ack(1, 7, 300, 10, 20, [(5, 9), (0, 2)])
    assert decode(encode_ack(ack)) == ack
    opened = Open(1, 0, 7, 0.5)
    assert decode(encode_open(opened)) == opened
    data = decode(encode_data(1, 7, 3, 1428, b"abc"))
    assert isinstance(data, Data)
    assert (data.number, data.sequence, bytes(data.data)) == (3, 1428, b"abc")
    whole = encode_ack(ack)
    for wrong in (
        b"",
        b"\x09" * 40,
        whole[:-1],
        whole + b"x",
        encode_ack(ack._replace(ranges=[(3, 9), (2, 5)])),
    ):
        assert decode(wrong) is None


def test_the_reorder_buffer_holds_no_more_than_its_window() -> None:
    buffer = ReorderBuffer(3000)
    assert buffer.insert(1000, b"b" * 1000) == []
    assert buffer.insert(2500, b"c" * 1000) == []  # beyond the window
    assert buffer.held_bytes == 1000
    assert b"".join(buffer.insert(0, b"a" * 1000)) == b"a" * 1000 + b"b" * 1000
    assert (buffer.next, buffer.held_bytes, buffer.limit) == (2000, 0, 5000)


def test_a_driver_can_end_the_process_of_a_scheduler_that_loops() -> None:
    errors: list[str] = []

    def end(error: str) -> None:
        errors.append(error)
        raise ProcessLookupError

    body = "    while True:\n            len(paths)"
    with pytest.raises(SchedulerError):
        Run(EQUAL, load_scheduler("mine.py", "Mine", mine(body)), overrun=end)
    assert len(errors) == 1
    assert re.fullmatch(r"mine\.py:[45]: pick\(\) executed more than 100000 lines", errors[0])


def test_a_scheduler_that_changes_a_path_is_blamed_for_the_error_of_the_transport() -> None:
    run = Run(EQUAL, SCHEDULERS["minrtt"](), 10_000)
    error = run.sender.blame(ValueError("no number"))
    assert "schedulers.py" in str(error)
    assert "changed a path or a segment: the transport raised ValueError: no number" in str(error)
