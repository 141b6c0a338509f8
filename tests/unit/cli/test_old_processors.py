"""On a processor that the installed polars does not support, plait says what to install instead of crashing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

POLARS = '''
import warnings
warnings.warn("""Missing required CPU features.

The following required CPU features were not detected:
    avx2, fma
Continuing to use this version of Polars on this processor will likely result in a crash.
""", RuntimeWarning, stacklevel=1)
raise SystemExit("polars went on")
'''


@pytest.mark.parametrize("verb", [["run", "two-paths"], ["compare", "one", "two"]])
def test_polars_without_its_processor_is_refused_with_the_remedy(tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "polars").mkdir()
    (tmp_path / "polars" / "__init__.py").write_text(POLARS)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "from plait.cli import main; main()", *verb],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "this processor lacks avx2, fma; install polars for older" in done.stderr
    assert "pip install 'polars[rtcompat]'" in done.stderr
