"""The BPF programs compile, and a kernel with BTF accepts them and forgets them again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALGORITHMS = ("lia", "olia", "balia", "wvegas")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_LIMIT_S = 120


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the compiled programs."""
    if shutil.which("clang") is None or not Path("/usr/include/bpf/bpf_helpers.h").exists():
        pytest.skip("clang and libbpf-dev are needed (`apt-get install clang libbpf-dev`)")
    folder = tmp_path_factory.mktemp("bpf")
    _run("make", "--no-print-directory", "-C", "bpf", f"OUT={folder}")
    return folder


def test_every_program_compiles(objects: Path) -> None:
    assert {path.name for path in objects.iterdir()} == {f"{name}.bpf.o" for name in ALGORITHMS}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_kernel_accepts_and_forgets_the_program(objects: Path, algorithm: str) -> None:
    bpftool = shutil.which("bpftool", path=f"{os.environ['PATH']}:/usr/sbin")
    if os.geteuid() != 0 or bpftool is None or not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("root, bpftool and a kernel with BTF are needed")
    if algorithm in AVAILABLE.read_text().split():
        pytest.skip(f"this machine uses the name {algorithm} already")
    _run(bpftool, "struct_ops", "register", str(objects / f"{algorithm}.bpf.o"))
    try:
        available = AVAILABLE.read_text().split()
    finally:
        _run(bpftool, "struct_ops", "unregister", "name", f"plait_{algorithm}")
    assert algorithm in available
    assert algorithm not in AVAILABLE.read_text().split()
    listed = json.loads(_run(bpftool, "-j", "struct_ops", "list") or "[]")
    assert f"plait_{algorithm}" not in {entry["name"] for entry in listed}
