"""A receiver gets exactly the file that the sender sent, by TCP and by MPTCP; both sides hash it."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

pytestmark = pytest.mark.guest

PLAIT = Path(sys.executable).parent / "plait"
SCENARIO = """
title: A file over two lossy paths
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 20mbit, delay: 5ms, loss: 1%}
    h1-h2#2: {rate: 8mbit, delay: 30ms, loss: 1%}
traffic:
  - transfer: {from: h2, to: h1, file: content.bin}
vary:
  transport: [tcp, mptcp]
"""


def test_a_file_arrives_unchanged_over_lossy_paths(tmp_path: Path) -> None:
    content = random.Random(7).randbytes(3_000_001)
    (tmp_path / "content.bin").write_bytes(content)
    (tmp_path / "file.yaml").write_text(SCENARIO)
    command = [
        str(PLAIT),
        "run",
        str(tmp_path / "file.yaml"),
        "--out",
        str(tmp_path / "out"),
        "--json",
        "--fresh",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert [case["failed"] for case in json.loads(done.stdout)["cases"]] == [0, 0]
    expected = hashlib.sha256(content).hexdigest()
    for transport in ("tcp", "mptcp"):
        folder = tmp_path / "out" / "trials" / f"transport={transport}" / "000"
        flow = pl.read_parquet(folder / "flows.parquet").row(0, named=True)
        assert (flow["completed"], flow["error"]) == (True, None)
        assert flow["sent_bytes"] == flow["received_bytes"] == len(content)
        assert flow["sent_sha256"] == flow["received_sha256"] == expected
        counters = pl.read_parquet(folder / "counters.parquet")
        retransmitted = counters.filter(pl.col("counter") == "TcpRetransSegs")["after"].sum()
        assert retransmitted > 0, "paths that lose 1 % must cost retransmissions, or the loss is not there"
