"""A BPF program for stock kernels and the module that it compiles from set the same windows, event by event.

Both compile for the host. The program brings its own map of subflows, arithmetic and view of the kernel's structures;
the module its lists. The same events of sockets go to both: ACKs, losses, timeouts, undone losses, subflows that come,
fall silent and go, and plain TCP sockets between them.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALGORITHMS = ("lia", "olia", "balia", "wvegas")
SOCKETS = 12
SUBFLOWS = 4
"""Of a connection, at once; the program couples nine."""
_MODULE_HEADERS = (
    "linux/rculist.h", "linux/hash.h", "linux/slab.h", "linux/module.h", "linux/bitops.h", "linux/math64.h",
    "linux/types.h", "net/tcp.h", "net/mptcp.h", "protocol.h",
)  # fmt: skip
_BPF_HEADERS = ("bpf/bpf_core_read.h", "bpf/bpf_helpers.h", "bpf/bpf_tracing.h")
_LIMIT_S = 120


EVENTS = ("open", "loss", "recovered")
"""They bring a subflow into congestion avoidance."""


def _build(folder: Path, algorithm: str, *, is_bpf: bool) -> Path:
    compiler = shutil.which("gcc") or pytest.skip("gcc is needed")
    host = "bpf_host.h" if is_bpf else "kernel_host.h"
    for header in _BPF_HEADERS if is_bpf else _MODULE_HEADERS:
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / header).write_text(f'#include "{host}"\n')
    source = (
        [
            f'-DBPF_SOURCE="{algorithm}.bpf.c"',
            f"-DALGORITHM={algorithm}",
            f"-I{ROOT}/bpf",
            f"-I{ROOT}/bpf/include",
        ]
        if is_bpf
        else [f'-DMODULE_SOURCE="{algorithm}.c"']
    )
    command = [
        compiler, "-std=gnu11", "-O2", "-w", "-fms-extensions", "-D__KERNEL__", "-fsanitize=undefined,address",
        "-fno-sanitize-recover=undefined", f"-I{folder}", f"-I{ROOT}/kernel/congestion", f"-I{ROOT}/tests/kernel",
        *source, str(ROOT / "tests/kernel/coupled_host.c"), "-o", str(folder / "program"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "program"


def _windows(program: Path, events: list[str]) -> list[str]:
    done = subprocess.run(
        [program], input="\n".join(events), capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


def history(seed: int, count: int) -> list[str]:
    """Return events of connections with up to SUBFLOWS subflows, and of plain TCP sockets (connection 0)."""
    draw = random.Random(seed)
    rtts = [draw.choice((400, 3_000, 20_000, 90_000, 400_000)) for _ in range(SOCKETS)]
    open_sockets: dict[int, int] = {}
    events = []
    while len(events) < count:
        number = draw.randrange(SOCKETS)
        if number not in open_sockets:
            connection = draw.randrange(4)
            if connection and list(open_sockets.values()).count(connection) == SUBFLOWS:
                continue
            open_sockets[number] = connection
            events.append(f"open {number} {connection} {draw.choice((536, 1388, 1428, 8900))}")
            continue
        chance = draw.random()
        if chance < 0.003:
            events.append(f"close {number}")
            del open_sockets[number]
        elif chance < 0.006:
            events.append(f"wait {draw.choice((100, 400, 3000))}")
        elif chance < 0.010:
            events += [f"timeout {number}", draw.choice((f"undo {number}", f"recovered {number}"))]
        elif chance < 0.030:
            acks = [f"ack {number} {draw.randint(1, 3)} {rtts[number]} 1" for _ in range(draw.randint(1, 6))]
            events += [f"loss {number}", *acks, f"recovered {number}"]
        else:
            rtt = rtts[number] * draw.randint(100, 160) // 100
            burst = f"ack {number} {draw.randint(1, 8)} {rtt} {int(draw.random() < 0.95)}"
            events += [burst, f"wait {draw.randrange(2)}"]
    return events


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_program_and_module_set_the_same_windows(algorithm: str, tmp_path: Path) -> None:
    programs = [_build(tmp_path / name, algorithm, is_bpf=name == "bpf") for name in ("bpf", "module")]
    for seed in range(8):
        events = history(seed, 20_000)
        program, module = (_windows(path, events) for path in programs)
        assert len(module) > 10_000
        different = [
            index for index, pair in enumerate(zip(program, module, strict=True)) if pair[0] != pair[1]
        ]
        assert not different, f"seed {seed}: {len(different)} windows differ, the first at {different[0]}"


def _lookups(program: Path, events: list[str]) -> tuple[int, int]:
    """Return how often the program looked into its map, and how many entries this has at the end."""
    done = subprocess.run([program], input="\n".join(events), capture_output=True, text=True, check=True)
    lookups, entries = map(int, done.stderr.split())
    return lookups, entries


def _opened(numbers: range) -> list[str]:
    """Return the events that bring subflows of one connection into congestion avoidance."""
    return [f"{event} {i}{' 1 1428' * (event == 'open')}" for i in numbers for event in EVENTS]


def _acks(subflows: int) -> list[str]:
    return [f"ack {i % subflows} 1 20000 1" for i in range(4000)]


@pytest.mark.parametrize("subflows", [2, 4])
def test_an_ack_looks_up_no_subflow_that_the_connection_never_had(subflows: int, tmp_path: Path) -> None:
    program = _build(tmp_path, "olia", is_bpf=True)
    acks = _acks(subflows)
    opening = [*_opened(range(subflows)), *acks[: 2 * subflows]]  # until each has measured its RTT
    count = _lookups(program, opening + acks)[0] - _lookups(program, opening)[0]
    # Its own slot four times: as the ACK arrives, before and after the rule, and in what the rule reads.
    assert count / len(acks) == 4 + subflows - 1


def test_a_subflow_whose_slot_was_dropped_is_coupled_again_after_an_ack(tmp_path: Path) -> None:
    program = _build(tmp_path, "olia", is_bpf=True)
    acks = _acks(3)
    # The third subflow takes the index of the first, whose slot is gone.
    opening = [
        *_opened(range(2)),
        *acks[:1],
        "ack 1 1 20000 1",
        "drop 0",
        *_opened(range(2, 3)),
        *acks[:6],
        "drop 2",
    ]
    opening += acks[:6]
    count = _lookups(program, opening + acks)[0] - _lookups(program, opening)[0]
    assert count / len(acks) == 4 + 3 - 1
    assert _lookups(program, [*opening, *(f"close {number}" for number in range(3))])[1] == 0
