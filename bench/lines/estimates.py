"""What the bench runs inside a guest: measure the lines of a hosts file, and write the estimates as JSON.

python estimates.py HOSTS.yaml SSH_CONFIG OUT.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from plait.hosts.read import read_hosts
from plait.measure.estimates.packets import PacketTimes
from plait.measure.probing import LineProber, PacketBurst
from plait.measure.run import measured_between


def keep_packets(folder: Path) -> None:
    """Let the prober also write the packets of each of its trials to `folder`."""
    send = LineProber.send

    def keeping(prober: LineProber, bursts: Sequence[PacketBurst]) -> list[PacketTimes]:
        packets = send(prober, bursts)
        columns = {"zero_us": np.array(prober.zero_us)}
        for number, (burst, times) in enumerate(zip(bursts, packets, strict=True)):
            columns |= {
                f"sent{number}": times.sent_us,
                f"received{number}": times.received_us,
                f"frame{number}": np.array([times.frame_bytes, burst.start_us]),
            }
        np.savez_compressed(folder / f"{prober._trials:03}.npz", **columns)  # noqa: SLF001
        return packets

    LineProber.send = keeping


if __name__ == "__main__":
    hosts, ssh_config, out = map(Path, sys.argv[1:])
    kept = out.with_name("packets")
    kept.mkdir()
    keep_packets(kept)
    lines = measured_between(read_hosts(hosts), ssh_config, print).lines
    out.write_text(json.dumps([asdict(line) for line in lines]), encoding="utf-8")
