"""A scheduler as a BPF program and the module that it compiles from choose the same, decision by decision.

Both compile for the host, each with its own header between the source and the kernel. The same drawn states go to both:
windows, round-trip times, bytes that wait, backups, subflows that come and go or are out of memory.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SCHEDULERS = ("minrtt", "roundrobin", "blest", "ecf")
SUBFLOWS = 9
SLOTS = 16
"""The program keeps the state of a subflow by its number modulo this; two that share a place are not drawn."""
_MODULE_HEADERS = (
    "linux/module.h", "linux/version.h", "linux/math64.h", "linux/types.h", "net/tcp.h", "net/mptcp.h", "protocol.h",
)  # fmt: skip
_BPF_HEADERS = ("bpf/bpf_core_read.h", "bpf/bpf_helpers.h", "bpf/bpf_tracing.h")
_LIMIT_S = 120
_WRAP_32, _WRAP_64 = 1 << 32, 1 << 64


def _build(folder: Path, scheduler: str, *, is_bpf: bool) -> Path:
    compiler = shutil.which("gcc") or pytest.skip("gcc is needed")
    for header in _BPF_HEADERS if is_bpf else _MODULE_HEADERS:
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / header).write_text(f'#include "{"bpf_host.h" if is_bpf else "kernel_host.h"}"\n')
    source = (ROOT / f"kernel/schedulers/{scheduler}.c").read_text()
    if is_bpf:  # as bpf/Makefile
        source = source.replace(" % n]", " % (u32)n]")
    (folder / "source.c").write_text(source)
    kind = "BPF" if is_bpf else "MODULE"
    folders = [ROOT / "bpf", ROOT / "bpf/include"] if is_bpf else [ROOT / "kernel/include"]
    command = [
        compiler, "-std=gnu11", "-O2", "-w", "-fms-extensions", "-D__KERNEL__", "-fsanitize=undefined,address",
        "-fno-sanitize-recover=undefined", f'-D{kind}_SOURCE="source.c"', f"-DSCHEDULER={scheduler}",
        *(f"-I{place}" for place in (folder, *folders, ROOT / "kernel/schedulers", ROOT / "tests/kernel")),
        str(ROOT / "tests/kernel/scheduler_host.c"), "-o", str(folder / "program"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "program"


def _choices(program: Path, events: list[str]) -> list[str]:
    done = subprocess.run(
        [program], input="\n".join(events), capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


class Subflow(NamedTuple):
    """What a scheduler may read of a subflow."""

    cwnd: int
    out: int
    sacked: int
    lost: int
    resent: int
    unsent: int
    mss: int
    srtt: int
    mdev: int
    timeouts: int
    assigned: int
    backup: int
    active: int
    stales: int
    memory: int

    @property
    def has_room(self) -> bool:
        """Whether its window and its buffer admit a segment (`plait_read_option`)."""
        held = self.out - self.sacked - self.lost + self.resent + max(self.lost - self.resent, 0)
        return bool(self.memory) and held + self.unsent // max(self.mss, 1) <= max(self.cwnd, 1)


def drawn(draw: random.Random, former: Subflow | None) -> Subflow:
    """Return a state whose window is nearly full in many cases; `assigned` only grows, and wraps."""
    cwnd, mss = draw.choice((0, 1, 2, 10, 40, 3000)), draw.choice((0, 536, 1388, 1428, 8900))
    sacked, lost, resent = (draw.choice((0, 0, 1, 3)) for _ in range(3))
    out = max(cwnd + sacked + draw.choice((-3000, -9, -2, -1, 0, 0, 1, 2, 3)), sacked + lost)
    before = _WRAP_32 - draw.randrange(300_000) if former is None else former.assigned
    return Subflow(
        *(cwnd, out, sacked, lost, resent, draw.choice((0, 0, draw.randrange(1, 30_000))), mss),
        srtt=draw.choice((0, 8 * 400, 8 * 20_000, 8 * 20_000 + 7, 8 * draw.randrange(2_000_000))),
        mdev=draw.choice((0, 400, draw.randrange(800_000))),
        timeouts=draw.choice((0, 0, 0, 1, 3)),
        assigned=(before + draw.choice((0, 1, 700, 1400, 2800, 2801, 4000, 65_536))) % _WRAP_32,
        backup=draw.choice((0, 0, 0, 1, 2, 3)),
        active=int(draw.random() < 0.9),
        stales=draw.choice((0, 1, 2, 255)),
        memory=int(draw.random() < 0.9),
    )


class History:
    """Events of one connection, and what each decision is about."""

    def __init__(self, seed: int, decisions: int) -> None:
        self._draw = random.Random(seed)
        self._members: dict[int, Subflow] = {}
        self._clock = self._last = 0
        self._written = _WRAP_64 - 10_000_000
        self.events: list[str] = []
        self.offers: list[dict[int, Subflow]] = []
        """For each decision about new data: the subflows that may carry them."""
        while len(self.offers) < decisions:
            self._step()

    def _step(self) -> None:
        draw = self._draw
        if draw.random() < 0.02 and len(self._members) < SUBFLOWS:
            self._last += draw.choice((1, 1, 1, 5))
            for former in [number for number in self._members if (self._last - number) % SLOTS == 0]:
                self._leave(former)
            self.events.append(f"join {self._last}")
            self._change(self._last, None)
        if draw.random() < 0.01 and self._members:
            self._leave(draw.choice(list(self._members)))
        for number in self._members:
            if draw.random() < 0.5:
                self._change(number, self._members[number])
        if draw.random() < 0.2:
            self.events.append("resend")
        else:
            self._send()

    def _change(self, number: int, former: Subflow | None) -> None:
        self._members[number] = drawn(self._draw, former)
        self.events.append(f"state {number} {' '.join(map(str, self._members[number]))}")

    def _leave(self, number: int) -> None:
        del self._members[number]
        self.events.append(f"leave {number}")

    def _send(self) -> None:
        draw = self._draw
        self._clock += draw.choice((0, 10, 5_000, 300_000))
        self._written += draw.randrange(4000)
        pending, flight, window = (draw.randrange(1 << draw.randrange(27)) for _ in range(3))
        following = self._written - pending
        numbers = (self._written, following, following - flight, following - 2000 + window)
        fin = int(pending > 0 and draw.random() < 0.1)
        self.events.append(
            f"send {' '.join(str(number % _WRAP_64) for number in numbers)} {fin} {self._clock}"
        )
        active = {number: member for number, member in self._members.items() if member.active}
        regular = {number: member for number, member in active.items() if not member.backup}
        self.offers.append(regular or active)


def outcome(offer: dict[int, Subflow], chosen: int | None) -> str:
    """Return what kind of decision this is, and check that the choice is possible."""
    able = {number for number, member in offer.items() if member.has_room}
    if chosen is None:
        return "wait" if able else "none"
    assert chosen in able
    least = min(member.srtt >> 3 or _WRAP_32 for member in offer.values())
    return "fastest" if (offer[chosen].srtt >> 3 or _WRAP_32) == least else "other"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_program_and_module_choose_the_same(scheduler: str, tmp_path: Path) -> None:
    programs = [_build(tmp_path / name, scheduler, is_bpf=name == "bpf") for name in ("bpf", "module")]
    outcomes: Counter[str] = Counter()
    for seed in range(4):
        history = History(seed, 5000)
        program, module = (_choices(path, history.events) for path in programs)
        asked = [event for event in history.events if event.startswith(("send", "resend"))]
        different = [
            index for index, pair in enumerate(zip(program, module, strict=True)) if pair[0] != pair[1]
        ]
        assert not different, (
            f"seed {seed}: {len(different)} choices differ, the first: {asked[different[0]]}: "
            f"{program[different[0]]} and {module[different[0]]}"
        )
        answers = zip(asked, (line.split() for line in program), strict=True)
        sends = [answer[3:] for event, answer in answers if event.startswith("send")]
        for offer, marked in zip(history.offers, sends, strict=True):
            assert len(marked) <= 1
            outcomes[outcome(offer, int(marked[0]) if marked else None)] += 1
        outcomes["resent"] += sum(
            len(answer.split()) == 3
            for event, answer in zip(asked, program, strict=True)
            if event == "resend"
        )
    waits = {"wait"} if scheduler in {"blest", "ecf"} else set()
    assert set(outcomes) == {"none", "fastest", "other", "resent"} | waits
    assert min(outcomes.values()) > 100, outcomes
