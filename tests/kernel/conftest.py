"""Fixtures build the pure parts of the kernel sources as a library of the host, so that tests can call them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KERNEL = HERE.parents[1] / "kernel"


class Path_(ctypes.Structure):  # noqa: N801 - the C struct plait_path; Path is taken
    """struct plait_path."""

    _fields_ = (
        ("cwnd", ctypes.c_uint32),
        ("mss", ctypes.c_uint32),
        ("srtt_us", ctypes.c_uint32),
        ("interloss", ctypes.c_uint64),
    )


class Cap(ctypes.Structure):
    """struct plait_cap: a share numerator / denominator, and the largest credit."""

    _fields_ = (("numerator", ctypes.c_uint64), ("denominator", ctypes.c_uint64), ("most", ctypes.c_int64))


class Num(ctypes.Structure):
    """struct plait_num: m * 2**e."""

    _fields_ = (("m", ctypes.c_uint32), ("e", ctypes.c_int32))


def _build(source: str, target: Path) -> ctypes.CDLL:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    command = [compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command += ["-fsanitize=undefined", "-fno-sanitize-recover=undefined"]
    command += [
        f"-I{KERNEL / 'congestion'}",
        f"-I{KERNEL / 'schedulers'}",
        f"-I{KERNEL / 'queues'}",
        "-o",
        str(target),
        str(HERE / source),
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target))


@pytest.fixture(scope="session")
def rules(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the congestion control rules (kernel/congestion/plait_rules.h), callable."""
    library = _build("rules_host.c", tmp_path_factory.mktemp("rules") / "rules.so")
    for name, result in {
        "num": Num,
        "mul": Num,
        "div": Num,
        "add": Num,
        "fixed": ctypes.c_uint64,
        "lia_increase": ctypes.c_uint64,
        "olia_increase": ctypes.c_int64,
        "olia_alpha": ctypes.c_int32,
        "balia_increase": ctypes.c_uint64,
        "balia_reduced": ctypes.c_uint32,
        "vegas_backlog": ctypes.c_uint64,
        "wvegas_alpha": ctypes.c_uint64,
        "wvegas_drained": ctypes.c_uint32,
    }.items():
        getattr(library, f"host_{name}").restype = result
    library.host_num.argtypes = [ctypes.c_uint64, ctypes.c_int32]
    return library


@pytest.fixture(scope="session")
def choice(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the schedulers' arithmetic (kernel/schedulers/plait_choice.h), callable."""
    library = _build("choice_host.c", tmp_path_factory.mktemp("choice") / "choice.so")
    u32, u64, s64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
    for name, result, arguments in (
        ("ecf_waits", ctypes.c_bool, (u64, u32, u32, u32, u32, u32, ctypes.POINTER(ctypes.c_bool))),
        ("blest_skips", ctypes.c_bool, (u64, u32, u32, u32, u32, u32, u32, u32)),
        ("cap", Cap, (u32, u32, u32)),
        ("cap_credit", s64, (Cap, s64, u64, u64)),
        ("cap_grant", u32, (Cap, s64)),
        ("cap_lack", s64, (Cap, s64, u32)),
    ):
        function = getattr(library, f"host_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Point(ctypes.Structure):
    """struct plait_red_point: an average in 1/256 packet, a probability scaled to 2^32 - 1."""

    _fields_ = (("average", ctypes.c_uint32), ("probability", ctypes.c_uint32))


@pytest.fixture(scope="session")
def red(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the arithmetic of random early detection (kernel/queues/plait_red_rules.h), callable."""
    library = _build("red_host.c", tmp_path_factory.mktemp("red") / "red.so")
    u32, u64 = ctypes.c_uint32, ctypes.c_uint64
    for name, result, arguments in (
        ("average", u64, (u64, u32, u32)),
        ("idle", u64, (u64, u32, u32)),
        ("probability", u32, (ctypes.POINTER(Point), ctypes.c_int, u64, ctypes.POINTER(ctypes.c_bool))),
        ("happens", ctypes.c_bool, (u32, u32)),
    ):
        function = getattr(library, f"host_red_{name}")
        function.restype, function.argtypes = result, arguments
    return library
