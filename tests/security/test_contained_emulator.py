"""The emulator of the engine `machine` runs in the same sandbox as any guest, seen from its host during a trial."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executing import descendants
from plait.engine.engine import Job
from plait.engine.factory import make_engine
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.guest

SCENARIO = """
title: A short transfer
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit, delay: 1ms}}}
traffic: [{bulk: {from: h1, to: h2, duration: 2s}}]
transport: tcp
"""
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


def emulators() -> Iterator[Path]:
    """Yield /proc/PID of each emulator that descends from this process."""
    for pid in descendants(os.getpid()):
        with suppress(OSError):  # it has just ended
            if b"\0emulator/qemu\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield Path(f"/proc/{pid}")


def test_the_emulator_has_no_privileges_and_sees_only_its_own_files(tmp_path: Path) -> None:
    seen: list[tuple[dict[str, str], set[str], list[str], set[str]]] = []

    def look(_virtual_us: int) -> None:
        for process in emulators():
            lines = (process / "status").read_text().splitlines()
            status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            separate = {
                kind
                for kind in NAMESPACES
                if (process / "ns" / kind).readlink() != Path(f"/proc/self/ns/{kind}").readlink()
            }
            interfaces = [
                line.split(":")[0].strip() for line in (process / "net/dev").read_text().splitlines()[2:]
            ]
            seen.append((status, separate, interfaces, {path.name for path in (process / "root").iterdir()}))

    plan = resolve(expand(parse(SCENARIO, "s.yaml"))[0].scenario, 1)
    folder = tmp_path / "job"
    folder.mkdir()
    make_engine("machine").execute(Job(plan, {}, folder, progress=look))
    assert seen, "an emulator ran meanwhile"
    for status, separate, interfaces, root in seen:
        assert status["Seccomp"] == "2", "a filter of system calls"
        assert status["NoNewPrivs"] == "1"
        assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert separate == set(NAMESPACES)
        assert interfaces == ["lo"]
        assert root == {"job", "proc", "dev", "plait"}
