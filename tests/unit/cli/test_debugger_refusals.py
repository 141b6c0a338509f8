"""`plait exec --gdb` refuses what cannot be debugged before a guest starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.cli.laboratory.exec import require_debugger
from plait.errors import MachineError, RequestError
from plait.kernel.model import SYMBOLS, Kernel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    (tmp_path / "linux").write_bytes(b"kernel")
    return Kernel("ab" * 32, "6.12.1", tmp_path / "linux", "0" * 64, 1000)


def test_a_kernel_without_symbols_is_refused_with_the_build_that_has_them(kernel: Kernel) -> None:
    with pytest.raises(RequestError, match=r"6\.12\.1-abababab has no symbols.*--tracing"):
        require_debugger(kernel)


def test_a_machine_without_gdb_gets_the_name_of_its_package(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / SYMBOLS).write_bytes(b"symbols")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(MachineError, match="apt-get install gdb"):
        require_debugger(kernel)
